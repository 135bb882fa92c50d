//! The extension points: small traits that plugins implement.
//!
//! In the order in which a pod meets them: [`PreEnqueue`] (may it enter the active queue),
//! [`QueueSort`] (the order of the active queue), [`PreFilter`] (which nodes to filter; it creates
//! the [`Filter`]), [`PostFilter`] (no node fits: preemption), [`PreScore`] (creates the
//! [`Score`]), [`Bind`]. [`QueueingHint`]
//! decides which events are worth another attempt of a pod that the plugin rejected. State that a
//! plugin computes once per pod and needs for every node is the `Filter` or `Score` itself: it is
//! created for a cycle and dropped with it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::Text;

use super::{Nominations, Reason, Refusal, Verdict};
use crate::cache::{Cache, NodeInfo};
use crate::cycle::{Diagnosis, Filters};
use crate::events::Event;
use crate::pod::Pod;

/// The input of a cycle. It does not change during the cycle.
#[derive(Clone, Copy)]
pub struct Cycle<'c> {
    pub pod: &'c Arc<Pod>,
    pub cache: &'c Cache,
    pub nominations: &'c Nominations,
}

/// Whether a pod may enter the active queue.
pub trait PreEnqueue: Send + Sync {
    /// The reason if it may not.
    fn gate(&self, pod: &Pod) -> Option<Reason>;
}

/// The order of the active queue.
pub trait QueueSort: Send + Sync {
    /// Pods are tried in this order, smallest first.
    fn rank(&self, pod: &Pod, waiting_since: Duration) -> Rank;
}

/// A position in the active queue.
pub type Rank = (i64, Duration);

/// Which nodes a plugin filters for one pod.
pub enum PreFilterResult<'c> {
    /// None: every node fits.
    Skip,
    /// All nodes.
    All(Box<dyn Filter<'c> + 'c>),
    /// Only these nodes; no others fit.
    Only(Vec<Text>, Box<dyn Filter<'c> + 'c>),
}

/// Inspects a pod before nodes are filtered.
pub trait PreFilter: Send + Sync {
    /// # Errors
    /// If no node can fit, or the plugin fails.
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal>;
}

/// Decides for each node whether the pod fits.
pub trait Filter<'c> {
    fn check(&self, node: &NodeInfo) -> Verdict;

    /// Assumes that this pod is on the node too. `node` includes it already.
    fn pod_added(&mut self, _pod: &Pod, _node: &NodeInfo) {}

    /// Assumes that this pod is not on the node. `node` no longer includes it.
    fn pod_removed(&mut self, _pod: &Pod, _node: &NodeInfo) {}

    /// A copy whose assumptions do not affect this one.
    fn fork(&self) -> Box<dyn Filter<'c> + 'c>;
}

/// Makes room for a pod that fits no node.
pub trait PostFilter: Send + Sync {
    fn post_filter<'c>(
        &self,
        cycle: Cycle<'c>,
        filters: &Filters<'c>,
        diagnosis: &Diagnosis,
        rng: &mut fastrand::Rng,
    ) -> PostFilterResult;
}

/// A node on which a pod fits once its victims are evicted.
#[derive(Clone, Debug)]
pub struct Preemption {
    pub node: Text,
    /// The pods to evict, the most important first.
    pub victims: Vec<Arc<Pod>>,
}

pub enum PostFilterResult {
    Found(Preemption),
    /// No room can be made, for this reason. `withdraw`: clears an earlier nomination.
    None {
        message: String,
        withdraw: bool,
    },
}

/// Prepares the score of one pod.
pub trait PreScore: Send + Sync {
    /// `None`: all nodes are equal for this plugin. `nodes` are those that fit.
    ///
    /// # Errors
    /// If the plugin fails.
    fn pre_score<'c>(
        &'c self,
        cycle: Cycle<'c>,
        nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal>;
}

/// Rates a node for the pod.
pub trait Score {
    fn score(&self, node: &NodeInfo) -> i64;

    /// Scales the scores of all nodes to 0..=100. They are in the order of `nodes` of
    /// [`PreScore::pre_score`].
    fn normalize(&self, _scores: &mut [i64]) {}
}

/// The highest score of a plugin.
pub const MAX_SCORE: i64 = 100;

/// Binds a pod to its node.
#[async_trait]
pub trait Bind: Send + Sync {
    async fn bind(&self, pod: &Pod, node: &str) -> Result<Bound, Refusal>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    Done,
    /// This plugin does not handle the pod: the next one is asked.
    Skip,
}

/// Decides which events may help a pod that the plugin rejected.
pub trait QueueingHint: Send + Sync {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool;
}
