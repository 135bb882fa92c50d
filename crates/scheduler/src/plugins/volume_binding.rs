//! `VolumeBinding`, as far as it is built: a pod with a claim waits, and says for what.
//!
//! Choosing volumes with the node is not built yet. Without it a pod with a claim could land where
//! its volume cannot be; so it stays pending with the reason, and is tried again when that is built
//! or the claim leaves the pod.

use std::sync::Arc;

use crate::events::Event;
use crate::framework::{Cycle, Parts, PreFilter, Prepared, Refusal, Wake};
use crate::pod::Pod;

pub(super) const NAME: &str = "VolumeBinding";

struct VolumeBinding;

pub(super) fn parts() -> Parts {
    let plugin = Arc::new(VolumeBinding);
    Parts {
        filter: Some(plugin.clone()),
        wake: Some(plugin),
        ..Parts::default()
    }
}

impl PreFilter for VolumeBinding {
    fn prepare<'c>(&'c self, cycle: Cycle<'c>) -> Result<Prepared<'c>, Refusal> {
        match cycle.pod.claims.volumes.as_slice() {
            [] => Ok(Prepared::Nothing),
            claims => Err(Refusal::never(format!(
                "pod has persistentvolumeclaims ({}), which this scheduler cannot bind yet",
                claims.join(", ")
            ))),
        }
    }
}

impl Wake for VolumeBinding {
    fn may_help(&self, _pod: &Pod, _event: &Event) -> bool {
        false
    }
}
