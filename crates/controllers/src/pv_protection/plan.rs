//! Whether a volume keeps its protection finalizer. Pure.

use coracle_api::Value;

use crate::views::Protection;

/// The finalizer of a volume, kept while a claim is bound to it.
pub const FINALIZER: &str = "kubernetes.io/pv-protection";

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Add the finalizer.
    Protect,
    /// Remove the finalizer.
    Release,
}

/// Decides what a volume needs.
pub fn plan(volume: &Value) -> Plan {
    let is_bound = volume.at(&["status", "phase"]).and_then(Value::as_str) == Some("Bound");
    match Protection::of(volume.meta(), FINALIZER) {
        Protection::Missing => Plan::Protect,
        Protection::Waiting if !is_bound => Plan::Release,
        Protection::Waiting | Protection::Settled => Plan::Keep,
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    #[test]
    fn a_volume_is_protected_until_it_goes_and_nothing_is_bound_to_it() {
        let check = |metadata: &str, phase: &str, expected| {
            let volume = format!("{{metadata: {metadata}, status: {{phase: {phase}}}}}");
            assert_eq!(
                plan(&yaml::decode(volume.as_bytes()).unwrap()),
                expected,
                "{metadata} {phase}"
            );
        };

        let going = "{name: v, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [kubernetes.io/pv-protection]}";
        check("{name: v}", "Available", Plan::Protect);
        check(
            "{name: v, finalizers: [kubernetes.io/pv-protection]}",
            "Available",
            Plan::Keep,
        );

        check(going, "Bound", Plan::Keep);
        check(going, "Released", Plan::Release);
        check(going, "Available", Plan::Release);
        check(
            "{name: v, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [x]}",
            "Released",
            Plan::Keep,
        );
    }
}
