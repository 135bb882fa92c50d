//! Cluster events that may help a waiting pod.

use std::sync::Arc;

use crate::node::Node;
use crate::pod::Pod;

/// An event. Objects are shared: an event during a pod's cycle is kept until the outcome of the
/// cycle is known.
#[derive(Clone, Debug)]
pub enum Event {
    NodeAdded(Arc<Node>),
    NodeChanged {
        old: Arc<Node>,
        new: Arc<Node>,
    },
    NodeRemoved(Arc<Node>),
    /// A pod got a node.
    PodAdded(Arc<Pod>),
    /// A pod changed, on a node or waiting.
    PodChanged {
        old: Arc<Pod>,
        new: Arc<Pod>,
    },
    /// A pod was removed from its node, or from its nominated node.
    PodRemoved(Arc<Pod>),
    /// A change of namespaces, which may help any pod: no plugin is asked.
    NamespaceChanged,
    /// The preemption for a pod has ended.
    Activated,
    /// A pod waits for so long that it is tried again.
    Timeout,
}

impl Event {
    /// Upstream's name of the event, for metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Event::NodeAdded(_) => "NodeAdd",
            Event::NodeChanged { old, new } if old.allocatable != new.allocatable => {
                "NodeUpdateNodeAllocatable"
            }
            Event::NodeChanged { old, new } if old.labels != new.labels => "NodeUpdateNodeLabel",
            Event::NodeChanged { old, new }
                if old.taints != new.taints || old.unschedulable != new.unschedulable =>
            {
                "NodeUpdateNodeTaint"
            }
            Event::NodeChanged { .. } => "NodeUpdate",
            Event::NodeRemoved(_) => "NodeDelete",
            Event::PodAdded(_) => "AssignedPodAdd",
            Event::PodChanged { new, .. } if new.is_assigned() => "AssignedPodUpdate",
            Event::PodChanged { .. } => "UnschedulablePodUpdate",
            Event::PodRemoved(_) => "AssignedPodDelete",
            Event::NamespaceChanged => "NamespaceUpdate",
            Event::Activated => "ForceActivate",
            Event::Timeout => "UnschedulableTimeout",
        }
    }

    /// Whether it may help every pod: no plugin is asked.
    pub fn helps_any(&self) -> bool {
        matches!(
            self,
            Event::NamespaceChanged | Event::Activated | Event::Timeout
        )
    }
}
