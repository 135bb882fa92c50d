//! `PodTopologySpread`: pods of one kind are spread evenly over zones, hosts or other topology
//! domains.
//!
//! `DoNotSchedule` constraints filter nodes, `ScheduleAnyway` constraints score them. A pod without
//! constraints gets the default ones, over the pods that its Service or its controller selects.

use std::sync::Arc;

use coracle_api::Text;
use coracle_api::selector::LabelSelector;

use super::node_affinity::node_matches;
use super::{Args, Handle, args};
use crate::cache::{Cache, Column, Counts, NodeInfo, PodClass, Slot, spread_counts};
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, Filter, MAX_SCORE, PreFilter, PreFilterResult, PreScore, QueueingHint,
    Refusal, Score, Verdict,
};
use crate::node::Node;
use crate::pod::{Pod, SpreadConstraint};
use crate::taints::are_tolerated;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    let plugin = Arc::new(args::pod_topology_spread(args)?);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        score: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

pub(super) struct PodTopologySpread {
    /// For pods without their own. Their selectors are not used.
    pub(super) defaults: Vec<SpreadConstraint>,
    /// The defaults are the system's: nodes that lack a label are not excluded.
    pub(super) system_defaults: bool,
}

/// The default constraints, unless others are configured.
pub(super) fn system_defaults() -> Vec<SpreadConstraint> {
    let constraint = |key: &'static str, max_skew| SpreadConstraint {
        max_skew,
        topology_key: Text::const_new(key),
        hard: false,
        selector: LabelSelector::Nothing,
        min_domains: 1,
        honors_affinity: true,
        honors_taints: false,
    };

    vec![
        constraint(HOSTNAME, 3),
        constraint("topology.kubernetes.io/zone", 5),
    ]
}

impl PodTopologySpread {
    /// The hard or soft constraints of a pod.
    fn constraints(&self, cycle: Cycle<'_>, hard: bool) -> Vec<SpreadConstraint> {
        let pod = cycle.pod;
        if !pod.spread.is_empty() {
            return pod
                .spread
                .iter()
                .filter(|constraint| constraint.hard == hard)
                .cloned()
                .collect();
        }

        let defaults: Vec<_> = self
            .defaults
            .iter()
            .filter(|constraint| constraint.hard == hard)
            .collect();

        if defaults.is_empty() {
            return Vec::new();
        }

        let selector = cycle.cache.related().default_selector(pod);
        if selector.is_everything() {
            return Vec::new();
        }

        let filled = defaults.into_iter();
        filled
            .map(|constraint| SpreadConstraint {
                selector: selector.clone(),
                ..constraint.clone()
            })
            .collect()
    }
}

fn has_all_labels(node: &Node, constraints: &[SpreadConstraint]) -> bool {
    constraints
        .iter()
        .all(|constraint| node.labels.contains(&constraint.topology_key))
}

/// Whether the pods of a node count for a constraint.
fn counts_node(constraint: &SpreadConstraint, pod: &Pod, node: &Node) -> bool {
    (!constraint.honors_affinity || node_matches(pod, node))
        && (!constraint.honors_taints || are_tolerated(&node.taints, &pod.tolerations))
}

fn counts_of(cache: &Cache, pod: &Pod, constraint: &SpreadConstraint) -> Arc<Counts> {
    cache.counts(&PodClass::Selected {
        namespace: pod.namespace.clone(),
        selector: constraint.selector.clone(),
    })
}

impl PreFilter for PodTopologySpread {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        let constraints = self.constraints(cycle, true);
        if constraints.is_empty() {
            return Ok(PreFilterResult::Skip);
        }

        let (cache, pod) = (cycle.cache, &**cycle.pod);
        let nodes: Vec<&NodeInfo> = cache
            .nodes()
            .filter(|node| has_all_labels(&node.node, &constraints))
            .collect();

        let domains = constraints
            .iter()
            .map(|constraint| Domains::count(cache, pod, constraint, &nodes))
            .collect();

        Ok(PreFilterResult::All(Box::new(SpreadFilter {
            pod,
            constraints: Arc::new(constraints),
            domains,
        })))
    }
}

/// The number of pods in each domain of one constraint.
#[derive(Clone)]
struct Domains {
    column: Arc<Column>,
    /// `None`: no node of the domain counts.
    counts: Vec<Option<i64>>,
    min_domains: i64,
    fewest: i64,
}

