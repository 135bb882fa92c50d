//! `PrioritySort`: the highest priority first, among equals the longest waiting.

use std::sync::Arc;
use std::time::Duration;

use crate::framework::{Parts, QueueSort, Rank};
use crate::pod::Pod;

pub(super) const NAME: &str = "PrioritySort";

struct PrioritySort;

pub(super) fn parts() -> Parts {
    Parts {
        queue_sort: Some(Arc::new(PrioritySort)),
        ..Parts::default()
    }
}

impl QueueSort for PrioritySort {
    fn rank(&self, pod: &Pod, waiting_since: Duration) -> Rank {
        (-i64::from(pod.priority), waiting_since)
    }
}
