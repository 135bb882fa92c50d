//! NetworkPolicies.

use crate::Map;
use crate::time::Timestamp;

/// A policy applies to ingress, and to egress if it has egress rules.
pub(super) fn network_policy(object: &mut Map, _: Timestamp) {
    let spec = object.object_mut("spec");
    if spec.items("policyTypes").is_empty() {
        let mut types = vec!["Ingress".into()];
        if !spec.items("egress").is_empty() {
            types.push("Egress".into());
        }
        spec.insert("policyTypes", types);
    }
}
