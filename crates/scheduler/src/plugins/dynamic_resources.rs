//! `DynamicResources`, partly implemented: a pod with resource claims stays pending with a reason.
//!
//! Allocating devices is not implemented yet.

use std::sync::Arc;

use crate::cycle::{Diagnosis, Filters};
use crate::events::Event;
use crate::framework::{Cycle, Parts, PostFilter, PreFilter, Prepared, Refusal, RoomAnswer, Wake};
use crate::pod::Pod;

pub(super) const NAME: &str = "DynamicResources";

struct DynamicResources;

pub(super) fn parts() -> Parts {
    let plugin = Arc::new(DynamicResources);
    Parts {
        filter: Some(plugin.clone()),
        post_filter: Some(plugin.clone()),
        wake: Some(plugin),
        ..Parts::default()
    }
}

impl PreFilter for DynamicResources {
    fn prepare<'c>(&'c self, cycle: Cycle<'c>) -> Result<Prepared<'c>, Refusal> {
        match cycle.pod.claims.resources {
            0 => Ok(Prepared::Nothing),
            _ => Err(Refusal::never(
                "pod has resourceclaims, which this scheduler cannot allocate yet",
            )),
        }
    }
}

/// No device is allocated, so none can be deallocated; upstream reports this for every pod that
/// fits no node.
impl PostFilter for DynamicResources {
    fn make_room<'c>(
        &self,
        _cycle: Cycle<'c>,
        _filters: &Filters<'c>,
        _diagnosis: &Diagnosis,
        _dice: &mut fastrand::Rng,
    ) -> RoomAnswer {
        RoomAnswer::None {
            message: String::from("no new claims to deallocate"),
            withdraw: false,
        }
    }
}

impl Wake for DynamicResources {
    fn may_help(&self, _pod: &Pod, _event: &Event) -> bool {
        false
    }
}
