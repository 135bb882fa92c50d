//! Whether a claim keeps its protection finalizer. Pure.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::owner::controller_of;
use coracle_client::{Cached, Whole};

use super::user::User;
use crate::views::Protection;

/// The finalizer of a claim, kept while pods use it.
pub const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// All that was observed of a claim.
pub struct Observed {
    /// The claim.
    pub claim: Arc<Cached<Whole>>,
    /// Pods that use it, from the cache.
    pub users: Vec<Arc<Cached<User>>>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Add the finalizer.
    Protect,
    /// Remove the finalizer, if no pod on the server uses it either.
    Release,
}

/// Decides what a claim needs.
pub fn plan(observed: &Observed) -> Plan {
    let used = || {
        observed
            .users
            .iter()
            .any(|pod| holds(pod, &pod.uid, &observed.claim))
    };
    match Protection::of(observed.claim.meta(), FINALIZER) {
        Protection::Missing => Plan::Protect,
        Protection::Waiting if !used() => Plan::Release,
        Protection::Waiting | Protection::Settled => Plan::Keep,
    }
}

/// Whether a pod uses a claim.
pub fn holds(user: &User, uid: &str, claim: &Value) -> bool {
    let is_owner = controller_of(claim.meta()).is_some_and(|owner| owner.uid == uid);
    user.holds(claim.meta().name(), is_owner)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn cached<T: coracle_client::Projection>(text: &str) -> Arc<Cached<T>> {
        Arc::new(Cached::of(yaml::decode(text.as_bytes()).unwrap()).unwrap())
    }

    #[test]
    fn a_claim_is_protected_until_it_is_deleted_and_unused() {
        let check = |metadata: &str, node: &str, expected| {
            let claim = cached(&format!("{{metadata: {metadata}}}"));
            let pod = "{metadata: {name: p, uid: u}, spec: {nodeName: 'NODE', volumes: [{name: a, \
                       persistentVolumeClaim: {claimName: c}}]}}";

            let users = vec![cached(&pod.replace("NODE", node))];
            assert_eq!(
                plan(&Observed { claim, users }),
                expected,
                "{metadata} {node}"
            );
        };

        let going = "{name: c, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [kubernetes.io/pvc-protection]}";
        check("{name: c}", "n", Plan::Protect);
        check(
            "{name: c, finalizers: [kubernetes.io/pvc-protection]}",
            "n",
            Plan::Keep,
        );

        check(going, "n", Plan::Keep);
        check(going, "", Plan::Release);
        check(
            "{name: c, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [x]}",
            "",
            Plan::Keep,
        );
    }
}
