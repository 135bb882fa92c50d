//! `NodeAffinity`: a pod's node selector, and its required and preferred node affinity.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::node_affinity::{NodeSelector, NodeSelectorTerm, NodeView, PreferredTerms};
use coracle_api::value::Path;

use super::normalize::by_greatest;
use super::{Args, Handle, args};
use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, Filter, PreFilter, PreFilterResult, PreScore, QueueingHint, Refusal, Score,
    Verdict,
};
use crate::labels::Labels;
use crate::node::Node;
use crate::pod::Pod;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    let plugin = Arc::new(args::node_affinity(args)?);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        score: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

/// The affinity that the configuration adds to every pod.
#[derive(Default)]
pub(super) struct NodeAffinity {
    added: Option<NodeSelector>,
    added_preferences: Option<PreferredTerms>,
}

impl NodeAffinity {
    /// `affinity`: the `addedAffinity` of the plugin's arguments.
    pub(super) fn new(affinity: Option<&Value>) -> Result<NodeAffinity, String> {
        let Some(affinity) = affinity else {
            return Ok(NodeAffinity::default());
        };
        let required = affinity
            .get("requiredDuringSchedulingIgnoredDuringExecution")
            .filter(|value| !value.is_null());

        let added = required.map(|selector| NodeSelector::from_value(selector, &Path::Root));
        if let Some(selector) = &added {
            selector.check().map_err(|errors| errors.to_string())?;
        }

        let preferred = affinity
            .get("preferredDuringSchedulingIgnoredDuringExecution")
            .and_then(Value::as_array);
        let added_preferences = match preferred {
            None | Some([]) => None,
            Some(preferred) => {
                let terms: Vec<_> = preferred.iter().filter_map(preferred_term).collect();
                Some(
                    PreferredTerms::new(&terms, &Path::Root)
                        .map_err(|errors| errors.to_string())?,
                )
            }
        };

        Ok(NodeAffinity {
            added,
            added_preferences,
        })
    }

    fn allows(&self, node: &Node) -> bool {
        self.added
            .as_ref()
            .is_none_or(|selector| selector.matches(&view(node)).unwrap_or(false))
    }
}

fn preferred_term(preferred_term: &Value) -> Option<(i64, NodeSelectorTerm<'_>)> {
    let weight = preferred_term
        .get("weight")
        .and_then(Value::as_int)
        .unwrap_or_default();
    Some((
        weight,
        NodeSelectorTerm::from_value(preferred_term.get("preference")?),
    ))
}

fn view(node: &Node) -> NodeView<'_, Labels> {
    NodeView {
        name: &node.name,
        labels: &node.labels,
    }
}

/// Whether the node matches the pod's own required terms. Invalid terms match no node.
pub(crate) fn node_matches(pod: &Pod, node: &Node) -> bool {
    pod.node_affinity
        .required
        .as_ref()
        .is_none_or(|required| required.matches(&view(node)).unwrap_or(false))
}

impl PreFilter for NodeAffinity {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        let affinity = &cycle.pod.node_affinity;
        if affinity.required.is_none() && self.added.is_none() {
            return Ok(PreFilterResult::Skip);
        }

        let ask = Box::new(AffinityFilter {
            plugin: self,
            pod: cycle.pod,
        });

        match &affinity.names {
            None => Ok(PreFilterResult::All(ask)),
            Some(names) if names.is_empty() => Err(Refusal::never("pod affinity terms conflict")),
            Some(names) => Ok(PreFilterResult::Only(names.clone(), ask)),
        }
    }
}

#[derive(Clone)]
struct AffinityFilter<'c> {
    plugin: &'c NodeAffinity,
    pod: &'c Pod,
}

impl<'c> Filter<'c> for AffinityFilter<'c> {
    fn check(&self, node: &NodeInfo) -> Verdict {
        if !self.plugin.allows(&node.node) {
            return Verdict::never("node(s) didn't match scheduler-enforced node affinity");
        }
        if !node_matches(self.pod, &node.node) {
            return Verdict::never("node(s) didn't match Pod's node affinity/selector");
        }
        Verdict::Fits
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(self.clone())
    }
}

impl PreScore for NodeAffinity {
    fn pre_score<'c>(
        &'c self,
        cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let own = cycle.pod.node_affinity.preferred.as_ref();
        let preferred: Vec<_> = own.into_iter().chain(&self.added_preferences).collect();
        Ok((!preferred.is_empty())
            .then(|| Box::new(PreferenceScore(preferred)) as Box<dyn Score + 'c>))
    }
}

struct PreferenceScore<'c>(Vec<&'c PreferredTerms>);

impl Score for PreferenceScore<'_> {
    fn score(&self, node: &NodeInfo) -> i64 {
        self.0
            .iter()
            .map(|preferred| preferred.score(&view(&node.node)))
            .sum()
    }

    fn normalize(&self, scores: &mut [i64]) {
        by_greatest(scores, false);
    }
}

impl QueueingHint for NodeAffinity {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        let welcome = |node: &Node| self.allows(node) && node_matches(pod, node);
        match event {
            Event::NodeAdded(node) => welcome(node),
            Event::NodeChanged { old, new } => welcome(new) && !welcome(old),
            _ => false,
        }
    }
}
