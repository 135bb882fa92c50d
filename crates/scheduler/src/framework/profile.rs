//! A profile: the plugins for the pods of one scheduler name.

use std::sync::Arc;

use super::extension_points::{
    Bind, PostFilter, PreEnqueue, PreFilter, PreScore, QueueSort, QueueingHint,
};
use crate::events::Event;
use crate::pod::Pod;

/// The extension points that a plugin implements.
#[derive(Clone, Default)]
pub struct Extensions {
    pub pre_enqueue: Option<Arc<dyn PreEnqueue>>,
    pub queue_sort: Option<Arc<dyn QueueSort>>,
    /// PreFilter and Filter together: the first creates the second.
    pub filter: Option<Arc<dyn PreFilter>>,
    pub post_filter: Option<Arc<dyn PostFilter>>,
    /// PreScore and Score likewise.
    pub score: Option<Arc<dyn PreScore>>,
    pub bind: Option<Arc<dyn Bind>>,
    pub queueing_hint: Option<Arc<dyn QueueingHint>>,
}

/// An extension, with the name of its plugin.
#[derive(Clone)]
pub struct Extension<T> {
    pub plugin: &'static str,
    pub inner: T,
}

/// A score, with its weight.
#[derive(Clone)]
pub struct WeightedScore {
    pub plugin: &'static str,
    pub weight: i64,
    pub inner: Arc<dyn PreScore>,
}

/// The plugins of one scheduler name, at each point in order.
#[derive(Clone)]
pub struct Profile {
    pub name: String,
    /// How many nodes are searched before the best is taken, in percent; 0: depends on the size of
    /// the cluster.
    pub percentage_of_nodes_to_score: i64,
    pub pre_enqueue: Vec<Extension<Arc<dyn PreEnqueue>>>,
    pub queue_sort: Arc<dyn QueueSort>,
    pub filters: Vec<Extension<Arc<dyn PreFilter>>>,
    pub post_filters: Vec<Extension<Arc<dyn PostFilter>>>,
    pub scores: Vec<WeightedScore>,
    pub binds: Vec<Extension<Arc<dyn Bind>>>,
    pub queueing_hints: Vec<Extension<Arc<dyn QueueingHint>>>,
}

impl Profile {
    /// Whether an event is worth another attempt of a pod that these plugins rejected. Without a
    /// queueing hint every event is.
    pub fn may_help(&self, rejectors: &[&'static str], pod: &Pod, event: &Event) -> bool {
        rejectors.iter().any(|rejector| {
            let queueing_hint = self
                .queueing_hints
                .iter()
                .find(|queueing_hint| queueing_hint.plugin == *rejector);
            queueing_hint.is_none_or(|queueing_hint| queueing_hint.inner.may_help(pod, event))
        })
    }
}
