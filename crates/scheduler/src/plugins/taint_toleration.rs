//! `TaintToleration`: taints exclude nodes, or lower their score.

use std::sync::Arc;

use coracle_api::taint::effect;

use super::normalize::by_greatest;
use super::{Args, Handle, args};
use crate::cache::NodeInfo;
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, Filter, PreFilter, PreFilterResult, PreScore, QueueingHint, Refusal, Score,
    Verdict,
};
use crate::pod::Pod;
use crate::taints::{OwnedTaint, OwnedToleration, are_tolerated};

struct TaintToleration;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    let plugin = Arc::new(TaintToleration);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        score: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

impl PreFilter for TaintToleration {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        Ok(PreFilterResult::All(Box::new(TaintFilter(
            &cycle.pod.tolerations,
        ))))
    }
}

#[derive(Clone)]
struct TaintFilter<'c>(&'c [OwnedToleration]);

impl<'c> Filter<'c> for TaintFilter<'c> {
    fn check(&self, node: &NodeInfo) -> Verdict {
        // `never`: evicting pods removes no taint.
        if are_tolerated(&node.node.taints, self.0) {
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
    fn pre_score<'c>(
        &'c self,
        cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let tolerations = cycle.pod.tolerations.iter();
        let tolerations = tolerations
            .filter(|own| own.concerns(effect::PREFER_NO_SCHEDULE))
            .collect();
        Ok(Some(Box::new(TaintScore(tolerations))))
    }
}

struct TaintScore<'c>(Vec<&'c OwnedToleration>);

impl Score for TaintScore<'_> {
    fn score(&self, node: &NodeInfo) -> i64 {
        let taints = node.node.taints.iter().map(OwnedTaint::view);
        let preferences = taints.filter(|taint| taint.effect == effect::PREFER_NO_SCHEDULE);
        let untolerated =
            preferences.filter(|taint| !self.0.iter().any(|own| own.tolerates(taint)));
        untolerated.map(|_| 1).sum()
    }

    fn normalize(&self, scores: &mut [i64]) {
        by_greatest(scores, true);
    }
}

impl QueueingHint for TaintToleration {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        let welcome = |taints: &[OwnedTaint]| are_tolerated(taints, &pod.tolerations);
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
