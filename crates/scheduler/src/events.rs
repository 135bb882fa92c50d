//! What happens in the cluster, as far as it can help a pod that waits.

use std::sync::Arc;

use crate::node::Node;
use crate::pod::Pod;

/// A change. Objects are shared: a change that came while a pod was in flight is kept until its
/// fate is known.
#[derive(Clone, Debug)]
pub enum Event {
    NodeAdded(Arc<Node>),
    NodeChanged {
        old: Arc<Node>,
        new: Arc<Node>,
    },
    NodeRemoved(Arc<Node>),
    /// A pod has got a node.
    PodAdded(Arc<Pod>),
    /// A pod has changed, be it on a node or waiting for one.
    PodChanged {
        old: Arc<Pod>,
        new: Arc<Pod>,
    },
    /// A pod has gone from its node, or from the node it was promised.
    PodRemoved(Arc<Pod>),
    /// Something else that may help anybody: nobody is asked.
    Anything,
}
