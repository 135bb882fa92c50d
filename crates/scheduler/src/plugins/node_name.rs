//! `NodeName`: a pod that names its node fits only that one.

use std::sync::Arc;

use coracle_api::Text;

use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{Cycle, Filter, Parts, PreFilter, Prepared, Refusal, Verdict, Wake};
use crate::pod::Pod;

pub(super) const NAME: &str = "NodeName";

struct NodeName;

pub(super) fn parts() -> Parts {
    let plugin = Arc::new(NodeName);
    Parts {
        filter: Some(plugin.clone()),
        wake: Some(plugin),
        ..Parts::default()
    }
}

impl PreFilter for NodeName {
    fn prepare<'c>(&'c self, cycle: Cycle<'c>) -> Result<Prepared<'c>, Refusal> {
        Ok(match cycle.pod.is_assigned() {
            false => Prepared::Nothing,
            true => Prepared::Ask(Box::new(Named(cycle.pod.node_name.clone()))),
        })
    }
}

#[derive(Clone)]
struct Named(Text);

impl<'c> Filter<'c> for Named {
    fn check(&self, node: &NodeInfo) -> Verdict {
        if node.node.name == self.0 {
            Verdict::Fits
        } else {
            Verdict::never("node(s) didn't match the requested node name")
        }
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(self.clone())
    }
}

impl Wake for NodeName {
    fn may_help(&self, _pod: &Pod, event: &Event) -> bool {
        matches!(event, Event::NodeAdded(_))
    }
}
