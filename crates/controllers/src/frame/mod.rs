//! The frame of a controller: one shell around every pair of `plan` and `act`.
//!
//! A [`Controller`] says what it sees of a key, what should be done about it, and does it.
//! [`Feeds`] hear what informers tell and put keys into the queue; the [`Shell`] takes them out
//! again. What fails is tried again, later and later; what says when to look again is looked at
//! then; everything else waits for an event.

mod attempts;
mod context;
mod feeds;
mod monitors;
mod resources;
mod shell;
mod side_by_side;
mod slow_start;

use std::time::Duration;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::QueueKey;

pub use attempts::Attempts;
pub use context::Context;
pub use feeds::Feeds;
pub use monitors::Monitors;
pub use resources::{Resources, allows, preferred};
pub use shell::{Shell, chain};
pub use side_by_side::side_by_side;
pub use slow_start::slow_start;

/// One control loop.
#[async_trait]
pub trait Controller: Send + Sync + 'static {
    /// What the loop is about: mostly the key of an object.
    type Key: QueueKey;
    /// What it sees of a key.
    type Observed: Send + Sync;
    /// What is to be done.
    type Plan: Send;
    /// Why it could not be done.
    type Error: std::error::Error + Send + Sync + 'static;

    /// As upstream calls it: `replicaset-controller`.
    const NAME: &'static str;

    /// What there is, from caches. Asks nobody.
    fn observe(&self, key: &Self::Key) -> Observation<Self::Observed>;

    /// What is to be done about it. Pure: all it knows is in its arguments.
    fn plan(observed: &Self::Observed, now: Timestamp) -> Self::Plan;

    /// Does it, and says when to look again.
    async fn act(
        &self,
        key: &Self::Key,
        observed: Self::Observed,
        plan: Self::Plan,
    ) -> Result<Requeue, Self::Error>;
}

/// What a controller sees of a key.
#[derive(Debug)]
pub enum Observation<O> {
    /// There is nothing, and nothing to do.
    Gone,
    /// What is held is older than what this controller itself has done: another look a little
    /// later.
    Behind,
    /// There is something.
    Seen {
        /// Which object it is about, for the journal.
        uid: Text,
        /// What is seen.
        observed: O,
    },
}

/// When a key is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// When something happens.
    OnEvent,
    /// When something happens, and at the latest after this time.
    After(Duration),
}
