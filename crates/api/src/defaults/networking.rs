//! Network policies.

use crate::Map;
use crate::time::Timestamp;

/// A policy is about what comes in, and about what goes out if it has rules for that.
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
