//! Metrics of policies, with upstream's names.

use std::time::Duration;

use coracle_metrics::{Alpha, Beta, Buckets, Counters, Histograms, metrics};

type Name = String;
type Text = &'static str;

/// Of one expression: seconds.
const BUCKETS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];

metrics! {
    pub(super) struct ValidatingMetrics {
        checks: Counters<(Text, Text, Name, Name)> = counters(
            Beta,
            "apiserver_validating_admission_policy_check_total",
            "Number of validations of policies that did not hold, by what followed.",
            ["enforcement_action", "error_type", "policy", "policy_binding"],
        ),
        durations: Histograms<(Text, Text, Name, Name)> = histograms(
            Beta,
            "apiserver_validating_admission_policy_check_duration_seconds",
            "Duration of validations of policies that did not hold in seconds.",
            ["enforcement_action", "error_type", "policy", "policy_binding"],
            Buckets::seconds(&BUCKETS),
        ),
    }
}

metrics! {
    pub(super) struct MutatingMetrics {
        checks: Counters<(Text, Name, Name)> = counters(
            Alpha,
            "apiserver_mutating_admission_policy_check_total",
            "Number of evaluated mutations of policies.",
            ["error_type", "policy", "policy_binding"],
        ),
        durations: Histograms<(Text, Name, Name)> = histograms(
            Alpha,
            "apiserver_mutating_admission_policy_check_duration_seconds",
            "Duration of mutations of policies in seconds.",
            ["error_type", "policy", "policy_binding"],
            Buckets::seconds(&BUCKETS),
        ),
    }
}

impl ValidatingMetrics {
    /// A validation that did not hold, and one thing that followed: `allow`, `deny`, `audit` or
    /// `warn`.
    pub(super) fn checked(
        &self,
        [policy, binding]: [&str; 2],
        action: &'static str,
        error_type: &'static str,
        took: Duration,
    ) {
        let key = (action, error_type, policy.to_owned(), binding.to_owned());
        self.checks.of(&key).inc();
        self.durations.of(&key).took(took);
    }
}

impl MutatingMetrics {
    pub(super) fn checked(
        &self,
        [policy, binding]: [&str; 2],
        error_type: &'static str,
        took: Duration,
    ) {
        let key = (error_type, policy.to_owned(), binding.to_owned());
        self.checks.of(&key).inc();
        self.durations.of(&key).took(took);
    }
}

/// What sort of error a message is; `None`: no error.
pub(super) fn error_type(message: Option<&str>) -> &'static str {
    match message {
        None => "no_error",
        Some(text) if text.starts_with("compilation") => "compile_error",
        Some(text) if text.starts_with("validation failed due to running out of cost budget") => {
            "out_of_budget"
        }
        Some(_) => "invalid_error",
    }
}
