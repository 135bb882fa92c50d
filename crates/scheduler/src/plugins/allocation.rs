//! Scores by the utilization of a node.

use coracle_api::Text;

use crate::cache::NodeInfo;
use crate::framework::{MAX_SCORE, Score};
use crate::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, Resources, is_scalar};

/// How utilization becomes a score.
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
    /// The less used, the better.
    LeastAllocated,
    /// The more used, the better.
    MostAllocated,
    /// By a piecewise linear function through these points.
    RequestedToCapacityRatio(Vec<Point>),
    /// The more evenly the resources are used, the better.
    Balanced,
}

/// A point of the function: utilization in percent, and its score of 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub utilization: i64,
    pub score: i64,
}

/// Which sums of a node's pods are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requested {
    Exact,
    /// With a minimum for containers without requests.
    WithMinimums,
}

/// The score of one pod.
pub(super) struct Allocation<'c> {
    kind: &'c StrategyKind,
    sums: Requested,
    /// The strategy's resources that count, in order.
    counted: Vec<Counted<'c>>,
}

/// A resource that counts: names are resolved once, not for every node.
struct Counted<'c> {
    which: ResourceKind<'c>,
    weight: i64,
    /// The pod's request.
    wanted: i64,
}

#[derive(Clone, Copy)]
enum ResourceKind<'c> {
    Cpu,
    Memory,
    EphemeralStorage,
    Scalar(&'c str),
}

impl ResourceKind<'_> {
    fn of(self, amounts: &Resources) -> i64 {
        match self {
            ResourceKind::Cpu => amounts.milli_cpu,
            ResourceKind::Memory => amounts.memory,
            ResourceKind::EphemeralStorage => amounts.ephemeral_storage,
            ResourceKind::Scalar(name) => amounts.scalar(name),
        }
    }
}

/// One resource of a node: its capacity, what is used, and what would be used with the pod.
struct Fill {
    has: i64,
    used: i64,
    with_pod: i64,
    weight: i64,
}

impl<'c> Allocation<'c> {
    pub(super) fn new(strategy: &'c Strategy, sums: Requested, pod: &Resources) -> Allocation<'c> {
        let counted = strategy.resources.iter().map(|resource| Counted {
            which: match resource.name.as_str() {
                CPU => ResourceKind::Cpu,
                MEMORY => ResourceKind::Memory,
                EPHEMERAL_STORAGE => ResourceKind::EphemeralStorage,
                other => ResourceKind::Scalar(other),
            },
            weight: resource.weight,
            wanted: pod.amount(&resource.name),
        });

        // A resource that only some nodes have counts only for pods that request it.
        let counts = |counted: &Counted<'_>| {
            counted.wanted != 0
                || !matches!(counted.which, ResourceKind::Scalar(name) if is_scalar(name))
        };
        Allocation {
            kind: &strategy.kind,
            sums,
            counted: counted.filter(counts).collect(),
        }
    }

    /// Whether the pod requests nothing that counts.
    pub(super) fn is_for_nothing(&self) -> bool {
        self.counted.iter().all(|counted| counted.wanted == 0)
    }

    fn fills(&self, node: &NodeInfo) -> impl Iterator<Item = Fill> + Clone {
        self.counted.iter().filter_map(
            |Counted {
                 which,
                 weight,
                 wanted,
             }| {
                let has = which.of(&node.node.allocatable);
                let used = match (which, self.sums) {
                    (ResourceKind::Cpu, Requested::WithMinimums) => node.nonzero_milli_cpu,
                    (ResourceKind::Memory, Requested::WithMinimums) => node.nonzero_memory,
                    _ => which.of(&node.requested),
                };

                (has != 0).then_some(Fill {
                    has,
                    used,
                    with_pod: used + wanted,
                    weight: *weight,
                })
            },
        )
    }

    fn weighted_mean(&self, node: &NodeInfo, score: impl Fn(&Fill) -> i64) -> i64 {
        let sums = self.fills(node).fold((0, 0), |(scores, weights), fill| {
            (scores + score(&fill) * fill.weight, weights + fill.weight)
        });
        if sums.1 == 0 { 0 } else { sums.0 / sums.1 }
    }

    /// Piecewise linear: resources with score 0 do not count at all, and the mean is rounded.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "upstream computes it in floats"
    )]
    fn by_line(&self, node: &NodeInfo, points: &[Point]) -> i64 {
        let scored = self.fills(node).map(|fill| {
            let utilization = if fill.with_pod > fill.has {
                100
            } else {
                fill.with_pod * 100 / fill.has
            };
            (line(points, utilization), fill.weight)
        });

        let sums = scored
            .filter(|(score, _)| *score > 0)
            .fold((0, 0), |(scores, weights), (score, weight)| {
                (scores + score * weight, weights + weight)
            });

        if sums.1 == 0 {
            0
        } else {
            (sums.0 as f64 / sums.1 as f64).round() as i64
        }
    }

    fn balanced(&self, node: &NodeInfo) -> i64 {
        let with = balance(self.fills(node).map(|fill| (fill.with_pod, fill.has)));
        let without = balance(self.fills(node).map(|fill| (fill.used, fill.has)));
        MAX_SCORE / 2 + (MAX_SCORE / 2 + with - without) / 2
    }
}

impl Score for Allocation<'_> {
    fn score(&self, node: &NodeInfo) -> i64 {
        match self.kind {
            StrategyKind::LeastAllocated => self.weighted_mean(node, |fill| {
                if fill.with_pod > fill.has {
                    0
                } else {
                    (fill.has - fill.with_pod) * MAX_SCORE / fill.has
                }
            }),
            StrategyKind::MostAllocated => self.weighted_mean(node, |fill| {
                fill.with_pod.min(fill.has) * MAX_SCORE / fill.has
            }),
            StrategyKind::RequestedToCapacityRatio(points) => self.by_line(node, points),
            StrategyKind::Balanced => self.balanced(node),
        }
    }
}

/// The value of a piecewise linear function, constant beyond its ends.
fn line(points: &[Point], at: i64) -> i64 {
    let Some(right) = points.iter().position(|point| at <= point.utilization) else {
        return points.last().map_or(0, |last| last.score);
    };
    let to = points[right];
    let Some(from) = right.checked_sub(1).map(|left| points[left]) else {
        return to.score;
    };
    from.score
        + (to.score - from.score) * (at - from.utilization) / (to.utilization - from.utilization)
}

/// 100 if all fractions are equal, less the more they differ.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "upstream computes it in floats"
)]
fn balance(fills: impl Iterator<Item = (i64, i64)> + Clone) -> i64 {
    let shares = fills.map(|(used, has)| (used as f64 / has as f64).min(1.0));
    let mut first = shares.clone();
    let deviation = match (first.next(), first.next(), first.next()) {
        (Some(one), Some(other), None) => ((one - other) / 2.0).abs(),
        (_, _, Some(_)) => {
            let count = shares.clone().count() as f64;
            let mean = shares.clone().sum::<f64>() / count;
            (shares
                .map(|share| (share - mean) * (share - mean))
                .sum::<f64>()
                / count)
                .sqrt()
        }
        _ => 0.0,
    };

    ((1.0 - deviation) * MAX_SCORE as f64) as i64
}