impl Domains {
    fn count(
        cache: &Cache,
        pod: &Pod,
        constraint: &SpreadConstraint,
        nodes: &[&NodeInfo],
    ) -> Domains {
        let (column, pods) = (
            cache.column(&constraint.topology_key),
            counts_of(cache, pod, constraint),
        );

        let mut counts = vec![None; column.size()];
        for node in nodes {
            if let Some(domain) = column
                .domain(node.slot)
                .filter(|_| counts_node(constraint, pod, &node.node))
            {
                *counts[domain.index()].get_or_insert(0) += pods.on(node.slot);
            }
        }

        let mut domains = Domains {
            column,
            counts,
            min_domains: constraint.min_domains,
            fewest: 0,
        };
        domains.find_fewest();

        domains
    }

    /// Computes the fewest pods of a domain; 0 if there are fewer domains than `minDomains`.
    fn find_fewest(&mut self) {
        let known = self.counts.iter().flatten();
        let domains = i64::try_from(known.clone().count()).unwrap_or(i64::MAX);
        self.fewest = if domains < self.min_domains {
            0
        } else {
            known.min().copied().unwrap_or_default()
        };
    }

    fn change(&mut self, slot: Slot, by: i64) {
        if let Some(domain) = self.column.domain(slot) {
            *self.counts[domain.index()].get_or_insert(0) += by;
            self.find_fewest();
        }
    }
}

#[derive(Clone)]
struct SpreadFilter<'c> {
    pod: &'c Pod,
    constraints: Arc<Vec<SpreadConstraint>>,
    domains: Vec<Domains>,
}

impl SpreadFilter<'_> {
    fn change(&mut self, other: &Pod, node: &NodeInfo, by: i64) {
        if other.deleting
            || other.namespace != self.pod.namespace
            || !has_all_labels(&node.node, &self.constraints)
        {
            return;
        }

        for (constraint, domains) in self.constraints.iter().zip(&mut self.domains) {
            if spread_counts(&constraint.selector, other)
                && counts_node(constraint, self.pod, &node.node)
            {
                domains.change(node.slot, by);
            }
        }
    }
}

impl<'c> Filter<'c> for SpreadFilter<'c> {
    fn check(&self, node: &NodeInfo) -> Verdict {
        for (constraint, domains) in self.constraints.iter().zip(&self.domains) {
            let Some(domain) = domains.column.domain(node.slot) else {
                return Verdict::never(
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                );
            };

            let own = i64::from(constraint.selector.matches(&self.pod.labels));
            let with_pod = domains.counts[domain.index()].unwrap_or_default() + own;
            if with_pod - domains.fewest > constraint.max_skew {
                return Verdict::not_now("node(s) didn't match pod topology spread constraints");
            }
        }

        Verdict::Fits
    }

    fn pod_added(&mut self, pod: &Pod, node: &NodeInfo) {
        self.change(pod, node, 1);
    }

    fn pod_removed(&mut self, pod: &Pod, node: &NodeInfo) {
        self.change(pod, node, -1);
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(self.clone())
    }
}

impl PreScore for PodTopologySpread {
    fn pre_score<'c>(
        &'c self,
        cycle: Cycle<'c>,
        nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let constraints = self.constraints(cycle, false);
        if constraints.is_empty() {
            return Ok(None);
        }

        let require_all = !cycle.pod.spread.is_empty() || !self.system_defaults;
        let left_out = |node: &NodeInfo| require_all && !has_all_labels(&node.node, &constraints);
        let kept: Vec<&NodeInfo> = nodes
            .iter()
            .copied()
            .filter(|node| !left_out(node))
            .collect();

        let constraints = constraints.iter().map(|constraint| {
            SoftConstraintCounts::count(cycle, constraint, &kept, |node| !left_out(node))
        });
        let constraints = constraints.collect();
        let left_out = nodes.iter().map(|node| left_out(node)).collect();

        Ok(Some(Box::new(SpreadScore {
            constraints,
            left_out,
        })))
    }
}

/// The number of pods per domain of one soft constraint.
struct SoftConstraintCounts {
    column: Arc<Column>,
    pods: Pods,
    max_skew: i64,
    /// The more domains there are, the higher the weight of each pod.
    weight: f64,
}

enum Pods {
    /// On each host, from the counters.
    Hosts(Arc<Counts>),
    /// In each domain.
    Domains(Vec<i64>),
}

