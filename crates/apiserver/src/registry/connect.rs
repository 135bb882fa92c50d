//! Connect: what admission says to a stream or a proxy before it begins.

use coracle_api::codec::canonical;
use coracle_api::{Map, Value};

use super::{Part, Registry, Scope, Write};
use crate::ApiError;
use crate::admission::{Notes, Operation, Options};

impl Registry {
    /// Asks admission about a connection to a subresource of an object. `options` are the fields of
    /// the subresource's kind. Returns them as admission left them, and warnings for the client.
    pub async fn connects(
        &self,
        scope: &Scope<'_>,
        name: &str,
        subresource: &str,
        mut options: Map,
    ) -> Result<(Map, Vec<String>), ApiError> {
        let mut known = scope.resource.subresources.iter();
        let known = known.find(|known| known.name == subresource);
        let scope = scope.with_kind_of(known).as_sent();

        options.insert("apiVersion", scope.kind.api_version());
        options.insert("kind", scope.kind.name.clone());
        let mut options = Value::Object(options);
        canonical::canonicalize(&mut options, scope.of.node());

        let notes = Notes::default();
        let write = Write {
            subresource,
            ..Write::new(self, &scope, Part::Main, false)
        };
        let attributes = write.attributes(Operation::Connect, Options::None, name, &notes);
        let admission = &self.admission;
        let admitted = match admission.admit(&mut options, &attributes).await {
            Ok(()) => admission.validate(Some(&options), &attributes).await,
            refused => refused,
        };

        let warnings = notes.warnings.take();
        match admitted {
            Ok(()) => Ok((options.as_object().cloned().unwrap_or_default(), warnings)),
            Err(refused) => Err(refused.after(warnings)),
        }
    }
}
