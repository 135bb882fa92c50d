//! A profile: the plugins that pods of one scheduler name meet.

use std::sync::Arc;

use super::points::{
    Bind, Permit, PostBind, PostFilter, PreBind, PreEnqueue, PreFilter, PreScore, QueueSort,
    Reserve, Wake,
};
use crate::events::Event;
use crate::pod::Pod;

/// What a plugin takes part in.
#[derive(Clone, Default)]
pub struct Parts {
    pub pre_enqueue: Option<Arc<dyn PreEnqueue>>,
    pub queue_sort: Option<Arc<dyn QueueSort>>,
    /// PreFilter and Filter are one: the first makes the second.
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

/// A part, and the plugin it is of.
#[derive(Clone)]
pub struct Named<T> {
    pub plugin: &'static str,
    pub part: T,
}

/// A score, and how much it counts.
#[derive(Clone)]
pub struct Weighted {
    pub plugin: &'static str,
    pub weight: i64,
    pub part: Arc<dyn PreScore>,
}

/// The plugins of one scheduler name, at each point in the order they are asked.
#[derive(Clone)]
pub struct Profile {
    pub name: String,
    /// Of the nodes, how many are looked for before the best is taken; 0: as many as is good for a
    /// cluster of its size.
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
    /// Whether an event is worth another try of a pod that these plugins refused. Of a plugin that
    /// does not say what helps, anything may.
    pub fn may_help(&self, rejectors: &[&'static str], pod: &Pod, event: &Event) -> bool {
        rejectors.iter().any(|rejector| {
            let wake = self.wakes.iter().find(|wake| wake.plugin == *rejector);
            wake.is_none_or(|wake| wake.part.may_help(pod, event))
        })
    }
}
