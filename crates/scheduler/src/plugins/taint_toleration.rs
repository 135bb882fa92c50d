//! `TaintToleration`: taints exclude nodes, or lower their score.

use std::sync::Arc;

use coracle_api::taint::effect;

use super::normalize::by_greatest;
use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{
    Cycle, Filter, Parts, PreFilter, PreScore, Prepared, Refusal, Score, Verdict, Wake,
};
use crate::pod::Pod;
use crate::taints::{OwnTaint, OwnToleration, lets_on};

pub(super) const NAME: &str = "TaintToleration";

struct TaintToleration;

pub(super) fn parts() -> Parts {
    let plugin = Arc::new(TaintToleration);
    Parts {
        filter: Some(plugin.clone()),
        score: Some(plugin.clone()),
        wake: Some(plugin),
        ..Parts::default()
    }
}

impl PreFilter for TaintToleration {
    fn prepare<'c>(&'c self, cycle: Cycle<'c>) -> Result<Prepared<'c>, Refusal> {
        Ok(Prepared::Ask(Box::new(Tolerates(&cycle.pod.tolerations))))
    }
}

#[derive(Clone)]
struct Tolerates<'c>(&'c [OwnToleration]);

impl<'c> Filter<'c> for Tolerates<'c> {
    fn check(&self, node: &NodeInfo) -> Verdict {
        // `never`: evicting pods removes no taint.
        if lets_on(&node.node.taints, self.0) {
            Verdict::Fits
        } else {
            Verdict::never("node(s) had untolerated taint(s)")
        }
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(self.clone())
    }
}

impl PreScore for TaintToleration {
    fn prepare_scores<'c>(
        &'c self,
        cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let tolerations = cycle.pod.tolerations.iter();
        let tolerations = tolerations
            .filter(|own| own.concerns(effect::PREFER_NO_SCHEDULE))
            .collect();
        Ok(Some(Box::new(Untolerated(tolerations))))
    }
}

struct Untolerated<'c>(Vec<&'c OwnToleration>);

impl Score for Untolerated<'_> {
    fn score(&self, node: &NodeInfo) -> i64 {
        let taints = node.node.taints.iter().map(OwnTaint::view);
        let preferences = taints.filter(|taint| taint.effect == effect::PREFER_NO_SCHEDULE);
        let untolerated =
            preferences.filter(|taint| !self.0.iter().any(|own| own.tolerates(taint)));
        untolerated.map(|_| 1).sum()
    }

    fn normalize(&self, scores: &mut [i64]) {
        by_greatest(scores, true);
    }
}

impl Wake for TaintToleration {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        let welcome = |taints: &[OwnTaint]| lets_on(taints, &pod.tolerations);
        match event {
            Event::NodeAdded(node) => welcome(&node.taints),
            Event::NodeChanged { old, new } => !welcome(&old.taints) && welcome(&new.taints),
            Event::PodChanged { old, new } => {
                new.uid == pod.uid && new.tolerations != old.tolerations
            }
            _ => false,
        }
    }
}
