//! When watchers are told: at once, unless they were told a moment ago; then together with what
//! else comes meanwhile.
//!
//! To wake a watcher and to write to it costs about the same for one event as for ten. The more
//! there are, the longer the moment: a thousand watchers of one resource get their events in tens
//! of milliseconds, and the machine has time for something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// The pause between two rings of a bell: so much for each who listens, within these bounds.
const FOR_EACH: Duration = Duration::from_micros(100);
const AT_LEAST: Duration = Duration::from_millis(4);
const AT_MOST: Duration = Duration::from_millis(50);

/// Wakes those who wait for events of one scope.
#[derive(Default)]
pub struct Bell {
    notify: Notify,
    armed: AtomicBool,
    listeners: AtomicUsize,
    rung_at: Mutex<Option<Instant>>,
}

impl Bell {
    /// Resolves at the next ring; taken before the events are looked at, it cannot be missed.
    pub fn heard(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// Notes that there is something to tell; `true`: it was not noted before.
    pub(super) fn arm(&self) -> bool {
        !self.armed.swap(true, Ordering::AcqRel)
    }

    pub(super) fn ring(&self) {
        self.armed.store(false, Ordering::Release);
        *self.rung_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.notify.notify_waiters();
    }

    pub(super) fn join(&self) {
        self.listeners.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.listeners.fetch_sub(1, Ordering::Relaxed);
    }

    /// When it may be rung; none: now.
    fn due(&self) -> Option<Instant> {
        let rung_at = *self.rung_at.lock().unwrap_or_else(PoisonError::into_inner);
        rung_at.map(|last| last + pause(self.listeners.load(Ordering::Relaxed)))
    }
}

/// Resolves when one of the bells has rung since this was called, whether or not it had been polled
/// by then.
pub fn any_heard(bells: &[Arc<Bell>]) -> impl Future<Output = ()> {
    select_all(bells.iter().map(|bell| Box::pin(bell.heard()))).map(|_| ())
}

fn pause(listeners: usize) -> Duration {
    let listeners = u32::try_from(listeners).unwrap_or(u32::MAX);
    FOR_EACH.saturating_mul(listeners).clamp(AT_LEAST, AT_MOST)
}

/// Bells that are to be rung.
#[derive(Default)]
pub(super) struct Bells {
    armed: Vec<Arc<Bell>>,
}

impl Bells {
    /// Has a bell rung when its time comes.
    pub(super) fn add(&mut self, bell: Arc<Bell>) {
        self.armed.push(bell);
    }

    /// Resolves when one of them is to be rung; never, if there are none.
    pub(super) async fn due(&self) {
        let dues = self.armed.iter().map(|bell| bell.due());
        match dues.min() {
            None => std::future::pending().await,
            Some(None) => {}
            Some(Some(due)) => tokio::time::sleep_until(due).await,
        }
    }

    /// Rings those whose time has come.
    pub(super) fn ring(&mut self) {
        let now = Instant::now();
        self.armed.retain(|bell| {
            let waits = bell.due().is_some_and(|due| due > now);
            if !waits {
                bell.ring();
            }
            waits
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_number_of_those_who_listen() {
        for (listeners, millis) in [(0, 4), (10, 4), (200, 20), (1000, 50), (100_000, 50)] {
            assert_eq!(
                pause(listeners),
                Duration::from_millis(millis),
                "{listeners}"
            );
        }
    }

    #[test]
    fn a_bell_rings_at_once_and_again_after_the_pause() {
        let bell = Arc::new(Bell::default());
        (0..200).for_each(|_| bell.join());
        let mut bells = Bells::default();
        assert!(bell.arm());

        bells.add(bell.clone());
        assert_eq!(bell.due(), None, "it was silent before");

        bells.ring();
        assert!(bells.armed.is_empty());

        let rung_at = bell.rung_at.lock().unwrap().unwrap();
        assert_eq!(bell.due(), Some(rung_at + Duration::from_millis(20)));
        assert!(
            bell.arm() && !bell.arm(),
            "what comes meanwhile is told together"
        );

        // Nobody is left to be spared.
        (0..200).for_each(|_| bell.leave());
        assert_eq!(bell.due(), Some(rung_at + AT_LEAST));
    }

    #[test]
    fn a_ring_before_anybody_waits_for_it_is_heard() {
        let bells = [Arc::new(Bell::default()), Arc::new(Bell::default())];
        assert!(any_heard(&bells).now_or_never().is_none(), "none has rung");
        let heard = any_heard(&bells);
        bells[1].ring();
        assert!(heard.now_or_never().is_some());
        assert!(
            any_heard(&bells).now_or_never().is_none(),
            "this was before"
        );
    }
}
