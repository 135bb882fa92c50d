//! Metrics of admission webhooks, with upstream's names.

use std::time::Duration;

use coracle_metrics::{Alpha, Buckets, Counters, Histograms, Stable, metrics};

use super::call::Failed;
use crate::admission::Operation;

/// Codes above are counted as this one.
const MAX_CODE: u16 = 600;

type Name = String;
type Text = &'static str;

metrics! {
    pub(super) struct WebhookMetrics {
        durations: Histograms<(Name, Text, bool, Text)> = histograms(
            Stable,
            "apiserver_admission_webhook_admission_duration_seconds",
            "Duration of calls of admission webhooks in seconds.",
            ["name", "operation", "rejected", "type"],
            Buckets::seconds(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0]),
        ),
        requests: Counters<(String, Name, Text, bool, Text)> = counters(
            Alpha,
            "apiserver_admission_webhook_request_total",
            "Number of calls of admission webhooks by HTTP code.",
            ["code", "name", "operation", "rejected", "type"],
        ),
        rejections: Counters<(Text, Name, Text, String, Text)> = counters(
            Alpha,
            "apiserver_admission_webhook_rejection_count",
            "Number of requests that admission webhooks, or their failures, have refused.",
            ["error_type", "name", "operation", "rejection_code", "type"],
        ),
        failed_open: Counters<(Name, Text)> = counters(
            Alpha,
            "apiserver_admission_webhook_fail_open_count",
            "Number of failed calls of admission webhooks that were ignored.",
            ["name", "type"],
        ),
        condition_errors: Counters<(Text, Name, Text, Text)> = counters(
            Alpha,
            "apiserver_admission_match_condition_evaluation_errors_total",
            "Number of failed evaluations of match conditions.",
            ["kind", "name", "operation", "type"],
        ),
        condition_exclusions: Counters<(Text, Name, Text, Text)> = counters(
            Alpha,
            "apiserver_admission_match_condition_exclusions_total",
            "Number of requests that match conditions have excluded.",
            ["kind", "name", "operation", "type"],
        ),
        condition_durations: Histograms<(Text, Name, Text, Text)> = histograms(
            Alpha,
            "apiserver_admission_match_condition_evaluation_seconds",
            "Duration of evaluations of match conditions in seconds.",
            ["kind", "name", "operation", "type"],
            Buckets::seconds(&[0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25]),
        ),
    }
}

/// One call, as metrics see it.
pub(super) struct Called<'a> {
    pub(super) name: &'a str,
    pub(super) operation: Operation,
    /// `admit` or `validating`.
    pub(super) of: &'static str,
    pub(super) fails_open: bool,
}

impl WebhookMetrics {
    pub(super) fn called(&self, call: &Called<'_>, took: Duration, failed: Option<&Failed>) {
        let (error_type, code, rejected) = match failed {
            None => ("", 200, false),
            Some(Failed::Call(error)) => ("calling_webhook_error", error.code, !call.fails_open),
            Some(Failed::Refused(refused)) => ("no_error", refused.code.as_u16(), true),
            Some(Failed::Internal(_)) => ("apiserver_internal_error", 0, true),
        };
        let (name, operation) = (call.name.to_owned(), call.operation.as_str());
        let code = code.min(MAX_CODE).to_string();

        if rejected {
            let key = (error_type, name.clone(), operation, code.clone(), call.of);
            self.rejections.of(&key).inc();
        }
        if call.fails_open && matches!(failed, Some(Failed::Call(_))) {
            self.failed_open.of(&(name.clone(), call.of)).inc();
        }

        let key = (name.clone(), operation, rejected, call.of);
        self.durations.of(&key).took(took);
        let key = (code, name, operation, rejected, call.of);
        self.requests.of(&key).inc();
    }

    /// An evaluation of match conditions: `validate` or `admit`.
    pub(super) fn conditions(
        &self,
        name: &str,
        operation: Operation,
        of: &'static str,
        took: Duration,
        outcome: &'static str,
    ) {
        let key = ("webhook", name.to_owned(), operation.as_str(), of);
        self.condition_durations.of(&key).took(took);
        match outcome {
            "excluded" => self.condition_exclusions.of(&key).inc(),
            "failed" => self.condition_errors.of(&key).inc(),
            _ => {}
        }
    }
}
