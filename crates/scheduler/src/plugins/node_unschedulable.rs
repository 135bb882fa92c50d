//! `NodeUnschedulable`: a cordoned node fits only pods that tolerate that.

use std::sync::Arc;

use super::{Args, Handle, args};
use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, Filter, PreFilter, PreFilterResult, QueueingHint, Refusal, Verdict,
};
use crate::pod::Pod;
use crate::taints::{UNSCHEDULABLE, tolerated};

struct NodeUnschedulable;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    let plugin = Arc::new(NodeUnschedulable);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

impl PreFilter for NodeUnschedulable {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        if tolerated(&cycle.pod.tolerations, &UNSCHEDULABLE) {
            return Ok(PreFilterResult::Skip);
        }
        Ok(PreFilterResult::All(Box::new(CordonFilter)))
    }
}

#[derive(Clone)]
struct CordonFilter;

impl<'c> Filter<'c> for CordonFilter {
    fn check(&self, node: &NodeInfo) -> Verdict {
        if node.node.unschedulable {
            Verdict::never("node(s) were unschedulable")
        } else {
            Verdict::Fits
        }
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(self.clone())
    }
}

impl QueueingHint for NodeUnschedulable {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        match event {
            Event::NodeAdded(node) => !node.unschedulable,
            Event::NodeChanged { old, new } => old.unschedulable && !new.unschedulable,
            Event::PodChanged { old, new } => {
                new.uid == pod.uid
                    && new.tolerations != old.tolerations
                    && tolerated(&new.tolerations, &UNSCHEDULABLE)
            }
            _ => false,
        }
    }
}
