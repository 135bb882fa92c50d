//! `DefaultPreemption`: makes room for an important pod by evicting less important ones.
//!
//! Each node that would fit without some of its pods is simulated: all less important pods are
//! removed, then as many as possible are added back, the most important first, and before them
//! those protected by a disruption budget. The rest are the victims. The pod is nominated to the
//! node with the least important victims, and scheduled in a later cycle, when they are deleted,
//! unless another node fits earlier.

use std::cmp::Reverse;
use std::sync::Arc;

use coracle_api::Text;
use coracle_api::time::Timestamp;

use super::{Args, Handle, args};
use crate::cache::NodeInfo;
use crate::cycle::{Diagnosis, Filters};
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, PostFilter, PostFilterResult, Preemption, QueueingHint, Verdict,
};
use crate::pod::Pod;
use crate::related::Budget;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    let plugin = Arc::new(args::default_preemption(args)?);
    Ok(Extensions {
        post_filter: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

pub(super) struct DefaultPreemption {
    /// The fewest nodes tried, in percent,
    pub(super) min_candidates_percentage: usize,
    /// and as a number.
    pub(super) min_candidates: usize,
}

impl DefaultPreemption {
    fn candidates_needed(&self, nodes: usize) -> usize {
        (nodes * self.min_candidates_percentage / 100)
            .max(self.min_candidates)
            .min(nodes)
    }
}

impl PostFilter for DefaultPreemption {
    fn post_filter<'c>(
        &self,
        cycle: Cycle<'c>,
        filters: &Filters<'c>,
        diagnosis: &Diagnosis,
        rng: &mut fastrand::Rng,
    ) -> PostFilterResult {
        if let Err(reason) = may_preempt(cycle, diagnosis) {
            return PostFilterResult::None {
                message: format!("preemption: {reason}"),
                withdraw: false,
            };
        }

        let nodes = diagnosis.worth_preempting(cycle.cache);
        let mut tried = Diagnosis::new(diagnosis.nodes);
        tried.others = Verdict::never("Preemption is not helpful for scheduling");

        let candidates = self.candidates(cycle, filters, &nodes, &mut tried, rng);
        match best_candidate(candidates) {
            Some(best) => PostFilterResult::Found(Preemption {
                node: best.node,
                victims: best.victims,
            }),
            None => PostFilterResult::None {
                message: format!("preemption: {}", tried.message()),
                withdraw: true,
            },
        }
    }
}

/// Whether the pod may preempt others now.
fn may_preempt(cycle: Cycle<'_>, diagnosis: &Diagnosis) -> Result<(), &'static str> {
    let pod = cycle.pod;
    if pod.never_preempts {
        return Err("not eligible due to preemptionPolicy=Never.");
    }

    let promised = cycle
        .nominations
        .node_of(&pod.uid)
        .unwrap_or(&pod.nominated_node);

    let Some(node) = cycle.cache.named(promised) else {
        return Ok(());
    };
    if matches!(diagnosis.verdict_of(node.slot), Verdict::Never(_)) {
        return Ok(());
    }

    let waits = node
        .pods
        .iter()
        .any(|other| other.priority < pod.priority && other.deleting && other.preempted);

    if waits {
        Err("not eligible due to a terminating pod on the nominated node.")
    } else {
        Ok(())
    }
}

/// A node with the pods to evict.
struct Candidate {
    node: Text,
    /// The most important first; never empty.
    victims: Vec<Arc<Pod>>,
    /// Victims protected by a budget.
    violations: usize,
}

impl DefaultPreemption {
    fn candidates<'c>(
        &self,
        cycle: Cycle<'c>,
        filters: &Filters<'c>,
        nodes: &[&NodeInfo],
        tried: &mut Diagnosis,
        rng: &mut fastrand::Rng,
    ) -> Vec<Candidate> {
        let (mut harmless, mut harmful) = (Vec::new(), Vec::new());
        if nodes.is_empty() {
            return harmless;
        }

        let wanted = self.candidates_needed(nodes.len());
        let offset = rng.usize(0..nodes.len());
        for turn in 0..nodes.len() {
            let node = nodes[(offset + turn) % nodes.len()];
            match victims_on(cycle, filters, node) {
                Ok(candidate) if candidate.violations == 0 => harmless.push(candidate),
                Ok(candidate) => harmful.push(candidate),
                Err(verdict) => tried.reject(node.slot, "DefaultPreemption", verdict),
            }

            if !harmless.is_empty() && harmless.len() + harmful.len() >= wanted {
                break;
            }
        }

        harmless.append(&mut harmful);

        harmless
    }
}

/// The pods to evict from a node.
fn victims_on<'c>(
    cycle: Cycle<'c>,
    filters: &Filters<'c>,
    node: &NodeInfo,
) -> Result<Candidate, Verdict> {
    let (mut filters, mut node) = (filters.fork(), node.clone());
    let mut lesser: Vec<Arc<Pod>> = node
        .pods
        .iter()
        .filter(|other| other.priority < cycle.pod.priority)
        .cloned()
        .collect();

    if lesser.is_empty() {
        return Err(Verdict::never(
            "No preemption victims found for incoming pod",
        ));
    }

    for pod in &lesser {
        node.remove(&pod.uid);
        filters.pod_removed(pod, &node);
    }

    if let Some((_, verdict)) = filters.check_with_nominated(cycle, &node) {
        return Err(verdict);
    }

    lesser.sort_by_key(importance);
    let (protected, free) = split_by_budgets(cycle.cache.related().budgets(), lesser);
    let mut victims = Vec::new();
    let mut violations = 0;
    let protected_first = protected
        .into_iter()
        .map(|pod| (pod, 1))
        .chain(free.into_iter().map(|pod| (pod, 0)));

    for (pod, violation) in protected_first {
        node.add(Arc::clone(&pod));
        filters.pod_added(&pod, &node);
        if filters.check_with_nominated(cycle, &node).is_some() {
            node.remove(&pod.uid);
            filters.pod_removed(&pod, &node);
            victims.push(pod);
            violations += violation;
        }
    }

    victims.sort_by_key(importance);

    match victims.is_empty() {
        true => Err(Verdict::Never(Vec::new())),
        false => Ok(Candidate {
            node: node.node.name.clone(),
            victims,
            violations,
        }),
    }
}

