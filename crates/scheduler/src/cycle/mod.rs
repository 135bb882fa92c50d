//! The scheduling cycle: finds a node for one pod.
//!
//! Pure, without waiting: the input is the cache, which does not change during a cycle, and a
//! random number generator. [`schedule`] runs the PreFilter plugins, then filters nodes, starting
//! where the last search stopped, until enough fit; it scores those and takes the best. If none
//! fits it returns why ([`Diagnosis`]) and runs the PostFilter plugins.

mod diagnosis;
mod filters;
#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a reference evaluation computes as upstream does"
)]
mod reference;
#[cfg(test)]
mod tests;
mod timing;

use std::time::Duration;

use coracle_api::Text;

pub use diagnosis::{Diagnosis, Rejected};
pub use filters::Filters;
use filters::{PreFilterRejected, PreFiltered};
pub use timing::{Point, Status, Timing};

use crate::cache::{NodeInfo, Slot};
use crate::framework::{
    Cycle, MAX_SCORE, PostFilterResult, Preemption, Profile, Reason, Refusal, Verdict,
    WeightedScore,
};

/// The node chosen for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub node: Text,
    /// The number of evaluated nodes.
    pub evaluated: usize,
    /// The number of nodes that fit.
    pub feasible: usize,
}

/// Why a pod gets no node now.
#[derive(Debug)]
pub enum Unschedulable {
    NoNodes,
    Unfit(Box<Unfit>),
    /// A plugin failed.
    Failed(String),
}

/// No node fits.
#[derive(Debug)]
pub struct Unfit {
    pub diagnosis: Diagnosis,
    pub nomination: Nomination,
    /// The preemption that makes the pod fit.
    pub preemption: Option<Preemption>,
}

/// What happens to the pod's nominated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    /// It stays as it is.
    Keep,
    Clear,
    Set(Text),
}

/// Where the next search starts: rotates over the nodes, so that not every pod starts with the same
/// ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search {
    next: usize,
}

/// Finds a node for a pod.
///
/// # Errors
/// If no node fits, or a plugin fails.
pub fn schedule(
    profile: &Profile,
    cycle: Cycle<'_>,
    search: &mut Search,
    rng: &mut fastrand::Rng,
    timing: &mut Timing,
) -> Result<Placement, Unschedulable> {
    if cycle.cache.order().is_empty() {
        return Err(Unschedulable::NoNodes);
    }

    let mut diagnosis = Diagnosis::new(cycle.cache.order().len());
    let began = timing.now();
    let pre_filtered = Filters::pre_filter(profile, cycle);
    timing.point(Point::PreFilter, pre_filter_status(&pre_filtered), began);
    let pre_filtered = match pre_filtered {
        Ok(pre_filtered) => pre_filtered,
        Err(closed) => {
            let unfit = rejected_unfit(profile, cycle, closed, diagnosis, rng, timing);
            return Err(unfit);
        }
    };
    diagnosis.rejectors.clone_from(&pre_filtered.named_by);

    if let Some((plugin, refusal)) = pre_filtered.refused {
        diagnosis.rejectors.insert(plugin);
        put_refusal(&mut diagnosis, refusal);
        let filters = &pre_filtered.filters;
        return Err(unfit(profile, cycle, filters, diagnosis, rng, timing));
    }

    let began = timing.now();
    let feasible = match nominated_node(cycle, &pre_filtered.filters) {
        Some(node) => vec![node],
        None => find_feasible(profile, cycle, &pre_filtered, &mut diagnosis, search),
    };
    timing.point(Point::Filter, Status::Success, began);
    let evaluated = feasible.len() + diagnosis.rejected.len();

    let node = match feasible.as_slice() {
        [] => {
            let filters = &pre_filtered.filters;
            return Err(unfit(profile, cycle, filters, diagnosis, rng, timing));
        }
        // A single node needs no score.
        [node] => node,
        several => best(profile, cycle, several, rng, timing).map_err(Unschedulable::Failed)?,
    };

    Ok(Placement {
        node: node.node.name.clone(),
        evaluated,
        feasible: feasible.len(),
    })
}

/// The nominated node of the pod, if it fits now.
fn nominated_node<'c>(cycle: Cycle<'c>, filters: &Filters<'c>) -> Option<&'c NodeInfo> {
    let promised = cycle
        .nominations
        .node_of(&cycle.pod.uid)
        .unwrap_or(&cycle.pod.nominated_node);
    let node = cycle.cache.named(promised)?;
    filters
        .check_with_nominated(cycle, node)
        .is_none()
        .then_some(node)
}

