//! `NodePorts`: two pods cannot use the same host port.

use std::sync::Arc;

use super::{Args, Handle, args};
use crate::cache::{NodeInfo, Ports};
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, Filter, PreFilter, PreFilterResult, QueueingHint, Refusal, Verdict,
};
use crate::pod::{HostPort, Pod};

struct NodePorts;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    let plugin = Arc::new(NodePorts);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

impl PreFilter for NodePorts {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        Ok(match cycle.pod.host_ports.as_slice() {
            [] => PreFilterResult::Skip,
            ports => PreFilterResult::All(Box::new(PortsFilter(ports))),
        })
    }
}

#[derive(Clone)]
struct PortsFilter<'c>(&'c [HostPort]);

impl<'c> Filter<'c> for PortsFilter<'c> {
    fn check(&self, node: &NodeInfo) -> Verdict {
        if self.0.iter().all(|port| node.ports.are_free(port)) {
            Verdict::Fits
        } else {
            Verdict::not_now("node(s) didn't have free ports for the requested pod ports")
        }
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(self.clone())
    }
}

impl QueueingHint for NodePorts {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        match event {
            Event::NodeAdded(_) => true,
            Event::PodRemoved(gone) => {
                let freed = Ports::of(&gone.host_ports);
                gone.is_placed() && !pod.host_ports.iter().all(|port| freed.are_free(port))
            }
            _ => false,
        }
    }
}
