//! `NodeResourcesBalancedAllocation`: prefers nodes where the pod balances the use of resources.

use std::sync::Arc;

use super::allocation::{Allocation, Requested, Strategy};
use super::{Args, Handle, args};
use crate::cache::NodeInfo;
use crate::framework::{Cycle, Extensions, PreScore, Refusal, Score};

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    Ok(Extensions {
        score: Some(Arc::new(args::balanced_allocation(args)?)),
        ..Extensions::default()
    })
}

pub(super) struct BalancedAllocation {
    pub(super) strategy: Strategy,
}

impl PreScore for BalancedAllocation {
    fn pre_score<'c>(
        &'c self,
        cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let allocation =
            Allocation::new(&self.strategy, Requested::Exact, &cycle.pod.requests.used);
        // A pod without requests balances nothing.
        Ok((!allocation.is_for_nothing()).then(|| Box::new(allocation) as Box<dyn Score + 'c>))
    }
}