fn find_feasible<'c>(
    profile: &Profile,
    cycle: Cycle<'c>,
    pre_filtered: &PreFiltered<'c>,
    diagnosis: &mut Diagnosis,
    search: &mut Search,
) -> Vec<&'c NodeInfo> {
    let all = cycle.cache.order();
    let named: Option<Vec<Slot>> = pre_filtered.only.as_ref().map(|names| {
        let plugins: Vec<_> = pre_filtered.named_by.iter().copied().collect();
        let reason = format!("node(s) didn't satisfy plugin(s) [{}]", plugins.join(" "));
        diagnosis.others = Verdict::Never(vec![Reason::from(reason)]);
        names
            .iter()
            .filter_map(|name| cycle.cache.named(name))
            .map(|node| node.slot)
            .collect()
    });

    let nodes = named.as_deref().unwrap_or(all);
    let enough = if profile.scores.is_empty() {
        1
    } else {
        enough_nodes(profile, nodes.len())
    };

    let mut feasible = Vec::new();
    for turn in 0..nodes.len() {
        if feasible.len() == enough {
            break;
        }

        let slot = nodes[(search.next + turn) % nodes.len()];
        let node = cycle.cache.node(slot);
        match pre_filtered.filters.check_with_nominated(cycle, node) {
            None => feasible.push(node),
            Some((plugin, verdict)) => diagnosis.reject(slot, plugin, verdict),
        }
    }

    search.next = (search.next + feasible.len() + diagnosis.rejected.len()) % all.len();

    feasible
}

/// How many fitting nodes are searched for among this many.
fn enough_nodes(profile: &Profile, nodes: usize) -> usize {
    if nodes < FEW_NODES {
        return nodes;
    }
    let percentage = match usize::try_from(profile.percentage_of_nodes_to_score) {
        Ok(0) | Err(_) => 50_usize.saturating_sub(nodes / 125).max(LEAST_PERCENTAGE),
        Ok(percentage) => percentage,
    };
    (nodes * percentage / 100).max(FEW_NODES)
}

/// The best of several nodes; random among equals, otherwise an empty cluster would fill up node by
/// node.
fn best<'c>(
    profile: &Profile,
    cycle: Cycle<'c>,
    nodes: &[&'c NodeInfo],
    rng: &mut fastrand::Rng,
    timing: &mut Timing,
) -> Result<&'c NodeInfo, String> {
    let totals = score(profile, cycle, nodes, timing)?;
    let highest = totals.iter().max().copied().unwrap_or_default();
    let equals = totals.iter().filter(|total| **total == highest).count();
    let chosen = rng.usize(0..equals);
    let mut winners = nodes
        .iter()
        .zip(&totals)
        .filter(|(_, total)| **total == highest);
    Ok(winners.nth(chosen).expect("as many as were counted").0)
}

/// The total score of each node.
pub(crate) fn score(
    profile: &Profile,
    cycle: Cycle<'_>,
    nodes: &[&NodeInfo],
    timing: &mut Timing,
) -> Result<Vec<i64>, String> {
    if profile.scores.is_empty() {
        return Ok(vec![1; nodes.len()]);
    }

    let mut totals = vec![0; nodes.len()];
    let (mut preparing, mut scoring) = (Duration::ZERO, Duration::ZERO);
    let mut began = timing.now();
    for WeightedScore {
        plugin,
        weight,
        inner,
    } in &profile.scores
    {
        let prepared = inner.pre_score(cycle, nodes);
        let status = match &prepared {
            Ok(_) => Status::Success,
            Err(refusal) => Status::of(refusal),
        };
        let (prepared_at, took) = timing.plugin(Point::PreScore, plugin, status, began);
        (began, preparing) = (prepared_at, preparing + took);

        let prepared = prepared.map_err(|refusal| match refusal {
            Refusal::Failed(error) => format!("running PreScore plugin \"{plugin}\": {error}"),
            Refusal::NotNow(reasons) | Refusal::Never(reasons) => {
                format!(
                    "running PreScore plugin \"{plugin}\": {}",
                    reasons.join(", ")
                )
            }
        })?;
        let Some(prepared) = prepared else { continue };

        let mut scores: Vec<i64> = nodes.iter().map(|node| prepared.score(node)).collect();
        prepared.normalize(&mut scores);
        let (scored_at, took) = timing.plugin(Point::Score, plugin, Status::Success, began);
        (began, scoring) = (scored_at, scoring + took);

        for (total, score) in totals.iter_mut().zip(scores) {
            if !(0..=MAX_SCORE).contains(&score) {
                return Err(format!(
                    "plugin \"{plugin}\" returns an invalid score {score}, it should in the range of [0, {MAX_SCORE}] after normalizing"
                ));
            }
            *total += weight * score;
        }
    }

    // Each plugin scores after it has prepared, so the two add up from plugin to plugin.
    for (point, took) in [(Point::PreScore, preparing), (Point::Score, scoring)] {
        timing.points.push((point, Status::Success, took));
    }

    Ok(totals)
}

