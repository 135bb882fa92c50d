//! `NodePorts`: two pods cannot use the same host port.

use std::sync::Arc;

use crate::cache::{NodeInfo, Ports};
use crate::events::Event;
use crate::framework::{Cycle, Filter, Parts, PreFilter, Prepared, Refusal, Verdict, Wake};
use crate::pod::{HostPort, Pod};

pub(super) const NAME: &str = "NodePorts";

struct NodePorts;

pub(super) fn parts() -> Parts {
    let plugin = Arc::new(NodePorts);
    Parts {
        filter: Some(plugin.clone()),
        wake: Some(plugin),
        ..Parts::default()
    }
}

impl PreFilter for NodePorts {
    fn prepare<'c>(&'c self, cycle: Cycle<'c>) -> Result<Prepared<'c>, Refusal> {
        Ok(match cycle.pod.host_ports.as_slice() {
            [] => Prepared::Nothing,
            ports => Prepared::Ask(Box::new(Free(ports))),
        })
    }
}

#[derive(Clone)]
struct Free<'c>(&'c [HostPort]);

impl<'c> Filter<'c> for Free<'c> {
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

impl Wake for NodePorts {
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