/// Sort key, the most important first: the highest priority, then the longest running.
fn importance(pod: &Arc<Pod>) -> (Reverse<i32>, bool, Option<Timestamp>) {
    (
        Reverse(pod.priority),
        pod.start_time.is_none(),
        pod.start_time,
    )
}

/// Pods whose eviction would violate a budget, and the others; both in order.
fn split_by_budgets<'b>(
    budgets: impl Iterator<Item = &'b Budget>,
    pods: Vec<Arc<Pod>>,
) -> (Vec<Arc<Pod>>, Vec<Arc<Pod>>) {
    let mut allowed: Vec<(&Budget, i64)> = budgets.map(|budget| (budget, budget.allowed)).collect();
    pods.into_iter().partition(|pod| {
        let mut violates = false;
        for (_, left) in allowed
            .iter_mut()
            .filter(|(budget, _)| budget.protects(pod))
        {
            *left -= 1;
            violates |= *left < 0;
        }

        violates
    })
}

/// The best candidate: fewest budget violations, then the least important most important victim,
/// then the smallest sum of priorities, then the fewest victims, then the latest start of the most
/// important victims.
fn best_candidate(candidates: Vec<Candidate>) -> Option<Candidate> {
    // The sum counts pods of negative priority, too.
    let weight = |pod: &Arc<Pod>| i64::from(pod.priority) + i64::from(i32::MAX) + 1;
    candidates.into_iter().min_by_key(|candidate| {
        let victims = &candidate.victims;
        let highest = victims.iter().map(|pod| pod.priority).max();
        let starts = victims.iter().filter(|pod| Some(pod.priority) == highest);

        // A pod that has not started yet counts as started now.
        let earliest = starts
            .map(|pod| (pod.start_time.is_none(), pod.start_time))
            .min();
        let sum: i64 = victims.iter().map(weight).sum();

        (
            candidate.violations,
            highest,
            sum,
            victims.len(),
            Reverse(earliest),
        )
    })
}

impl QueueingHint for DefaultPreemption {
    /// The deletion of victims is handled where they are evicted; no other event helps.
    fn may_help(&self, _pod: &Pod, _event: &Event) -> bool {
        false
    }
}
