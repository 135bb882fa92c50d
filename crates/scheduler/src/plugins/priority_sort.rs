//! `PrioritySort`: the highest priority first, among equals the longest waiting.

use std::sync::Arc;
use std::time::Duration;

use super::{Args, Handle, args};
use crate::framework::{Extensions, QueueSort, Rank};
use crate::pod::Pod;

struct PrioritySort;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    args::none(args)?;

    Ok(Extensions {
        queue_sort: Some(Arc::new(PrioritySort)),
        ..Extensions::default()
    })
}

impl QueueSort for PrioritySort {
    fn rank(&self, pod: &Pod, waiting_since: Duration) -> Rank {
        (-i64::from(pod.priority), waiting_since)
    }
}
