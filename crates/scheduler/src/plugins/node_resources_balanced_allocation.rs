//! `NodeResourcesBalancedAllocation`: prefers nodes where the pod balances the use of resources.

use std::sync::Arc;

use super::allocation::{Allocation, Requested, Strategy};
use crate::cache::NodeInfo;
use crate::framework::{Cycle, Parts, PreScore, Refusal, Score};

pub(super) const NAME: &str = "NodeResourcesBalancedAllocation";

pub(super) struct BalancedAllocation {
    pub(super) strategy: Strategy,
}

impl BalancedAllocation {
    pub(super) fn parts(self) -> Parts {
        Parts {
            score: Some(Arc::new(self)),
            ..Parts::default()
        }
    }
}

impl PreScore for BalancedAllocation {
    fn prepare_scores<'c>(
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
