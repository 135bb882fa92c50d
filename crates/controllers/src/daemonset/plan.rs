//! What one DaemonSet needs now. Pure.
//!
//! Every node that fits has one pod of the current template. Pods are created where they are
//! missing and deleted where there should be none, or one too many; after that, pods of an old
//! template are replaced, a few at a time (`rolling`). Before all this there must be a revision of
//! the current template, whose hash the pods carry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_api::{Map, Text, Value};
use coracle_client::Cached;

use super::fit::{Constraints, Fit, GENERATION};
use super::status::status;
use super::{HASH, rolling};
use crate::history::{self, History, Revision};
use crate::pods::{Claims, claims};
use crate::views::{DaemonSet, Node, Phase, Pod, next_available};

/// The most pods created, and the most deleted, in one reconcile.
pub const BURST: usize = 250;

/// All that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The DaemonSet.
    pub set: Arc<Cached<DaemonSet>>,
    /// All nodes, by name.
    pub nodes: Vec<Arc<Cached<Node>>>,
    /// The pods that it controls, and those of its namespace that nothing controls.
    pub pods: Vec<Arc<Cached<Pod>>>,
    /// The revisions that it controls, and those of its namespace that nothing controls.
    pub revisions: Vec<Arc<Cached<Revision>>>,
    /// Whether all expectations are met.
    pub settled: bool,
    /// Until when a failed pod is left on a node.
    pub backoff: BTreeMap<Text, Timestamp>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Ownership of the pods.
    pub claims: Claims,
    /// Ownership of the revisions, and the current one.
    pub history: History,
    /// The next step.
    pub step: Step,
    /// The status, except for what is only known after the step.
    pub status: Map,
    /// When to reconcile again without an event.
    pub wake_after: Option<Duration>,
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing: it selects every pod, which is a user error.
    SelectsAll,
    /// Nothing: it is being deleted.
    Going,
    /// Write the revision of the current template.
    Revise,
    /// Only write the status; expectations are not met yet.
    Wait,
    /// Create and delete pods, and delete old revisions.
    Pods(Pods, Vec<Arc<Cached<Revision>>>),
}

/// Pods to create and delete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pods {
    /// Nodes that get a pod.
    pub create: Vec<Text>,
    /// Pods to delete.
    pub delete: Vec<Arc<Cached<Pod>>>,
    /// Those of them that have ended, and their nodes.
    pub ended: Vec<(Arc<Cached<Pod>>, Text)>,
}

/// The pods of one node.
pub(super) type OnNode = Vec<Arc<Cached<Pod>>>;

/// What is the same for all nodes.
pub(super) struct View<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) fits: BTreeMap<Text, Fit>,
    pub(super) by_node: BTreeMap<Text, OnNode>,
    /// The hashes of the current template.
    hashes: Vec<&'a str>,
    pub(super) now: Timestamp,
}

impl View<'_> {
    /// Whether a pod is of the current template.
    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        let label = |name: &str| pod.labels.get(name).and_then(Value::as_str);
        let by_hash = label(HASH).is_some_and(|hash| self.hashes.contains(&hash));
        let generation = self.set.template_generation();
        by_hash || (generation.is_some() && label(GENERATION) == generation)
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pod.is_available(self.set.min_ready_seconds(), self.now)
    }

    /// How many nodes should have a pod.
    pub(super) fn wanted(&self) -> usize {
        self.fits.values().filter(|fit| **fit == Fit::Runs).count()
    }
}

/// Decides what the DaemonSet needs.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let set: &DaemonSet = &observed.set;
    let mut plan = Plan {
        claims: Claims::default(),
        history: History::default(),
        step: Step::Going,
        status: Map::new(),
        wake_after: None,
    };

    let (Some(selector), Some(template)) = (&set.selector, set.template()) else {
        return plan;
    };
    if selector.is_everything() {
        plan.step = Step::SelectsAll;
        return plan;
    }

    if set.is_being_deleted() {
        return plan;
    }

    plan.claims = claims(&observed.set, &observed.pods);
    plan.history = history::sort(&set.object, selector, template, &observed.revisions);

    let same = plan
        .history
        .current
        .iter()
        .chain(&plan.history.old)
        .filter(|one| one.is_of(template));
    let hashes = same.map(|revision| revision.label(HASH)).collect();

    let constraints = Constraints::of(set);
    let fits = observed
        .nodes
        .iter()
        .map(|node| (node.key.name.clone(), constraints.fit(node)))
        .collect();

    let view = View {
        set,
        fits,
        by_node: by_node(&plan.claims.claimed),
        hashes,
        now,
    };
    plan.status = status(&view);

    plan.wake_after = next_available(&plan.claims.claimed, set.min_ready_seconds(), now);

    // Orphaned revisions are adopted even if the newest needs no new number.
    let is_claimed = plan.history.adopt.is_empty() && plan.history.release.is_empty();
    let newest = plan.history.current.as_ref();

    let is_current =
        is_claimed && newest.is_some_and(|current| current.number >= plan.history.next_number());
    plan.step = match (is_current, observed.settled) {
        (false, _) => Step::Revise,
        (true, false) => Step::Wait,
        (true, true) => {
            let (pods, backoff) = pods(&view, observed);
            plan.wake_after = [plan.wake_after, backoff].into_iter().flatten().min();
            Step::Pods(pods, surplus(set, &plan))
        }
    };

    if matches!(plan.step, Step::Pods(..)) {
        plan.status
            .insert("observedGeneration", set.object.meta().generation());
    }

    plan
}

