//! `DynamicResources`, partly implemented: a pod with resource claims stays pending with a reason.
//!
//! Allocating devices is not implemented yet.

use std::sync::Arc;

use super::{Args, Handle, args};
use crate::cycle::{Diagnosis, Filters};
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, PostFilter, PostFilterResult, PreFilter, PreFilterResult, QueueingHint,
    Refusal,
};
use crate::pod::Pod;

struct DynamicResources;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    let plugin = Arc::new(DynamicResources);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        post_filter: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

impl PreFilter for DynamicResources {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        match cycle.pod.claims.resources {
            0 => Ok(PreFilterResult::Skip),
            _ => Err(Refusal::never(
                "pod has resourceclaims, which this scheduler cannot allocate yet",
            )),
        }
    }
}

/// No device is allocated, so none can be deallocated; upstream reports this for every pod that
/// fits no node.
impl PostFilter for DynamicResources {
    fn post_filter<'c>(
        &self,
        _cycle: Cycle<'c>,
        _filters: &Filters<'c>,
        _diagnosis: &Diagnosis,
        _dice: &mut fastrand::Rng,
    ) -> PostFilterResult {
        PostFilterResult::None {
            message: String::from("no new claims to deallocate"),
            withdraw: false,
        }
    }
}

impl QueueingHint for DynamicResources {
    fn may_help(&self, _pod: &Pod, _event: &Event) -> bool {
        false
    }
}
