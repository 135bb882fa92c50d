//! A waiting pod, and its backoff after failures.

use std::sync::Arc;
use std::time::Duration;

use crate::pod::Pod;

/// Time since the scheduler started. The queue has no clock: time is an argument.
pub type Moment = Duration;

/// A pod in the queue.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    pub pod: Arc<Pod>,
    /// Since when it waits, or waits again.
    pub since: Moment,
    /// When it was first added.
    pub first_seen: Moment,
    /// The number of cycles.
    pub attempts: u32,
    /// Cycles without a node.
    pub refusals: u32,
    /// Consecutive failed cycles.
    pub errors: u32,
    /// The plugins that rejected it last.
    pub rejectors: Vec<&'static str>,
    /// The plugin that gates it.
    pub gate: Option<&'static str>,
}

/// How long pods wait after failures.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub initial: Duration,
    /// Zero: no backoff.
    pub most: Duration,
}

impl QueuedPod {
    pub(super) fn new(pod: Arc<Pod>, now: Moment) -> QueuedPod {
        QueuedPod {
            pod,
            since: now,
            first_seen: now,
            attempts: 0,
            refusals: 0,
            errors: 0,
            rejectors: Vec::new(),
            gate: None,
        }
    }

    /// When it may be retried: the start of a window, so that pods of one window keep their order.
    pub(super) fn ready_at(&self, backoff: Backoff) -> Option<Moment> {
        let failures = if self.errors > 0 {
            self.errors
        } else {
            self.refusals
        };

        if failures == 0 || backoff.most.is_zero() {
            return None;
        }

        let doubled = 1_u32
            .checked_shl(failures - 1)
            .and_then(|factor| backoff.initial.checked_mul(factor));
        let wait = doubled.map_or(backoff.most, |wait| wait.min(backoff.most));

        Some(window(self.since + wait) + WINDOW)
    }
}

fn window(moment: Moment) -> Moment {
    Duration::from_secs(moment.as_secs())
}

const WINDOW: Duration = Duration::from_secs(1);