/// The pods of each node, without those that have ended and are being deleted.
fn by_node(pods: &[Arc<Cached<Pod>>]) -> BTreeMap<Text, OnNode> {
    let mut by_node: BTreeMap<Text, OnNode> = BTreeMap::new();
    for pod in pods
        .iter()
        .filter(|pod| !(pod.has_ended() && pod.is_being_deleted))
    {
        if !pod.target().is_empty() {
            by_node
                .entry(pod.target().clone())
                .or_default()
                .push(pod.clone());
        }
    }

    // The first one counts: scheduled, and the oldest.
    for pods in by_node.values_mut() {
        pods.sort_by(|one, other| {
            let order =
                |pod: &Cached<Pod>| (pod.node.is_empty(), pod.created, pod.key.name.clone());
            order(one).cmp(&order(other))
        });
    }

    by_node
}

fn surplus(set: &DaemonSet, plan: &Plan) -> Vec<Arc<Cached<Revision>>> {
    let is_live = |revision: &Cached<Revision>| {
        let hash = revision.label(HASH);
        plan.claims
            .claimed
            .iter()
            .any(|pod| pod.labels.get(HASH).and_then(Value::as_str) == Some(hash))
    };
    plan.history.surplus(set.history_limit(), is_live)
}

/// Pods to create and delete, and the shortest remaining delay of failed ones.
fn pods(view: &View<'_>, observed: &Observed) -> (Pods, Option<Duration>) {
    let mut pods = Pods::default();
    let mut backoff: Option<Timestamp> = None;
    for (node, fit) in &view.fits {
        let there = view.by_node.get(node);
        match (fit, there) {
            (Fit::Runs, None) => pods.create.push(node.clone()),
            (Fit::Runs | Fit::Stays, Some(there)) => {
                let until = observed
                    .backoff
                    .get(node)
                    .copied()
                    .filter(|until| *until > view.now);

                let waits = on_node(view, node, *fit, there, until.is_some(), &mut pods);
                if waits {
                    backoff = [backoff, until].into_iter().flatten().min();
                }
            }
            (Fit::No, Some(there)) => {
                pods.delete
                    .extend(there.iter().filter(|pod| !pod.is_being_deleted).cloned());
            }
            (Fit::Stays | Fit::No, None) => {}
        }
    }

    // Unscheduled pods whose node no longer exists.
    let lost = view
        .by_node
        .iter()
        .filter(|(node, _)| !view.fits.contains_key(*node));

    pods.delete.extend(
        lost.flat_map(|(_, there)| there.iter().filter(|pod| pod.node.is_empty()).cloned()),
    );

    if pods == Pods::default() && view.set.rolls() {
        pods = rolling::replace(view);
    }

    pods.create.truncate(BURST);
    pods.delete.truncate(BURST);

    (
        pods,
        backoff.and_then(|until| until.since(view.now).to_std()),
    )
}

/// Decides for a node that fits and has pods; `true`: a failed pod is left for a while.
fn on_node(
    view: &View<'_>,
    node: &Text,
    fit: Fit,
    there: &OnNode,
    patient: bool,
    pods: &mut Pods,
) -> bool {
    let mut running = Vec::new();
    let mut waits = false;
    for pod in there.iter().filter(|pod| !pod.is_being_deleted) {
        match pod.phase {
            Phase::Failed if patient => waits = true,
            Phase::Failed | Phase::Succeeded => {
                pods.delete.push(pod.clone());
                pods.ended.push((pod.clone(), node.clone()));
            }
            _ => running.push(pod),
        }
    }

    if view.set.surge(1) == 0 {
        pods.delete.extend(running.into_iter().skip(1).cloned());
        return waits;
    }

    if running.is_empty() && fit == Fit::Runs {
        pods.create.push(node.clone());
    }
    if running.len() > 1 {
        one_of_each(view, &running, pods);
    }

    waits
}

/// Keeps the oldest pod of each template, and none of the old template once a new one is available.
fn one_of_each(view: &View<'_>, running: &[&Arc<Cached<Pod>>], pods: &mut Pods) {
    let (new, old): (Vec<&Arc<Cached<Pod>>>, Vec<_>) =
        running.iter().partition(|pod| view.is_updated(pod));
    pods.delete.extend(
        new.iter()
            .skip(1)
            .chain(old.iter().skip(1))
            .map(|pod| Arc::clone(pod)),
    );

    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!old.is_ready() || view.is_available(new))
    {
        pods.delete.push((*old).clone());
    }
}
