//! `DynamicResources`, as far as it is built: a pod that claims devices waits, and says so.
//!
//! Giving out devices is not built yet.

use std::sync::Arc;

use crate::events::Event;
use crate::framework::{Cycle, Parts, PreFilter, Prepared, Refusal, Wake};
use crate::pod::Pod;

pub(super) const NAME: &str = "DynamicResources";

struct DynamicResources;

pub(super) fn parts() -> Parts {
    let plugin = Arc::new(DynamicResources);
    Parts { filter: Some(plugin.clone()), wake: Some(plugin), ..Parts::default() }
}

impl PreFilter for DynamicResources {
    fn prepare<'c>(&'c self, cycle: Cycle<'c>) -> Result<Prepared<'c>, Refusal> {
        match cycle.pod.claims.resources {
            0 => Ok(Prepared::Nothing),
            _ => Err(Refusal::never("pod has resourceclaims, which this scheduler cannot allocate yet")),
        }
    }
}

impl Wake for DynamicResources {
    fn may_help(&self, _pod: &Pod, _event: &Event) -> bool {
        false
    }
}
