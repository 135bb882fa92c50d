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
    /// Another change that may help any pod: no plugin is asked.
    Anything,
}
