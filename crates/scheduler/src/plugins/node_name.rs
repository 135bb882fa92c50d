//! `NodeName`: a pod that names its node fits only that one.

use std::sync::Arc;

use coracle_api::Text;

use super::{Args, Handle, args};
use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, Filter, PreFilter, PreFilterResult, QueueingHint, Refusal, Verdict,
};
use crate::pod::Pod;

struct NodeName;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    let plugin = Arc::new(NodeName);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

impl PreFilter for NodeName {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        Ok(match cycle.pod.is_assigned() {
            false => PreFilterResult::Skip,
            true => PreFilterResult::All(Box::new(NodeNameFilter(cycle.pod.node_name.clone()))),
        })
    }
}

#[derive(Clone)]
struct NodeNameFilter(Text);

impl<'c> Filter<'c> for NodeNameFilter {
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

impl QueueingHint for NodeName {
    fn may_help(&self, _pod: &Pod, event: &Event) -> bool {
        matches!(event, Event::NodeAdded(_))
    }
}