/// Evaluates all nodes: the names of those that fit, with their total scores.
#[cfg(test)]
pub(crate) fn evaluate_all(
    profile: &Profile,
    cycle: Cycle<'_>,
) -> Result<Vec<(String, i64)>, String> {
    let Ok(pre_filtered) = Filters::pre_filter(profile, cycle) else {
        return Ok(Vec::new());
    };
    let allowed = |node: &&NodeInfo| {
        pre_filtered
            .only
            .as_ref()
            .is_none_or(|only| only.contains(&node.node.name))
    };

    let fits = |node: &&NodeInfo| {
        pre_filtered
            .filters
            .check_with_nominated(cycle, node)
            .is_none()
    };
    let nodes: Vec<_> = cycle.cache.nodes().filter(allowed).filter(fits).collect();
    let mut timing = Timing::new(tokio::time::Instant::now);
    let totals = score(profile, cycle, &nodes, &mut timing)?;

    Ok(nodes
        .iter()
        .map(|node| node.name().to_owned())
        .zip(totals)
        .collect())
}

/// How the PreFilter plugins ended.
fn pre_filter_status(result: &Result<PreFiltered<'_>, PreFilterRejected>) -> Status {
    let refusal = match result {
        Ok(pre_filtered) => pre_filtered.refused.as_ref().map(|(_, refusal)| refusal),
        Err(rejected) => Some(&rejected.refusal),
    };
    refusal.map_or(Status::Success, Status::of)
}

fn put_refusal(diagnosis: &mut Diagnosis, refusal: Refusal) {
    let (reasons, others) = match refusal {
        Refusal::NotNow(reasons) => (reasons.clone(), Verdict::NotNow(reasons)),
        Refusal::Never(reasons) => (reasons.clone(), Verdict::Never(reasons)),
        Refusal::Failed(_) => return,
    };
    diagnosis.before = Some(reasons.join(", "));
    diagnosis.others = others;
}

fn rejected_unfit(
    profile: &Profile,
    cycle: Cycle<'_>,
    closed: PreFilterRejected,
    mut diagnosis: Diagnosis,
    rng: &mut fastrand::Rng,
    timing: &mut Timing,
) -> Unschedulable {
    if let Refusal::Failed(error) = closed.refusal {
        return Unschedulable::Failed(error);
    }
    diagnosis.rejectors = closed.named_by;
    diagnosis.rejectors.extend(closed.plugin);
    put_refusal(&mut diagnosis, closed.refusal);
    unfit(profile, cycle, &Filters::none(), diagnosis, rng, timing)
}

/// No node fits: runs the PostFilter plugins, and adds their result.
fn unfit<'c>(
    profile: &Profile,
    cycle: Cycle<'c>,
    filters: &Filters<'c>,
    mut diagnosis: Diagnosis,
    rng: &mut fastrand::Rng,
    timing: &mut Timing,
) -> Unschedulable {
    let mut nomination = if profile.post_filters.is_empty() {
        Nomination::Clear
    } else {
        Nomination::Keep
    };

    let (mut preemption, mut said) = (None, Vec::new());
    let began = timing.now();
    let mut plugin_began = began;
    for plugin in &profile.post_filters {
        let result = plugin.inner.post_filter(cycle, filters, &diagnosis, rng);
        let status = match result {
            PostFilterResult::Found(_) => Status::Success,
            PostFilterResult::None { .. } => Status::Unschedulable,
        };
        (plugin_began, _) = timing.plugin(Point::PostFilter, plugin.plugin, status, plugin_began);

        match result {
            PostFilterResult::Found(found) => {
                nomination = Nomination::Set(found.node.clone());
                preemption = Some(found);
                said.clear();
                break;
            }
            PostFilterResult::None { message, withdraw } => {
                said.push(message);
                if withdraw {
                    nomination = Nomination::Clear;
                }
            }
        }
    }

    let status = match preemption {
        Some(_) => Status::Success,
        None => Status::Unschedulable,
    };
    timing.point(Point::PostFilter, status, began);
    diagnosis.after = Some(said.join(", "));

    Unschedulable::Unfit(Box::new(Unfit {
        diagnosis,
        nomination,
        preemption,
    }))
}

/// In smaller clusters every node is evaluated.
const FEW_NODES: usize = 100;
const LEAST_PERCENTAGE: usize = 5;
