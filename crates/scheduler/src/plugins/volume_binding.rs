//! `VolumeBinding`, partly implemented: a pod with a claim stays pending with a reason.
//!
//! Binding volumes together with choosing the node is not implemented yet. Without it a pod with a
//! claim could be placed where its volume is not accessible.

use std::sync::Arc;

use super::{Args, Handle, args};
use crate::events::Event;
use crate::framework::{Cycle, Extensions, PreFilter, PreFilterResult, QueueingHint, Refusal};
use crate::pod::Pod;

struct VolumeBinding;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    let plugin = Arc::new(VolumeBinding);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

impl PreFilter for VolumeBinding {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        match cycle.pod.claims.volumes.as_slice() {
            [] => Ok(PreFilterResult::Skip),
            claims => Err(Refusal::never(format!(
                "pod has persistentvolumeclaims ({}), which this scheduler cannot bind yet",
                claims.join(", ")
            ))),
        }
    }
}

impl QueueingHint for VolumeBinding {
    fn may_help(&self, _pod: &Pod, _event: &Event) -> bool {
        false
    }
}
