//! Metrics of PodSecurity, with upstream's names.

use coracle_metrics::{Alpha, Counters, metrics};

use super::policy::{Level, LevelVersion, Version};
use crate::admission::{Attributes, Operation};

/// The newest version that is known by its number.
const CURRENT: u32 = 36;

type Text = &'static str;

metrics! {
    pub(super) struct PodSecurityMetrics {
        /// By decision, mode, level, version, operation, resource and subresource.
        evaluations: Counters<Evaluation> = counters(
            Alpha,
            "pod_security_evaluations_total",
            "Number of policy evaluations, without ignored and exempt requests.",
            ["decision", "mode", "policy_level", "policy_version", "request_operation", "resource", "subresource"],
        ),
        exemptions: Counters<(Text, Text, Text)> = counters(
            Alpha,
            "pod_security_exemptions_total",
            "Number of exempt requests, without those that are ignored or out of scope.",
            ["request_operation", "resource", "subresource"],
        ),
        errors: Counters<(bool, Text, Text, Text)> = counters(
            Alpha,
            "pod_security_errors_total",
            "Number of errors that prevented a normal evaluation; after those that are not fatal the restricted level was enforced.",
            ["fatal", "request_operation", "resource", "subresource"],
        ),
    }
}

/// One evaluation of a policy.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Evaluation {
    decision: Text,
    mode: Mode,
    policy: LevelVersion,
    request: (Text, Text, Text),
}

/// What a policy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    Audit,
    Enforce,
    Warn,
}

impl coracle_metrics::Labels for Evaluation {
    fn values(&self) -> Vec<std::borrow::Cow<'_, str>> {
        let mode = match self.mode {
            Mode::Audit => "audit",
            Mode::Enforce => "enforce",
            Mode::Warn => "warn",
        };
        let version = match (self.policy.level, self.policy.version) {
            (Level::Privileged, _) | (_, Version::Latest) => "latest".into(),
            (_, Version::Minor(minor)) if minor > CURRENT => "future".into(),
            (_, Version::Minor(minor)) => format!("v1.{minor}").into(),
        };
        let (operation, resource, subresource) = self.request;
        vec![
            self.decision.into(),
            mode.into(),
            self.policy.level.name().into(),
            version,
            operation.into(),
            resource.into(),
            subresource.into(),
        ]
    }
}

impl PodSecurityMetrics {
    pub(super) fn evaluated(
        &self,
        mode: Mode,
        policy: LevelVersion,
        allowed: bool,
        attributes: &Attributes<'_>,
    ) {
        let evaluation = Evaluation {
            decision: if allowed { "allow" } else { "deny" },
            mode,
            policy,
            request: labels(attributes),
        };
        self.evaluations.of(&evaluation).inc();
    }

    pub(super) fn exempted(&self, attributes: &Attributes<'_>) {
        self.exemptions.of(&labels(attributes)).inc();
    }

    /// The policy of a namespace could not be read as a whole.
    pub(super) fn misread(&self, attributes: &Attributes<'_>) {
        let (operation, resource, subresource) = labels(attributes);
        self.errors
            .of(&(false, operation, resource, subresource))
            .inc();
    }
}

/// Operation, resource and subresource of a request.
fn labels(attributes: &Attributes<'_>) -> (Text, Text, Text) {
    let operation = match attributes.operation {
        Operation::Create => "create",
        _ => "update",
    };
    let resource = attributes.cx.resource;
    let resource = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => "pod",
        ("", "namespaces") => "namespace",
        _ => "controller",
    };
    (operation, resource, attributes.cx.part.name())
}
