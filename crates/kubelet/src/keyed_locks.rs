//! Locks by name, for what must happen one after the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use coracle_base::sync::Mutex;
use tokio::sync::OwnedMutexGuard;

/// A lock for each name that is in use. There are no more of them than holders and waiters.
#[derive(Default)]
pub(crate) struct KeyedLocks(Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl KeyedLocks {
    pub(crate) async fn lock(&self, name: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock();
            locks.retain(|_, lock| lock.strong_count() > 0);
            let known = locks.entry(name.to_owned()).or_default();
            known.upgrade().unwrap_or_else(|| {
                let fresh = Arc::default();
                *known = Arc::downgrade(&fresh);
                fresh
            })
        };
        lock.lock_owned().await
    }
}
