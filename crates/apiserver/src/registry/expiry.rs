//! Objects that expire: events, some time after they were last written.
//!
//! The store removes them: each is attached to a lease. Granting a lease is a write of its own, so
//! one lease is shared by all writes within an interval, and objects live that much longer at most.

use bytes::Bytes;
use coracle_store::{LeaseId, Put, Revision, Store, StoreError, SwapError};
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};

use super::{Registry, Scope};
use crate::cache::Entry;

/// The resource that expires, by its prefix in the store.
const EXPIRING: &str = "events";

/// A lease serves for a twentieth of its time, for this long and for so many objects at most.
const SHARE: u32 = 20;
const LONGEST_SHARED: Duration = Duration::from_secs(60);
const MOST_OBJECTS: u32 = 1000;

/// The time to live of such objects, and the lease that the next of them get.
pub struct Expiry {
    /// Zero: forever.
    after: Duration,
    current: Mutex<Option<Current>>,
}

struct Current {
    lease: LeaseId,
    until: Instant,
    objects: u32,
}

impl Expiry {
    pub fn new(after: Duration) -> Expiry {
        Expiry {
            after,
            current: Mutex::default(),
        }
    }

    /// A lease for one object that is written now.
    async fn lease(&self, store: &dyn Store) -> Result<LeaseId, StoreError> {
        // Held while one is granted: the others want the same.
        let mut current = self.current.lock().await;
        let now = Instant::now();
        if let Some(current) = &mut *current
            && now < current.until
            && current.objects < MOST_OBJECTS
        {
            current.objects += 1;
            return Ok(current.lease);
        }

        let shared = (self.after / SHARE).min(LONGEST_SHARED);
        let lease = store.grant_lease(self.after + shared, None).await?.id;
        *current = Some(Current {
            lease,
            until: now + shared,
            objects: 1,
        });

        Ok(lease)
    }

    /// A lease that the store does not know is not used again.
    async fn discard(&self, lease: LeaseId) {
        let mut current = self.current.lock().await;
        if current
            .as_ref()
            .is_some_and(|current| current.lease == lease)
        {
            *current = None;
        }
    }
}

impl Registry {
    /// Writes an object where nothing has changed since `seen`; zero is where nothing may be.
    pub(super) async fn swap(
        &self,
        scope: &Scope<'_>,
        seen: Revision,
        key: &Bytes,
        entry: &Entry,
    ) -> Result<Revision, SwapError> {
        let put = Put::new(key.clone(), entry.bytes().clone());
        let expires = scope
            .storage_version
            .resource
            .storage
            .as_ref()
            .is_some_and(|storage| storage.prefix == EXPIRING);

        if !expires || self.expiry.after.is_zero() {
            return self.store.replace(seen, put).await;
        }

        let lease = self.expiry.lease(&*self.store).await?;
        match self
            .store
            .replace(seen, put.clone().lease(Some(lease)))
            .await
        {
            // It ended, or was ended, before its time.
            Err(SwapError::Store(StoreError::LeaseNotFound(_))) => {
                self.expiry.discard(lease).await;
                let lease = self.expiry.lease(&*self.store).await?;
                self.store.replace(seen, put.lease(Some(lease))).await
            }
            done => done,
        }
    }
}
