//! Wakes waiting watchers: at once, unless they were woken a moment ago; then together for all
//! events that come meanwhile.
//!
//! To wake a watcher and to write to it costs about the same for one event as for ten. The more
//! watchers there are, the longer the pause: a thousand watchers of one resource get their events in
//! tens of milliseconds, which leaves the CPU to other work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use coracle_base::sync::Mutex;
use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// The pause between two notifications: so much for each watcher, within these bounds.
const FOR_EACH: Duration = Duration::from_micros(100);
const AT_LEAST: Duration = Duration::from_millis(4);
const AT_MOST: Duration = Duration::from_millis(50);

/// Wakes the watchers of one queue of events.
#[derive(Default)]
pub struct Notifier {
    notify: Notify,
    armed: AtomicBool,
    listeners: AtomicUsize,
    notified_at: Mutex<Option<Instant>>,
}

impl Notifier {
    /// Resolves at the next notification. Taken before the events are read, it cannot be missed.
    pub fn notified(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// Notes that there are events; `true`: it was not noted before.
    pub(super) fn arm(&self) -> bool {
        !self.armed.swap(true, Ordering::AcqRel)
    }

    pub(super) fn notify(&self) {
        self.armed.store(false, Ordering::Release);
        *self.notified_at.lock() = Some(Instant::now());
        self.notify.notify_waiters();
    }

    pub(super) fn join(&self) {
        self.listeners.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leave(&self) {
        self.listeners.fetch_sub(1, Ordering::Relaxed);
    }

    /// When it may notify; none: now.
    fn due(&self) -> Option<Instant> {
        let notified_at = *self.notified_at.lock();
        notified_at.map(|last| last + pause(self.listeners.load(Ordering::Relaxed)))
    }
}

/// Resolves when one of the notifiers has notified since this was called, whether or not it had been
/// polled by then.
pub fn any_notified(notifiers: &[Arc<Notifier>]) -> impl Future<Output = ()> {
    select_all(
        notifiers
            .iter()
            .map(|notifier| Box::pin(notifier.notified())),
    )
    .map(|_| ())
}

fn pause(listeners: usize) -> Duration {
    let listeners = u32::try_from(listeners).unwrap_or(u32::MAX);
    FOR_EACH.saturating_mul(listeners).clamp(AT_LEAST, AT_MOST)
}

/// Notifiers that are due to notify.
#[derive(Default)]
pub(super) struct PendingNotifiers {
    armed: Vec<Arc<Notifier>>,
}

impl PendingNotifiers {
    /// Adds a notifier that notifies when its pause is over.
    pub(super) fn add(&mut self, notifier: Arc<Notifier>) {
        self.armed.push(notifier);
    }

    /// Resolves when one of them is due; never, if there are none.
    pub(super) async fn due(&self) {
        let dues = self.armed.iter().map(|notifier| notifier.due());
        match dues.min() {
            None => std::future::pending().await,
            Some(None) => {}
            Some(Some(due)) => tokio::time::sleep_until(due).await,
        }
    }

    /// Notifies through those that are due.
    pub(super) fn notify(&mut self) {
        let now = Instant::now();
        self.armed.retain(|notifier| {
            let waits = notifier.due().is_some_and(|due| due > now);
            if !waits {
                notifier.notify();
            }
            waits
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_number_of_watchers() {
        for (listeners, millis) in [(0, 4), (10, 4), (200, 20), (1000, 50), (100_000, 50)] {
            assert_eq!(
                pause(listeners),
                Duration::from_millis(millis),
                "{listeners}"
            );
        }
    }

    #[test]
    fn a_notifier_notifies_at_once_and_again_after_the_pause() {
        let notifier = Arc::new(Notifier::default());
        (0..200).for_each(|_| notifier.join());
        let mut notifiers = PendingNotifiers::default();
        assert!(notifier.arm());

        notifiers.add(notifier.clone());
        assert_eq!(notifier.due(), None, "it has not notified before");

        notifiers.notify();
        assert!(notifiers.armed.is_empty());

        let notified_at = notifier.notified_at.lock().unwrap();
        assert_eq!(
            notifier.due(),
            Some(notified_at + Duration::from_millis(20))
        );
        assert!(
            notifier.arm() && !notifier.arm(),
            "events that come meanwhile are notified together"
        );

        // Without watchers the pause is the shortest.
        (0..200).for_each(|_| notifier.leave());
        assert_eq!(notifier.due(), Some(notified_at + AT_LEAST));
    }

    #[test]
    fn a_notification_before_the_wait_is_not_missed() {
        let notifiers = [Arc::new(Notifier::default()), Arc::new(Notifier::default())];
        assert!(
            any_notified(&notifiers).now_or_never().is_none(),
            "none has notified"
        );
        let notified = any_notified(&notifiers);
        notifiers[1].notify();
        assert!(notified.now_or_never().is_some());
        assert!(
            any_notified(&notifiers).now_or_never().is_none(),
            "this was before"
        );
    }
}
