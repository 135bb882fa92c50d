//! Outcomes of probes and their thresholds.

use k8s_openapi::api::core::v1::Probe;

use super::ProbeKind;

/// The outcome of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// Counts as passed, with a warning event.
    Warned(String),
    Failed(String),
    /// The probe could not be executed: it does not count.
    Error {
        state: &'static str,
        reason: String,
    },
}

/// The number of equal results in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Streak {
    last: Option<bool>,
    length: i32,
}

impl Streak {
    /// Adds a result. Some: it has reached its threshold.
    pub(super) fn add(&mut self, passed: bool, probe: &Probe) -> Option<bool> {
        self.length = if self.last == Some(passed) {
            self.length.saturating_add(1)
        } else {
            1
        };

        self.last = Some(passed);

        let enough = if passed {
            probe.success_threshold.unwrap_or(1)
        } else {
            probe.failure_threshold.unwrap_or(3)
        };

        (self.length >= enough).then_some(passed)
    }
}

/// Whether the probe of this instance is finished.
pub(super) fn is_settled(kind: ProbeKind, passed: bool) -> bool {
    match kind {
        ProbeKind::Startup => true,
        ProbeKind::Liveness => !passed,
        ProbeKind::Readiness => false,
    }
}

/// The event of an outcome: reason and text.
pub(super) fn event(kind: ProbeKind, outcome: &Outcome) -> Option<(&'static str, String)> {
    let kind = kind.name();

    match outcome {
        Outcome::Passed => None,
        Outcome::Warned(text) => Some(("ProbeWarning", format!("{kind} probe warning: {text}"))),
        Outcome::Failed(text) => Some(("Unhealthy", format!("{kind} probe failed: {text}"))),
        Outcome::Error { state, reason } => Some((
            "Unhealthy",
            format!("{kind} probe errored and resulted in {state} state: {reason}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answers: &[bool], success: i32, failure: i32, expected: &[Option<bool>]) {
        let probe = Probe {
            success_threshold: Some(success),
            failure_threshold: Some(failure),
            ..Probe::default()
        };
        let mut streak = Streak::default();
        let counted: Vec<_> = answers
            .iter()
            .map(|passed| streak.add(*passed, &probe))
            .collect();
        assert_eq!(counted, expected, "{answers:?} {success} {failure}");
    }

    #[test]
    fn a_result_counts_when_it_reaches_its_threshold() {
        let (yes, no) = (Some(true), Some(false));
        check(&[true], 1, 3, &[yes]);
        check(&[false, false, false, false], 1, 3, &[None, None, no, no]);
        check(
            &[false, false, true, false, false],
            1,
            3,
            &[None, None, yes, None, None],
        );
        check(&[true, false, true, true], 2, 1, &[None, no, None, yes]);
    }

    #[test]
    fn events_have_upstreams_text() {
        let check = |kind, outcome: Outcome, expected: Option<(&str, &str)>| {
            let event = event(kind, &outcome);
            assert_eq!(
                event
                    .as_ref()
                    .map(|(reason, text)| (*reason, text.as_str())),
                expected
            );
        };

        let failed = Outcome::Failed("HTTP probe failed with statuscode: 500".to_owned());
        check(
            ProbeKind::Readiness,
            failed,
            Some((
                "Unhealthy",
                "Readiness probe failed: HTTP probe failed with statuscode: 500",
            )),
        );

        let unasked = Outcome::Error {
            state: "unknown",
            reason: "rpc error".to_owned(),
        };

        check(
            ProbeKind::Liveness,
            unasked,
            Some((
                "Unhealthy",
                "Liveness probe errored and resulted in unknown state: rpc error",
            )),
        );

        let warned = Outcome::Warned("Probe terminated redirects, Response body: x".to_owned());
        check(
            ProbeKind::Startup,
            warned,
            Some((
                "ProbeWarning",
                "Startup probe warning: Probe terminated redirects, Response body: x",
            )),
        );

        check(ProbeKind::Startup, Outcome::Passed, None);
    }
}
