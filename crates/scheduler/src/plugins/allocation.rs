//! Scores of how full a node would be.

use coracle_api::Text;

use crate::cache::NodeInfo;
use crate::framework::{BEST, Score};
use crate::resources::{CPU, MEMORY, Resources, is_scalar};

/// How fullness becomes a score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub kind: StrategyKind,
    pub resources: Vec<ResourceWeight>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceWeight {
    pub name: Text,
    pub weight: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategyKind {
    /// The emptier, the better.
    LeastAllocated,
    /// The fuller, the better.
    MostAllocated,
    /// By a line through these points.
    RequestedToCapacityRatio(Vec<Point>),
    /// The more evenly CPU and memory are used, the better.
    Balanced,
}

/// A point of the line: at so many percent used, this score of 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub utilization: i64,
    pub score: i64,
}

/// Which sums of a node's pods are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requested {
    Exact,
    /// With a minimum for containers that ask for none.
    WithMinimums,
}

/// The score of one pod.
pub(super) struct Allocation<'c> {
    strategy: &'c Strategy,
    sums: Requested,
    /// What the pod asks for, in the order of the strategy's resources.
    wanted: Vec<i64>,
}

/// One resource of a node: what it has, what is used, and what would be with the pod.
struct Fill {
    has: i64,
    used: i64,
    with_pod: i64,
    weight: i64,
}

impl<'c> Allocation<'c> {
    pub(super) fn new(strategy: &'c Strategy, sums: Requested, pod: &Resources) -> Allocation<'c> {
        let wanted = strategy.resources.iter().map(|resource| pod.amount(&resource.name)).collect();
        Allocation { strategy, sums, wanted }
    }

    /// Whether the pod asks for nothing that counts.
    pub(super) fn is_for_nothing(&self) -> bool {
        self.wanted.iter().all(|wanted| *wanted == 0)
    }

    fn fills(&self, node: &NodeInfo) -> impl Iterator<Item = Fill> {
        let resources = self.strategy.resources.iter().zip(&self.wanted);
        // Of what only some nodes have, the others are not judged by pods that do not want it.
        let resources = resources.filter(|(resource, wanted)| **wanted != 0 || !is_scalar(&resource.name));
        resources.filter_map(|(resource, wanted)| {
            let has = node.node.allocatable.amount(&resource.name);
            let used = match (resource.name.as_str(), self.sums) {
                (CPU, Requested::WithMinimums) => node.nonzero_milli_cpu,
                (MEMORY, Requested::WithMinimums) => node.nonzero_memory,
                (name, _) => node.requested.amount(name),
            };
            (has != 0).then_some(Fill { has, used, with_pod: used + wanted, weight: resource.weight })
        })
    }

    fn weighted_mean(&self, node: &NodeInfo, score: impl Fn(&Fill) -> i64) -> i64 {
        let sums = self.fills(node).fold((0, 0), |(scores, weights), fill| {
            (scores + score(&fill) * fill.weight, weights + fill.weight)
        });
        if sums.1 == 0 { 0 } else { sums.0 / sums.1 }
    }

    /// By a line: resources that get no score do not count at all, and the mean is rounded.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "upstream computes it in floats"
    )]
    fn by_line(&self, node: &NodeInfo, points: &[Point]) -> i64 {
        let scored = self.fills(node).map(|fill| {
            let utilization = if fill.with_pod > fill.has { 100 } else { fill.with_pod * 100 / fill.has };
            (line(points, utilization), fill.weight)
        });
        let sums = scored
            .filter(|(score, _)| *score > 0)
            .fold((0, 0), |(scores, weights), (score, weight)| (scores + score * weight, weights + weight));
        if sums.1 == 0 { 0 } else { (sums.0 as f64 / sums.1 as f64).round() as i64 }
    }

    fn balanced(&self, node: &NodeInfo) -> i64 {
        let with = balance(self.fills(node).map(|fill| (fill.with_pod, fill.has)));
        let without = balance(self.fills(node).map(|fill| (fill.used, fill.has)));
        BEST / 2 + (BEST / 2 + with - without) / 2
    }
}

impl Score for Allocation<'_> {
    fn score(&self, node: &NodeInfo) -> i64 {
        match &self.strategy.kind {
            StrategyKind::LeastAllocated => self.weighted_mean(node, |fill| {
                if fill.with_pod > fill.has { 0 } else { (fill.has - fill.with_pod) * BEST / fill.has }
            }),
            StrategyKind::MostAllocated => {
                self.weighted_mean(node, |fill| fill.with_pod.min(fill.has) * BEST / fill.has)
            }
            StrategyKind::RequestedToCapacityRatio(points) => self.by_line(node, points),
            StrategyKind::Balanced => self.balanced(node),
        }
    }
}

/// The height of a broken line; left and right of its ends it is level.
fn line(points: &[Point], at: i64) -> i64 {
    let Some(right) = points.iter().position(|point| at <= point.utilization) else {
        return points.last().map_or(0, |last| last.score);
    };
    let to = points[right];
    let Some(from) = right.checked_sub(1).map(|left| points[left]) else { return to.score };
    from.score + (to.score - from.score) * (at - from.utilization) / (to.utilization - from.utilization)
}

/// 100 where all shares are the same, less the more they differ.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "upstream computes it in floats"
)]
fn balance(fills: impl Iterator<Item = (i64, i64)>) -> i64 {
    let shares: Vec<f64> = fills.map(|(used, has)| (used as f64 / has as f64).min(1.0)).collect();
    let deviation = match shares.as_slice() {
        [one, other] => ((one - other) / 2.0).abs(),
        shares if shares.len() > 2 => {
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            (shares.iter().map(|share| (share - mean) * (share - mean)).sum::<f64>() / shares.len() as f64)
                .sqrt()
        }
        _ => 0.0,
    };
    ((1.0 - deviation) * BEST as f64) as i64
}
