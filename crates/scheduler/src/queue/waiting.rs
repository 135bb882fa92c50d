//! A pod that waits, and how long it is made to wait after a failure.

use std::sync::Arc;
use std::time::Duration;

use crate::pod::Pod;

/// Time since the scheduler started. The queue has no clock: it is told.
pub type Moment = Duration;

/// A pod in line.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    pub pod: Arc<Pod>,
    /// Since when it waits, or waits again.
    pub since: Moment,
    /// When it came first.
    pub first_seen: Moment,
    /// Cycles it has been through.
    pub attempts: u32,
    /// Cycles that ended without a node.
    pub refusals: u32,
    /// Cycles that broke, without one in between that did not.
    pub errors: u32,
    /// The plugins that refused it last.
    pub rejectors: Vec<&'static str>,
    /// The plugin that keeps it out of line.
    pub gate: Option<&'static str>,
}

/// How long pods wait after failures.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    pub initial: Duration,
    /// Zero: not at all.
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

    /// When it may be tried again: the beginning of a window, so that pods of one window keep their
    /// order.
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
