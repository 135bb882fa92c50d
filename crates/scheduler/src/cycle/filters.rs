//! The filters of one pod, and what-if evaluation with pods added or removed.

use std::collections::BTreeSet;

use coracle_api::Text;

use crate::cache::NodeInfo;
use crate::framework::{Cycle, Filter, PreFilterResult, Profile, Refusal, Verdict};
use crate::pod::Pod;

/// The filters of a cycle, in order.
pub struct Filters<'c> {
    list: Vec<(&'static str, Box<dyn Filter<'c> + 'c>)>,
}

/// The result of all PreFilter plugins.
pub(crate) struct PreFiltered<'c> {
    pub(crate) filters: Filters<'c>,
    /// The only nodes to evaluate.
    pub(crate) only: Option<BTreeSet<Text>>,
    /// The plugins that restricted them.
    pub(crate) named_by: BTreeSet<&'static str>,
    /// A plugin that rejected the pod, but not for good: preemption may still help.
    pub(crate) refused: Option<(&'static str, Refusal)>,
}

/// No node needs to be evaluated.
pub(crate) struct PreFilterRejected {
    /// `None`: several plugins together, see `named_by`.
    pub(crate) plugin: Option<&'static str>,
    pub(crate) named_by: BTreeSet<&'static str>,
    pub(crate) refusal: Refusal,
}

impl<'c> Filters<'c> {
    pub(crate) fn pre_filter(
        profile: &'c Profile,
        cycle: Cycle<'c>,
    ) -> Result<PreFiltered<'c>, PreFilterRejected> {
        let filters = Filters {
            list: Vec::with_capacity(profile.filters.len()),
        };
        let mut pre_filtered = PreFiltered {
            filters,
            only: None,
            named_by: BTreeSet::new(),
            refused: None,
        };

        for filter in &profile.filters {
            match filter.inner.pre_filter(cycle) {
                Ok(PreFilterResult::Skip) => {}
                Ok(PreFilterResult::All(ask)) => {
                    pre_filtered.filters.list.push((filter.plugin, ask))
                }
                Ok(PreFilterResult::Only(names, ask)) => {
                    pre_filtered.filters.list.push((filter.plugin, ask));
                    pre_filtered.narrow(filter.plugin, names)?;
                }
                Err(refusal @ Refusal::NotNow(_)) => {
                    pre_filtered.refused = Some((filter.plugin, refusal))
                }
                Err(Refusal::Failed(error)) => {
                    let error = format!("running PreFilter plugin \"{}\": {error}", filter.plugin);
                    return Err(PreFilterRejected::by(filter.plugin, Refusal::Failed(error)));
                }
                Err(refusal) => return Err(PreFilterRejected::by(filter.plugin, refusal)),
            }
        }

        Ok(pre_filtered)
    }

    /// No filters: a plugin rejected the pod itself.
    pub(crate) fn none() -> Filters<'c> {
        Filters { list: Vec::new() }
    }

    /// The first rejection, with its plugin.
    pub fn check(&self, node: &NodeInfo) -> Option<(&'static str, Verdict)> {
        self.list
            .iter()
            .find_map(|(plugin, filter)| match filter.check(node) {
                Verdict::Fits => None,
                verdict => Some((*plugin, verdict)),
            })
    }

    /// The same, considering the pods nominated to the node: the pod must fit beside those of its
    /// own or a higher priority, and also without them, because they may never arrive. With them
    /// resources and anti-affinity can fail, without them affinity.
    pub fn check_with_nominated(
        &self,
        cycle: Cycle<'c>,
        node: &NodeInfo,
    ) -> Option<(&'static str, Verdict)> {
        if cycle.nominations.is_empty() {
            return self.check(node);
        }

        let pod = cycle.pod;
        let before = cycle.nominations.on(node.name()).iter();

        let before: Vec<_> = before
            .filter(|other| other.priority >= pod.priority && other.uid != pod.uid)
            .collect();
        if !before.is_empty() {
            let (mut with, mut crowded) = (self.fork(), node.clone());
            for other in before {
                crowded.add(other.clone());
                with.pod_added(other, &crowded);
            }
            if let Some(refused) = with.check(&crowded) {
                return Some(refused);
            }
        }

        self.check(node)
    }

    pub(crate) fn fork(&self) -> Filters<'c> {
        Filters {
            list: self
                .list
                .iter()
                .map(|(plugin, filter)| (*plugin, filter.fork()))
                .collect(),
        }
    }

    pub(crate) fn pod_added(&mut self, pod: &Pod, node: &NodeInfo) {
        self.list
            .iter_mut()
            .for_each(|(_, filter)| filter.pod_added(pod, node));
    }

    pub(crate) fn pod_removed(&mut self, pod: &Pod, node: &NodeInfo) {
        self.list
            .iter_mut()
            .for_each(|(_, filter)| filter.pod_removed(pod, node));
    }
}

impl PreFiltered<'_> {
    fn narrow(&mut self, plugin: &'static str, names: Vec<Text>) -> Result<(), PreFilterRejected> {
        self.named_by.insert(plugin);
        let names: BTreeSet<Text> = names.into_iter().collect();
        let only = match self.only.take() {
            None => names,
            Some(so_far) => so_far.intersection(&names).cloned().collect(),
        };

        if !only.is_empty() {
            self.only = Some(only);
            return Ok(());
        }

        let all: Vec<_> = self.named_by.iter().copied().collect();
        let reason = match all.as_slice() {
            [one] => format!("node(s) didn't satisfy plugin {one}"),
            all => format!(
                "node(s) didn't satisfy plugin(s) [{}] simultaneously",
                all.join(" ")
            ),
        };

        Err(PreFilterRejected {
            plugin: None,
            named_by: std::mem::take(&mut self.named_by),
            refusal: Refusal::never(reason),
        })
    }
}

impl PreFilterRejected {
    fn by(plugin: &'static str, refusal: Refusal) -> PreFilterRejected {
        PreFilterRejected {
            plugin: Some(plugin),
            named_by: BTreeSet::new(),
            refusal,
        }
    }
}
