//! `SchedulingGates`: a pod is not tried until its gates are removed.

use std::sync::Arc;

use coracle_api::Text;

use super::{Args, Handle, args};
use crate::events::Event;
use crate::framework::{Extensions, PreEnqueue, QueueingHint, Reason};
use crate::pod::Pod;

struct SchedulingGates;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    let plugin = Arc::new(SchedulingGates);
    Ok(Extensions {
        pre_enqueue: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

impl PreEnqueue for SchedulingGates {
    fn gate(&self, pod: &Pod) -> Option<Reason> {
        let gates = pod.gates.join(" ");
        (!pod.gates.is_empty())
            .then(|| Text::from(format!("waiting for scheduling gates: [{gates}]")))
    }
}

impl QueueingHint for SchedulingGates {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        matches!(event, Event::PodChanged { old, new } if new.uid == pod.uid && new.gates.is_empty() && !old.gates.is_empty())
    }
}
