//! `NodeResourcesFit`: the pod's requests must fit, and the score depends on the utilization.

use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_api::{Text, resource_name};

use super::allocation::{Allocation, Requested, Strategy};
use super::{Args, Handle, args};
use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, Filter, PreFilter, PreFilterResult, PreScore, QueueingHint, Reason, Refusal,
    Score, Verdict,
};
use crate::node::Node;
use crate::pod::Pod;
use crate::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, Resources};

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    let plugin = Arc::new(args::node_resources_fit(args)?);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        score: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

pub(super) struct NodeResourcesFit {
    pub(super) ignored: BTreeSet<Text>,
    /// The prefix of a resource name before the slash.
    pub(super) ignored_groups: BTreeSet<Text>,
    pub(super) strategy: Strategy,
}

impl NodeResourcesFit {
    fn ignores(&self, name: &str) -> bool {
        if self.ignored.is_empty() && self.ignored_groups.is_empty() {
            return false;
        }
        let group = name.split('/').next().unwrap_or_default();
        resource_name::is_extended(name)
            && (self.ignored.contains(name) || self.ignored_groups.contains(group))
    }
}

/// A missing resource.
struct Shortage {
    reason: Reason,
    /// It would be missing without any pod, too.
    always: bool,
}

fn shortages(
    wanted: &Resources,
    node: &Node,
    used: &Resources,
    pods: usize,
    ignores: impl Fn(&str) -> bool,
) -> Vec<Shortage> {
    let mut shortages = Vec::new();
    if i64::try_from(pods).unwrap_or(i64::MAX) >= node.allowed_pods {
        shortages.push(Shortage {
            reason: Text::const_new("Too many pods"),
            always: false,
        });
    }

    let has = &node.allocatable;
    let fixed = [
        (
            wanted.milli_cpu,
            has.milli_cpu,
            used.milli_cpu,
            "Insufficient cpu",
        ),
        (
            wanted.memory,
            has.memory,
            used.memory,
            "Insufficient memory",
        ),
        (
            wanted.ephemeral_storage,
            has.ephemeral_storage,
            used.ephemeral_storage,
            "Insufficient ephemeral-storage",
        ),
    ];

    for (wanted, has, used, reason) in fixed {
        if wanted > 0 && wanted > has - used {
            shortages.push(Shortage {
                reason: Text::const_new(reason),
                always: wanted > has,
            });
        }
    }

    for (name, wanted) in wanted
        .scalars
        .iter()
        .filter(|(name, wanted)| *wanted != 0 && !ignores(name))
    {
        let has = has.scalar(name);
        if *wanted > has - used.scalar(name) {
            shortages.push(Shortage {
                reason: Text::from(format!("Insufficient {name}")),
                always: *wanted > has,
            });
        }
    }

    shortages
}

impl PreFilter for NodeResourcesFit {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        Ok(PreFilterResult::All(Box::new(ResourcesFilter {
            plugin: self,
            wanted: &cycle.pod.requests.fit,
        })))
    }
}

#[derive(Clone)]
struct ResourcesFilter<'c> {
    plugin: &'c NodeResourcesFit,
    wanted: &'c Resources,
}

impl<'c> Filter<'c> for ResourcesFilter<'c> {
    fn check(&self, node: &NodeInfo) -> Verdict {
        let ignores = |name: &str| self.plugin.ignores(name);
        let shortages = shortages(
            self.wanted,
            &node.node,
            &node.requested,
            node.pods.len(),
            ignores,
        );

        if shortages.is_empty() {
            return Verdict::Fits;
        }

        let always = shortages.iter().any(|lack| lack.always);
        let reasons = shortages.into_iter().map(|lack| lack.reason).collect();
        if always {
            Verdict::Never(reasons)
        } else {
            Verdict::NotNow(reasons)
        }
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(self.clone())
    }
}

impl PreScore for NodeResourcesFit {
    fn pre_score<'c>(
        &'c self,
        cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let allocation = Allocation::new(
            &self.strategy,
            Requested::WithMinimums,
            &cycle.pod.requests.scored,
        );
        Ok(Some(Box::new(allocation)))
    }
}

impl QueueingHint for NodeResourcesFit {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        let wanted = &pod.requests.fit;
        let fits =
            |node: &Node| shortages(wanted, node, &Resources::default(), 0, |_| false).is_empty();
        match event {
            Event::NodeAdded(node) => fits(node),
            Event::NodeChanged { old, new } => fits(new) && has_more(wanted, old, new),
            Event::PodRemoved(gone) => gone.is_placed(),
            Event::PodChanged { old, new } => {
                let (before, after) = (&old.requests.used, &new.requests.used);
                let shrunk = |name: &str| before.amount(name) > after.amount(name);
                let names = [CPU, MEMORY, EPHEMERAL_STORAGE].into_iter();
                let names = names.chain(before.scalars.iter().map(|(name, _)| name.as_str()));

                let mut shrunk = names.filter(|name| shrunk(name));
                match new.uid == pod.uid {
                    true => shrunk.next().is_some(),
                    false => {
                        new.is_assigned() && shrunk.any(|name| pod.requests.used.amount(name) != 0)
                    }
                }
            }
            _ => false,
        }
    }
}

/// Whether the node has more of a requested resource.
fn has_more(wanted: &Resources, old: &Node, new: &Node) -> bool {
    let names = [CPU, MEMORY, EPHEMERAL_STORAGE].into_iter();
    let mut names = names.chain(wanted.scalars.iter().map(|(name, _)| name.as_str()));
    let more = |name: &str| new.allocatable.amount(name) > old.allocatable.amount(name);
    new.allowed_pods > old.allowed_pods || names.any(|name| wanted.amount(name) > 0 && more(name))
}
