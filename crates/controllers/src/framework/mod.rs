//! The frame of a controller: one shell around every pair of `plan` and `act`.
//!
//! A [`Controller`] observes a key, plans what to do and does it. [`Feeds`] put keys into the queue
//! on changes; the [`Runner`] takes them out. A failed key is retried with backoff; a key that asks
//! for a later look gets it; all others wait for an event.

mod concurrently;
mod context;
mod creations;
mod feeds;
mod monitors;
mod resources;
mod runner;
mod slow_start;

use std::time::Duration;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::QueueKey;

pub use concurrently::concurrently;
pub use context::Context;
pub use creations::Creations;
pub use feeds::Feeds;
pub use monitors::Monitors;
pub use resources::{Resources, allows, preferred};
pub use runner::Runner;
pub use slow_start::slow_start;

/// One control loop.
#[async_trait]
pub trait Controller: Send + Sync + 'static {
    /// What the loop works on: mostly the key of an object.
    type Key: QueueKey;
    /// What it observes of a key.
    type Observed: Send + Sync;
    /// What to do.
    type Plan: Send;
    /// Why acting failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Upstream's name: `replicaset-controller`.
    const NAME: &'static str;

    /// Reads the current state from caches. Makes no request.
    fn observe(&self, key: &Self::Key) -> Observation<Self::Observed>;

    /// Decides what to do. Pure: all it knows is in its arguments.
    fn plan(observed: &Self::Observed, now: Timestamp) -> Self::Plan;

    /// Carries out the plan, and returns when to reconcile again.
    async fn act(
        &self,
        key: &Self::Key,
        observed: Self::Observed,
        plan: Self::Plan,
    ) -> Result<Requeue, Self::Error>;
}

/// What a controller observes of a key.
#[derive(Debug)]
pub enum Observation<O> {
    /// The object does not exist and there is nothing to do.
    Absent,
    /// The caches are older than the controller's own writes: observe again a little later.
    Behind,
    /// The object exists.
    Present {
        /// The UID of the object, for the journal.
        uid: Text,
        /// The observed state.
        observed: O,
    },
}

/// When a key is reconciled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// On the next event.
    OnEvent,
    /// On the next event, and at the latest after this time.
    After(Duration),
}
