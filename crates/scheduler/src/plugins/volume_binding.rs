//! `VolumeBinding`, partly implemented: a pod with a claim stays pending with a reason.
//!
//! Binding volumes together with choosing the node is not implemented yet. Without it a pod with a
//! claim could be placed where its volume is not accessible.

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
