//! `NodeUnschedulable`: a cordoned node fits only pods that tolerate that.

use std::sync::Arc;

use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{Cycle, Filter, Parts, PreFilter, Prepared, Refusal, Verdict, Wake};
use crate::pod::Pod;
use crate::taints::{UNSCHEDULABLE, tolerated};

pub(super) const NAME: &str = "NodeUnschedulable";

struct NodeUnschedulable;

pub(super) fn parts() -> Parts {
    let plugin = Arc::new(NodeUnschedulable);
    Parts {
        filter: Some(plugin.clone()),
        wake: Some(plugin),
        ..Parts::default()
    }
}

impl PreFilter for NodeUnschedulable {
    fn prepare<'c>(&'c self, cycle: Cycle<'c>) -> Result<Prepared<'c>, Refusal> {
        if tolerated(&cycle.pod.tolerations, &UNSCHEDULABLE) {
            return Ok(Prepared::Nothing);
        }
        Ok(Prepared::Ask(Box::new(NotCordoned)))
    }
}

#[derive(Clone)]
struct NotCordoned;

impl<'c> Filter<'c> for NotCordoned {
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

impl Wake for NodeUnschedulable {
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
