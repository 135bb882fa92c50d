//! How many images are pulled at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use coracle_base::sync::Mutex;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// The setting of the kubelet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pulls {
    /// One at a time from each registry. Registries do not wait for each other, since a pod's author
    /// chooses the registry and a slow one would delay the pods of all others.
    #[default]
    Serial,
    /// At most so many; none: no limit.
    Parallel(Option<usize>),
}

pub(super) struct Puller {
    parallel: Option<Arc<Semaphore>>,
    /// A lock per registry that is held during a pull. There are no more of them than waiting pods.
    locks: Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>,
}

/// Held during a pull.
pub(super) enum PullPermit {
    Serial { _held: OwnedMutexGuard<()> },
    Parallel { _held: OwnedSemaphorePermit },
}

impl Puller {
    pub(super) fn new(pulls: Pulls) -> Puller {
        let parallel = match pulls {
            Pulls::Serial => None,
            Pulls::Parallel(most) => {
                let most = most.unwrap_or(Semaphore::MAX_PERMITS);
                Some(Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))))
            }
        };
        Puller {
            parallel,
            locks: Mutex::default(),
        }
    }

    /// Waits until an image may be pulled.
    pub(super) async fn turn(&self, registry: &str) -> PullPermit {
        if let Some(parallel) = &self.parallel {
            let held = Arc::clone(parallel).acquire_owned().await;
            return PullPermit::Parallel {
                _held: held.expect("it is never closed"),
            };
        }

        let lock = {
            let mut locks = self.locks.lock();
            locks.retain(|_, lock| lock.strong_count() > 0);
            let known = locks.entry(registry.to_owned()).or_default();
            known.upgrade().unwrap_or_else(|| {
                let fresh = Arc::default();
                *known = Arc::downgrade(&fresh);
                fresh
            })
        };
        PullPermit::Serial {
            _held: lock.lock_owned().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn one_image_is_pulled_from_a_registry_or_as_many_as_are_allowed() {
        let check = async |pulls: Pulls, asked: &[&str], expected: &[bool]| {
            let puller = Puller::new(pulls);
            let mut held = Vec::new();
            for registry in asked {
                held.push(puller.turn(registry).now_or_never());
            }
            let got: Vec<bool> = held.iter().map(Option::is_some).collect();
            assert_eq!(got, expected, "{pulls:?}");

            drop(held);
            assert!(puller.turn(asked[0]).now_or_never().is_some());
        };

        check(Pulls::Serial, &["a", "b", "a"], &[true, true, false]).await;
        check(
            Pulls::Parallel(Some(2)),
            &["a", "a", "b"],
            &[true, true, false],
        )
        .await;
        check(Pulls::Parallel(None), &["a", "a", "a"], &[true, true, true]).await;
    }
}
