//! A profile: the plugins for the pods of one scheduler name.

use std::sync::Arc;

use super::points::{
    Bind, Permit, PostBind, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort,
    Reserve, Wake,
};
use crate::events::Event;
use crate::pod::Pod;

/// The extension points that a plugin implements.
#[derive(Clone, Default)]
pub struct Parts {
    pub pre_enqueue: Option<Arc<dyn PreEnqueue>>,
    pub queue_sort: Option<Arc<dyn QueueSort>>,
    /// PreFilter and Filter together: the first creates the second.
    pub filter: Option<Arc<dyn PreFilter>>,
    pub post_filter: Option<Arc<dyn PostFilter>>,
    /// PreScore and Score likewise.
    pub score: Option<Arc<dyn PreScore>>,
    pub reserve: Option<Arc<dyn Reserve>>,
    pub permit: Option<Arc<dyn Permit>>,
    pub pre_bind: Option<Arc<dyn PreBind>>,
    pub bind: Option<Arc<dyn Bind>>,
    pub post_bind: Option<Arc<dyn PostBind>>,
    pub wake: Option<Arc<dyn Wake>>,
}

/// An extension, with the name of its plugin.
#[derive(Clone)]
pub struct Named<T> {
    pub plugin: &'static str,
    pub part: T,
}

/// A score, with its weight.
#[derive(Clone)]
pub struct Weighted {
    pub plugin: &'static str,
    pub weight: i64,
    pub part: Arc<dyn PreScore>,
}

/// The plugins of one scheduler name, at each point in order.
#[derive(Clone)]
pub struct Profile {
    pub name: String,
    /// How many nodes are searched before the best is taken, in percent; 0: depends on the size of
    /// the cluster.
    pub percentage_of_nodes_to_score: i64,
    pub pre_enqueue: Vec<Named<Arc<dyn PreEnqueue>>>,
    pub queue_sort: Arc<dyn QueueSort>,
    pub filters: Vec<Named<Arc<dyn PreFilter>>>,
    pub post_filters: Vec<Named<Arc<dyn PostFilter>>>,
    pub scores: Vec<Weighted>,
    pub reserves: Vec<Named<Arc<dyn Reserve>>>,
    pub permits: Vec<Named<Arc<dyn Permit>>>,
    pub pre_binds: Vec<Named<Arc<dyn PreBind>>>,
    pub binds: Vec<Named<Arc<dyn Bind>>>,
    pub post_binds: Vec<Named<Arc<dyn PostBind>>>,
    pub wakes: Vec<Named<Arc<dyn Wake>>>,
}

impl Profile {
    /// Whether an event is worth another attempt of a pod that these plugins rejected. Without a
    /// queueing hint every event is.
    pub fn may_help(&self, rejectors: &[&'static str], pod: &Pod, event: &Event) -> bool {
        rejectors.iter().any(|rejector| {
            let wake = self.wakes.iter().find(|wake| wake.plugin == *rejector);
            wake.is_none_or(|wake| wake.part.may_help(pod, event))
        })
    }
}