impl SoftConstraintCounts {
    #[expect(clippy::cast_precision_loss, reason = "upstream computes it in floats")]
    fn count(
        cycle: Cycle<'_>,
        constraint: &SpreadConstraint,
        kept: &[&NodeInfo],
        counted: impl Fn(&NodeInfo) -> bool,
    ) -> SoftConstraintCounts {
        let (cache, pod) = (cycle.cache, cycle.pod);
        let (column, pods) = (
            cache.column(&constraint.topology_key),
            counts_of(cache, pod, constraint),
        );

        let counts_of_one = |pods, size: usize| SoftConstraintCounts {
            column: Arc::clone(&column),
            pods,
            max_skew: constraint.max_skew,
            weight: ((size + 2) as f64).ln(),
        };

        if constraint.topology_key == HOSTNAME {
            return counts_of_one(Pods::Hosts(pods), kept.len());
        }

        // Nodes without the label are one more domain, if they are not excluded.
        let mut present = vec![false; column.size() + 1];
        for node in kept {
            present[column
                .domain(node.slot)
                .map_or(column.size(), |domain| domain.index())] = true;
        }

        let mut numbers = vec![0; column.size()];
        for node in cache
            .nodes()
            .filter(|node| counted(node) && counts_node(constraint, pod, &node.node))
        {
            if let Some(domain) = column.domain(node.slot) {
                numbers[domain.index()] += pods.on(node.slot);
            }
        }

        counts_of_one(
            Pods::Domains(numbers),
            present.iter().filter(|present| **present).count(),
        )
    }

    #[expect(clippy::cast_precision_loss, reason = "upstream computes it in floats")]
    fn score(&self, slot: Slot) -> f64 {
        let Some(domain) = self.column.domain(slot) else {
            return 0.0;
        };
        let pods = match &self.pods {
            Pods::Hosts(counts) => counts.on(slot),
            Pods::Domains(numbers) => numbers[domain.index()],
        };
        pods as f64 * self.weight + (self.max_skew - 1) as f64
    }
}

struct SpreadScore {
    constraints: Vec<SoftConstraintCounts>,
    /// In the order of the scored nodes: those that lack a label.
    left_out: Vec<bool>,
}

impl Score for SpreadScore {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "upstream computes it in floats"
    )]
    fn score(&self, node: &NodeInfo) -> i64 {
        self.constraints
            .iter()
            .map(|counts_of_one| counts_of_one.score(node.slot))
            .sum::<f64>()
            .round() as i64
    }

    fn normalize(&self, scores: &mut [i64]) {
        let kept = scores
            .iter()
            .zip(&self.left_out)
            .filter(|(_, left_out)| !**left_out)
            .map(|(score, _)| *score);

        let (least, most) = (
            kept.clone().min().unwrap_or_default(),
            kept.max().unwrap_or_default(),
        );

        for (score, left_out) in scores.iter_mut().zip(&self.left_out) {
            *score = match (left_out, most) {
                (true, _) => 0,
                (false, 0) => MAX_SCORE,
                (false, most) => MAX_SCORE * (most + least - *score) / most,
            };
        }
    }
}

impl QueueingHint for PodTopologySpread {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        // Default constraints depend on related objects, which are not available here: any event
        // may help.
        let hard: Vec<&SpreadConstraint> = pod
            .spread
            .iter()
            .filter(|constraint| constraint.hard)
            .collect();

        let selects = |other: &Pod| {
            hard.is_empty() || hard.iter().any(|own| own.selector.matches(&other.labels))
        };
        let involved = |other: &Pod| {
            other.uid == pod.uid || (other.is_placed() && other.namespace == pod.namespace)
        };
        let labelled = |node: &Node| {
            hard.iter()
                .all(|own| node.labels.contains(&own.topology_key))
        };

        match event {
            Event::PodAdded(other) | Event::PodRemoved(other) => involved(other) && selects(other),
            Event::PodChanged { old, new } if involved(new) => {
                let tolerates_more = new.uid == pod.uid && old.tolerations != new.tolerations;
                (tolerates_more && hard.iter().any(|own| own.honors_taints))
                    || (old.labels != new.labels && selects(old) != selects(new))
            }
            Event::NodeAdded(node) | Event::NodeRemoved(node) => labelled(node),
            Event::NodeChanged { old, new } => {
                let moved = |own: &&SpreadConstraint| {
                    old.labels.get(&own.topology_key) != new.labels.get(&own.topology_key)
                };
                labelled(old) != labelled(new)
                    || (labelled(new) && (hard.iter().any(moved) || old.taints != new.taints))
            }
            _ => false,
        }
    }
}

const HOSTNAME: &str = "kubernetes.io/hostname";
