//! What the server answered, and how it is printed.

use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_client::Error;

use super::WriteError;
use super::changes::{Change, changes};

/// The answer to a write.
pub(super) struct Answer {
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub(super) operation: &'static str,
    /// `Deployment shop/web`.
    pub(super) object: String,
    /// The answer to the same request without the policies; `None`: there are none.
    pub(super) without: Option<Result<Value, Error>>,
    pub(super) result: Result<Value, Error>,
    pub(super) warnings: Vec<String>,
    /// Key and value of each audit annotation.
    pub(super) audit: Vec<(String, String)>,
}

impl Answer {
    /// A refusal is not part of the text: it is the command's error.
    pub(super) fn text(&self) -> String {
        let verdict = match &self.result {
            Ok(_) => "allowed",
            Err(_) => "refused",
        };
        let mut lines = vec![format!("{} {}: {verdict}", self.operation, self.object)];
        if let (Err(_), Some(Err(error))) = (&self.result, &self.without) {
            lines.push(format!("without the policies: {error}"));
        }

        lines.extend(
            self.warnings
                .iter()
                .map(|warning| format!("warning: {warning}")),
        );
        let annotation =
            |(key, value): &(String, String)| format!("audit annotation: {key}={value}");
        lines.extend(self.audit.iter().map(annotation));
        lines.extend(
            self.changes()
                .iter()
                .map(|change| format!("changed: {change}")),
        );
        lines.join("\n") + "\n"
    }

    pub(super) fn json(&self) -> String {
        let mut report = Map::new();
        report.insert("operation", self.operation);
        report.insert("allowed", self.result.is_ok());
        match &self.result {
            Ok(object) => report.insert("object", object.clone()),
            Err(error) => report.insert("status", status(error)),
        };
        if let Some(Err(error)) = &self.without {
            report.insert("statusWithoutPolicies", status(error));
        }

        let warnings = self
            .warnings
            .iter()
            .map(|warning| Value::string(warning.as_str()));
        report.insert("warnings", warnings.collect::<Vec<_>>());
        let mut audit = Map::new();
        for (key, value) in &self.audit {
            audit.insert(key.as_str(), value.as_str());
        }
        report.insert("auditAnnotations", Value::Object(audit));
        let changes = self.changes();
        let changes = changes.iter().map(Change::to_value);
        report.insert("changes", changes.collect::<Vec<_>>());
        json::to_pretty(&Value::Object(report))
    }

    /// What the policies have changed.
    fn changes(&self) -> Vec<Change> {
        match (&self.without, &self.result) {
            (Some(Ok(before)), Ok(after)) => changes(before, after),
            _ => Vec::new(),
        }
    }

    pub(super) fn into_result(self) -> Result<(), WriteError> {
        self.result.map(drop).map_err(WriteError::Refused)
    }
}

fn status(error: &Error) -> Value {
    let mut status = Map::new();
    match error {
        Error::Refused(refused) => {
            status.insert("code", Value::Int(refused.code.into()));
            status.insert("reason", refused.reason.as_str());
            status.insert("message", refused.message.as_str());
        }
        other => {
            status.insert("message", other.to_string());
        }
    }
    Value::Object(status)
}
