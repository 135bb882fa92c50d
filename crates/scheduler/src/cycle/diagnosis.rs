//! Why a pod fits no node, in upstream's words: `0/5 nodes are available: …`.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::{Cache, NodeInfo, Slot};
use crate::framework::Verdict;

/// The verdicts of a cycle.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The number of nodes.
    pub nodes: usize,
    /// The evaluated nodes, with the plugin that rejected them.
    pub rejected: Vec<Rejected>,
    /// The verdict for all nodes that were not evaluated.
    pub others: Verdict,
    /// Why no node was evaluated.
    pub before: Option<String>,
    /// The result of preemption.
    pub after: Option<String>,
    /// The plugins that rejected: their queueing hints wake the pod.
    pub rejectors: BTreeSet<&'static str>,
}

#[derive(Clone, Debug)]
pub struct Rejected {
    pub slot: Slot,
    pub plugin: &'static str,
    pub verdict: Verdict,
}

impl Diagnosis {
    pub(crate) fn new(nodes: usize) -> Diagnosis {
        Diagnosis {
            nodes,
            rejected: Vec::new(),
            others: Verdict::Never(Vec::new()),
            before: None,
            after: None,
            rejectors: BTreeSet::new(),
        }
    }

    pub(crate) fn reject(&mut self, slot: Slot, plugin: &'static str, verdict: Verdict) {
        self.rejectors.insert(plugin);
        self.rejected.push(Rejected {
            slot,
            plugin,
            verdict,
        });
    }

    /// The verdict for one node.
    pub fn verdict_of(&self, slot: Slot) -> &Verdict {
        let rejected = self.rejected.iter().find(|rejected| rejected.slot == slot);
        rejected.map_or(&self.others, |rejected| &rejected.verdict)
    }

    /// The nodes that would fit if pods were evicted.
    pub(crate) fn worth_preempting<'c>(&self, cache: &'c Cache) -> Vec<&'c NodeInfo> {
        let mut asked = BTreeSet::new();
        let mut nodes = Vec::new();
        for rejected in &self.rejected {
            asked.insert(rejected.slot);
            if matches!(rejected.verdict, Verdict::NotNow(_)) {
                nodes.push(cache.node(rejected.slot));
            }
        }

        if matches!(self.others, Verdict::NotNow(_)) {
            nodes.extend(cache.nodes().filter(|node| !asked.contains(&node.slot)));
        }

        nodes
    }

    /// The whole message.
    pub fn message(&self) -> String {
        let mut text = format!("0/{} nodes are available:", self.nodes);
        match &self.before {
            Some(before) => text.push_str(&format!(" {before}.")),
            None => {
                let reasons = self.counted_reasons();
                if !reasons.is_empty() {
                    text.push_str(&format!(" {}.", reasons.join(", ")));
                }
            }
        }

        if let Some(after) = self.after.as_deref().filter(|after| !after.is_empty()) {
            text.push_str(&format!(" {after}"));
        }

        text
    }

    /// `3 Insufficient cpu` and the like, sorted as text.
    fn counted_reasons(&self) -> Vec<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in self
            .rejected
            .iter()
            .flat_map(|rejected| rejected.verdict.reasons())
        {
            *counts.entry(reason).or_default() += 1;
        }

        let rest = self.nodes.saturating_sub(self.rejected.len());
        for reason in self.others.reasons().iter().filter(|_| rest > 0) {
            *counts.entry(reason).or_default() += rest;
        }

        let mut reasons: Vec<_> = counts
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        reasons.sort_unstable();

        reasons
    }
}
