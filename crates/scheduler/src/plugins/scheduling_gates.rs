//! `SchedulingGates`: a pod is not tried until its gates are removed.

use std::sync::Arc;

use coracle_api::Text;

use crate::events::Event;
use crate::framework::{Parts, PreEnqueue, Reason, Wake};
use crate::pod::Pod;

pub(super) const NAME: &str = "SchedulingGates";

struct SchedulingGates;

pub(super) fn parts() -> Parts {
    let plugin = Arc::new(SchedulingGates);
    Parts {
        pre_enqueue: Some(plugin.clone()),
        wake: Some(plugin),
        ..Parts::default()
    }
}

impl PreEnqueue for SchedulingGates {
    fn gate(&self, pod: &Pod) -> Option<Reason> {
        let gates = pod.gates.join(" ");
        (!pod.gates.is_empty())
            .then(|| Text::from(format!("waiting for scheduling gates: [{gates}]")))
    }
}

impl Wake for SchedulingGates {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        matches!(event, Event::PodChanged { old, new } if new.uid == pod.uid && new.gates.is_empty() && !old.gates.is_empty())
    }
}
