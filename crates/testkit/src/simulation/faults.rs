//! Faults of one simulation. Each seed has another mixture.

use std::time::Duration;

use super::rng::Rng;

/// Permanent faults, and faults that are injected between two actions.
pub(crate) struct FaultPlan {
    /// Maximum latency of a message in milliseconds.
    pub(crate) latency: usize,
    /// Percentage of requests that are lost, half of them after they were executed.
    pub(crate) lost: usize,
    /// Percentage of updates before which another client changes the object.
    pub(crate) conflicts: usize,
    injected: Vec<Fault>,
}

/// A fault that is injected once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Watch events are delayed: caches are stale.
    StaleView(Duration),
    /// All watches are disconnected.
    Disconnect,
    /// All watches are disconnected and cannot resume, as after a compaction.
    MissedEvents(Duration),
    /// The process under test crashes before or after one of its next writes.
    Crash { writes: usize },
    /// The next syncs of the disk fail.
    FailingStore { syncs: u32 },
    /// The server's machine loses power.
    PowerCut,
}

impl FaultPlan {
    /// No faults, small latency.
    pub(crate) const NONE: FaultPlan = FaultPlan {
        latency: 3,
        lost: 0,
        conflicts: 0,
        injected: Vec::new(),
    };

    pub(crate) fn generate(rng: &Rng) -> FaultPlan {
        let or_none = |share: usize| if rng.percent(40) { share } else { 0 };
        let mut injected = Vec::new();

        let millis = |bound: usize| Duration::from_millis(u64::try_from(rng.below(bound)).unwrap());
        for fault in [
            Fault::StaleView(millis(5000)),
            Fault::Disconnect,
            Fault::MissedEvents(Duration::from_secs(1) + millis(5000)),
            Fault::Crash {
                writes: rng.below(6),
            },
            Fault::FailingStore {
                syncs: 1 + u32::try_from(rng.below(3)).unwrap(),
            },
            Fault::PowerCut,
        ] {
            if rng.percent(35) {
                injected.push(fault);
            }
        }

        FaultPlan {
            latency: *rng.pick(&[0, 5, 5, 30, 300]).unwrap(),
            lost: or_none(8),
            conflicts: or_none(40),
            injected,
        }
    }

    /// The fault to inject now, if any.
    pub(crate) fn fault(&self, rng: &Rng) -> Option<Fault> {
        if rng.percent(40) {
            rng.pick(&self.injected).copied()
        } else {
            None
        }
    }
}
