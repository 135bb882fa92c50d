//! `NodeResourcesBalancedAllocation`: rather where the pod makes the use of CPU and memory more
//! even.

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
        // A pod that asks for nothing makes nothing more even.
        Ok((!allocation.is_for_nothing()).then(|| Box::new(allocation) as Box<dyn Score + 'c>))
    }
}
