//! Which pods belong to which owner. Pure.

use std::sync::Arc;

use coracle_client::Cached;
use coracle_client::ownership::{Claim, claim};

use super::PodOwner;
use crate::views::Pod;

/// Which pods an owner adopts, releases and owns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// Orphans to adopt.
    pub adopt: Vec<Arc<Cached<Pod>>>,
    /// Pods to release.
    pub release: Vec<Arc<Cached<Pod>>>,
    /// All its pods after that, including the adopted ones.
    pub claimed: Vec<Arc<Cached<Pod>>>,
}

/// Sorts pods by ownership.
pub fn claims<'a, O: PodOwner>(
    owner: &Cached<O>,
    pods: impl IntoIterator<Item = &'a Arc<Cached<Pod>>>,
) -> Claims {
    let mut claims = Claims::default();
    let is_going = owner.object.object().meta().is_being_deleted();
    for pod in pods {
        let controller = pod
            .controller
            .as_ref()
            .map(|controller| controller.uid.as_str());

        let selects = owner.object.selects(&pod.labels);
        match claim(
            &owner.uid,
            is_going,
            controller,
            selects,
            pod.is_being_deleted,
        ) {
            Claim::Keep => claims.claimed.push(pod.clone()),
            Claim::Adopt => {
                claims.adopt.push(pod.clone());
                claims.claimed.push(pod.clone());
            }
            Claim::Release => claims.release.push(pod.clone()),
            Claim::Ignore => {}
        }
    }

    claims
}
