//! `NodeAffinity`: a pod's node selector, and its required and preferred node affinity.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::node_affinity::{NodeSelector, NodeSelectorTerm, NodeView, PreferredTerms};
use coracle_api::value::Path;

use super::normalize::by_greatest;
use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{
    Cycle, Filter, Parts, PreFilter, PreScore, Prepared, Refusal, Score, Verdict, Wake,
};
use crate::labels::Labels;
use crate::node::Node;
use crate::pod::Pod;

pub(super) const NAME: &str = "NodeAffinity";

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

        let wishes = affinity
            .get("preferredDuringSchedulingIgnoredDuringExecution")
            .and_then(Value::as_array);
        let added_preferences = match wishes {
            None | Some([]) => None,
            Some(wishes) => {
                let terms: Vec<_> = wishes.iter().filter_map(wish).collect();
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

    pub(super) fn parts(self) -> Parts {
        let plugin = Arc::new(self);
        Parts {
            filter: Some(plugin.clone()),
            score: Some(plugin.clone()),
            wake: Some(plugin),
            ..Parts::default()
        }
    }

    fn allows(&self, node: &Node) -> bool {
        self.added
            .as_ref()
            .is_none_or(|selector| selector.matches(&view(node)).unwrap_or(false))
    }
}

fn wish(wish: &Value) -> Option<(i64, NodeSelectorTerm<'_>)> {
    let weight = wish
        .get("weight")
        .and_then(Value::as_int)
        .unwrap_or_default();
    Some((
        weight,
        NodeSelectorTerm::from_value(wish.get("preference")?),
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
    fn prepare<'c>(&'c self, cycle: Cycle<'c>) -> Result<Prepared<'c>, Refusal> {
        let affinity = &cycle.pod.node_affinity;
        if affinity.required.is_none() && self.added.is_none() {
            return Ok(Prepared::Nothing);
        }

        let ask = Box::new(Matches {
            plugin: self,
            pod: cycle.pod,
        });

        match &affinity.names {
            None => Ok(Prepared::Ask(ask)),
            Some(names) if names.is_empty() => Err(Refusal::never("pod affinity terms conflict")),
            Some(names) => Ok(Prepared::AskOnly(names.clone(), ask)),
        }
    }
}

#[derive(Clone)]
struct Matches<'c> {
    plugin: &'c NodeAffinity,
    pod: &'c Pod,
}

impl<'c> Filter<'c> for Matches<'c> {
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
    fn prepare_scores<'c>(
        &'c self,
        cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let own = cycle.pod.node_affinity.preferred.as_ref();
        let wishes: Vec<_> = own.into_iter().chain(&self.added_preferences).collect();
        Ok((!wishes.is_empty()).then(|| Box::new(Wishes(wishes)) as Box<dyn Score + 'c>))
    }
}

struct Wishes<'c>(Vec<&'c PreferredTerms>);

impl Score for Wishes<'_> {
    fn score(&self, node: &NodeInfo) -> i64 {
        self.0
            .iter()
            .map(|wishes| wishes.score(&view(&node.node)))
            .sum()
    }

    fn normalize(&self, scores: &mut [i64]) {
        by_greatest(scores, false);
    }
}

impl Wake for NodeAffinity {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        let welcome = |node: &Node| self.allows(node) && node_matches(pod, node);
        match event {
            Event::NodeAdded(node) => welcome(node),
            Event::NodeChanged { old, new } => welcome(new) && !welcome(old),
            _ => false,
        }
    }
}
