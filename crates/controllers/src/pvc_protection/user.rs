//! A pod, reduced to the claims it uses.

use coracle_api::typed::TypedError;
use coracle_api::{Map, Text, Value};
use coracle_client::Projection;
use std::sync::Arc;

/// The claims of a pod, and whether it may still use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Claims that it names.
    pub claims: Box<[Text]>,
    /// Claims of its ephemeral volumes, which it owns.
    pub own: Box<[Text]>,
    /// Whether it is scheduled.
    pub is_placed: bool,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Whether the kubelet has stopped it, or it was deleted with grace period 0.
    pub is_shut_down: bool,
}

impl User {
    /// All claims that it uses.
    pub fn all(&self) -> impl Iterator<Item = &Text> {
        self.claims.iter().chain(&self.own)
    }

    /// Whether its end or deletion can free a claim: a running pod uses its claims.
    pub fn may_release(&self) -> bool {
        self.has_ended || !self.is_placed
    }

    /// Whether it uses a claim. `is_owner`: the claim was created for this pod.
    pub fn holds(&self, claim: &str, is_owner: bool) -> bool {
        let named = self.claims.iter().any(|name| name == claim);
        let own = !self.is_shut_down && is_owner && self.own.iter().any(|name| name == claim);
        self.is_placed && (named || own)
    }

    /// Reads a pod.
    pub fn of(pod: &Value) -> User {
        let volumes = pod
            .at(&["spec", "volumes"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let volumes: Vec<&Map> = volumes.iter().filter_map(Value::as_object).collect();

        let named = |volume: &&Map| {
            Some(Text::new(
                volume.below("persistentVolumeClaim")?.text("claimName"),
            ))
        };

        let name = pod.meta().name();
        let own = |volume: &&Map| {
            let made = volume
                .below("ephemeral")
                .map(|_| format!("{name}-{}", volume.text("name")));
            made.map(Text::from)
        };

        let phase = pod
            .at(&["status", "phase"])
            .and_then(Value::as_str)
            .unwrap_or_default();

        let node = pod
            .at(&["spec", "nodeName"])
            .and_then(Value::as_str)
            .unwrap_or_default();

        User {
            claims: volumes.iter().filter_map(named).collect(),
            own: volumes.iter().filter_map(own).collect(),
            is_placed: !node.is_empty(),
            has_ended: matches!(phase, "Succeeded" | "Failed"),
            is_shut_down: pod.meta().is_being_deleted()
                && pod.meta().deletion_grace_period_seconds() == Some(0),
        }
    }
}

impl Projection for User {
    fn project(object: &Arc<Value>) -> Result<User, TypedError> {
        Ok(User::of(object))
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    #[test]
    fn a_claim_is_held_by_pods_that_have_a_node() {
        let check = |rest: &str, claim: &str, is_owner, expected| {
            let pod = format!(
                "{{metadata: {{name: p{}}}, spec: {{volumes: [{{name: a, persistentVolumeClaim: {{claimName: c}}}}, \
                 {{name: e, ephemeral: {{}}}}, {{name: o, emptyDir: {{}}}}]{}}}}}",
                if rest == "gone" {
                    ", deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0"
                } else {
                    ""
                },
                if rest == "waiting" {
                    ""
                } else {
                    ", nodeName: node-1"
                }
            );
            let user = User::of(&yaml::decode(pod.as_bytes()).unwrap());
            assert_eq!(user.holds(claim, is_owner), expected, "{rest} {claim}");
        };

        check("", "c", false, true);
        check("waiting", "c", false, false);
        check("gone", "c", false, true);
        check("", "other", false, false);
        check("", "p-e", true, true);

        // Of the same name, and not created for this pod.
        check("", "p-e", false, false);

        // The pod may wait for the claim in turn.
        check("gone", "p-e", true, false);
        check("", "p-o", true, false);
    }
}
