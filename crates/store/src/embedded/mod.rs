//! The embedded engine: an append-only log, with all live data in memory.
//!
//! A write waits in the `queue` until the `writer` takes it together with all others that wait
//! (group commit): they are evaluated one after the other (`evaluate`), framed (`frame`, `record`),
//! written to disk with a single sync (`log`), and then become visible (`index`), are answered, and
//! wake the watchers concerned (`watcher`). Readers use the index and never wait for a disk, unless
//! they need the value at an old revision (`read`). Between batches, history older than the window
//! is compacted (`retention`) and space reclaimed (`compaction`). At start the files are read back
//! (`tail`, `recovery`). All I/O goes through `files` and `clock`, except for the load of the
//! runtime (`runtime_load`), which only decides how long a batch waits.

mod backup;
mod clock;
pub mod commands;
mod compaction;
mod config;
mod evaluate;
pub mod files;
mod frame;
#[cfg(feature = "testing")]
pub mod fuzz;
mod index;
mod layout;
mod leases;
mod log;
mod open_error;
mod queue;
mod read;
mod record;
mod recovery;
mod retention;
mod runtime_load;
mod shared;
mod tail;
mod watcher;
mod writer;

pub use backup::{Backup, BackupError, CheckReport, RestoreReport, check, restore};
pub use clock::{Clock, SystemClock};
pub use config::{Coalesce, Config};
pub use open_error::OpenError;

use crate::{
    KeyRange, KeyValue, LeaseId, LeaseStatus, RangeAnswer, RangeRequest, Revision, Store,
    StoreError, StoreStatus, Txn, TxnAnswer, Unavailable, Watch, WatchRequest,
};
use async_trait::async_trait;
use backup::{existing_manifest, lock_to_read};
use files::{Files, Lock};
use index::ReadVersion;
use layout::Manifest;
use queue::Request;
use runtime_load::RuntimeLoad;
use shared::Shared;
use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};
use watcher::{Watcher, resolve_all};
use writer::{RecoveredLog, Writer};

/// The engine. Dropping it, or [`Embedded::close`], serves the queued requests, then closes the
/// files.
pub struct Embedded {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    next_lease: AtomicU64,
}

/// The writer of an engine without a thread of its own, for simulation on one thread. Nothing is
/// written unless it is run; dropping it closes the store.
pub struct Driver {
    writer: Writer,
    _lock: Option<Box<dyn Lock>>,
}

/// A hash of all keys at a revision: equal for two stores with the same contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    pub hash: u32,
    pub revision: Revision,
    pub compacted: Revision,
}

/// The engine's memory use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub live_keys: u64,
    /// The size of the live keys in a file, which is about their size in memory.
    pub live_bytes: u64,
    /// The size of the history.
    pub history_bytes: u64,
}

/// The longest time to live of a lease: etcd's.
const MAX_LEASE: Duration = Duration::from_secs(9_000_000_000);

impl Embedded {
    /// The version of etcd whose semantics the engine implements.
    pub const ETCD_VERSION: &str = "3.6.0";

    /// Opens or creates the store in `files`, with a writer thread of its own. Should be called in
    /// the runtime whose tasks write to the store, if there is one.
    pub fn open(
        config: Config,
        files: Arc<dyn Files>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let path = files.path();
        let (store, driver) = Self::open_driven(config, files, clock)?;
        let runtime_load = RuntimeLoad::current();
        let thread = std::thread::Builder::new().name("store-writer".into());
        let spawned = thread.spawn(move || {
            let Driver { writer, _lock } = driver;
            writer.run(&runtime_load);
        });
        let spawned = spawned.map_err(OpenError::io(&path, "cannot start the writer thread"))?;
        *store.writer.lock().expect(shared::UNPOISONED) = Some(spawned);
        Ok(store)
    }

    /// Opens the store without a thread: it writes when the driver runs.
    pub fn open_driven(
        config: Config,
        files: Arc<dyn Files>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Driver), OpenError> {
        let path = files.path();
        let lock = files
            .lock()
            .map_err(OpenError::io(&path, "cannot lock the directory"))?;
        let lock = lock.ok_or_else(|| OpenError::InUse { path: path.clone() })?;

        let manifest = match recovery::read_manifest(&*files)? {
            Some(manifest) => manifest,
            None => {
                create(&*files, &*clock).map_err(OpenError::io(&path, "cannot create the store"))?
            }
        };

        match tail::make_durable(&*files, &manifest) {
            // With a full disk writes fail, but reads must work. The tail is rewritten at a later
            // start.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
            made => made.map_err(OpenError::io(&path, "cannot rewrite the end of the log"))?,
        }

        Self::recover(config, files, clock, manifest, Some(lock))
    }

    /// The same to be read from alone, and as it stands: also on a read-only disk, which keeps the
    /// end of the log from being made certain. The last batch is shown, as it may have been
    /// acknowledged.
    pub(crate) fn open_to_read(
        files: Arc<dyn Files>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Driver), OpenError> {
        let lock = lock_to_read(&*files)?;
        let manifest = existing_manifest(&*files)?;
        Self::recover(Config::default(), files, clock, manifest, lock)
    }

    fn recover(
        config: Config,
        files: Arc<dyn Files>,
        clock: Arc<dyn Clock>,
        manifest: Manifest,
        lock: Option<Box<dyn Lock>>,
    ) -> Result<(Self, Driver), OpenError> {
        let recovered = recovery::recover(&files, &config, manifest, clock.elapsed())?;
        let shared = Arc::new(Shared {
            index: RwLock::new(recovered.index),
            leases: Mutex::new(recovered.leases),
            slots: Mutex::default(),
            pins: Mutex::new(BTreeMap::new()),
            queue: queue::Queue::default(),
            closed: AtomicBool::new(false),
            file_bytes: AtomicU64::new(0),
            window_bytes: AtomicU64::new(0),
            store: recovered.manifest.store,
            config,
            files,
            clock,
        });

        let recovery::Recovered {
            log,
            manifest,
            changed,
            marks,
            unreferenced,
            ..
        } = recovered;

        let writer = Writer::new(
            shared.clone(),
            RecoveredLog {
                log,
                manifest,
                changed,
                marks,
                unreferenced,
            },
        );

        let seed = u64::try_from(shared.clock.unix().as_nanos()).unwrap_or_default();
        let store = Embedded {
            next_lease: AtomicU64::new(seed),
            writer: Mutex::new(None),
            shared,
        };

        Ok((
            store,
            Driver {
                writer,
                _lock: lock,
            },
        ))
    }

    /// Serves the queued requests, then stops. Afterwards every request fails and every watch ends.
    pub fn close(&self) {
        self.shared.queue.close();
        let writer = self.writer.lock().expect(shared::UNPOISONED).take();
        if writer.is_some_and(|thread| thread.join().is_err()) {
            self.shared.shut(); // the writer panicked; the panic message was printed
        }
    }

    /// A number unique to this store, for ids that must differ between stores.
    pub fn store_id(&self) -> u64 {
        self.shared.store
    }

    /// The newest durable revision.
    pub fn revision(&self) -> Revision {
        self.shared.index().revision()
    }

    /// Whether it accepts no more requests.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// The engine's memory use.
    pub fn memory(&self) -> Memory {
        let index = self.shared.index();
        Memory {
            live_keys: index.live_keys(),
            live_bytes: index.live_bytes(),
            history_bytes: index.history_bytes() as u64,
        }
    }

    /// Computes a hash of all keys at revision `at`, or now.
    pub async fn hash(&self, at: Option<Revision>) -> Result<Hash, StoreError> {
        let answer = self
            .range(RangeRequest {
                at,
                ..RangeRequest::new(KeyRange::all())
            })
            .await?;
        let hash = answer.kvs.iter().fold(0, fold);

        let revision = at.unwrap_or(answer.revision);
        Ok(Hash {
            hash,
            revision,
            compacted: self.shared.index().compacted(),
        })
    }

    /// Reclaims all the space that can be reclaimed now.
    pub async fn defragment(&self) -> Result<(), StoreError> {
        self.shared.queue.send(Request::Defragment).await
    }

    /// A consistent copy of the current state, to be read in chunks while the store is running.
    pub fn backup(&self) -> Backup {
        Backup::new(&self.shared)
    }

    /// Reads page by page, at the requested revision or at the current one when it begins.
    async fn range_in_pages(&self, request: &RangeRequest) -> Result<RangeAnswer, StoreError> {
        let mut found = Vec::new();
        let mut count = 0;
        let mut range = request.range.clone();

        let mut at = request.at;
        let (revision, current) = loop {
            let index = self.shared.index();
            let revision = *at.get_or_insert(index.revision());
            index.readable(revision)?;

            let page = read::page(
                &index,
                &range,
                revision,
                read::wanted(request) - found.len(),
            );
            count += page.count;

            found.extend(page.found);

            match page.next {
                Some(next) => range = range.starting_at(next),
                None => break (revision, index.revision()),
            }
        };

        let kvs = if found.iter().all(ReadVersion::is_in_memory) {
            found
                .into_iter()
                .map(ReadVersion::resolve)
                .collect::<Result<_, _>>()?
        } else {
            resolve_all(&self.shared, || {
                found.into_iter().map(ReadVersion::resolve).collect()
            })
            .await?
        };

        // The keys are as of `revision`; only a read at an old revision may report a newer one.
        let current = if request.at.is_some() {
            current
        } else {
            revision
        };

        Ok(read::answer_counted(current, kvs, count, request))
    }

    fn new_lease_id(&self) -> LeaseId {
        loop {
            let number = self.next_lease.fetch_add(1, Ordering::Relaxed) & (u64::MAX >> 1);
            if let Some(id) = i64::try_from(number).ok().and_then(LeaseId::from_wire) {
                return id;
            }
        }
    }
}

#[async_trait]
impl Store for Embedded {
    async fn range(&self, request: RangeRequest) -> Result<RangeAnswer, StoreError> {
        loop {
            match self.range_in_pages(&request).await {
                // A long read of the current state was overtaken by compaction: read the newer
                // state.
                Err(StoreError::Compacted { .. }) if request.at.is_none() => {}
                answer => return answer,
            }
        }
    }

    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, StoreError> {
        evaluate::validate(&txn)?;
        let bytes = evaluate::request_bytes(&txn);
        let limit = self.shared.config.request_bytes;
        if bytes > limit {
            return Err(crate::InvalidRequest::TooLarge { bytes, limit }.into());
        }
        self.shared
            .queue
            .send(|reply| Request::Txn(txn, reply))
            .await
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch, StoreError> {
        if self.shared.is_closed() {
            return Err(Unavailable::Closed.into());
        }
        let (created_at, watcher) = Watcher::open(self.shared.clone(), request)?;
        Ok(Watch::new(created_at, Box::new(watcher)))
    }

    async fn current_revision(&self) -> Result<Revision, StoreError> {
        Ok(self.revision())
    }

    async fn progress(&self) -> Result<(), StoreError> {
        self.shared
            .slots()
            .iter()
            .for_each(|slot| slot.request_progress());
        Ok(())
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.shared
            .queue
            .send(|reply| Request::Compact { revision, reply })
            .await
    }

    async fn grant_lease(
        &self,
        ttl: Duration,
        id: Option<LeaseId>,
    ) -> Result<LeaseStatus, StoreError> {
        if ttl > MAX_LEASE {
            return Err(crate::InvalidRequest::LeaseTtlTooLarge.into());
        }

        let ttl = ttl.max(Duration::from_secs(1));
        let id = id.unwrap_or_else(|| self.new_lease_id());
        self.shared
            .queue
            .send(|reply| Request::GrantLease { id, ttl, reply })
            .await?;

        Ok(LeaseStatus {
            id,
            granted: ttl,
            remaining: ttl,
            keys: Vec::new(),
        })
    }

    async fn keep_lease_alive(&self, id: LeaseId) -> Result<Duration, StoreError> {
        let now = self.shared.clock.elapsed();
        self.shared
            .leases()
            .keep_alive(id, now)
            .ok_or(StoreError::LeaseNotFound(id))
    }

    async fn revoke_lease(&self, id: LeaseId) -> Result<Revision, StoreError> {
        self.shared
            .queue
            .send(|reply| Request::EndLease {
                id,
                reply: Some(reply),
            })
            .await
    }

    async fn lease_status(&self, id: LeaseId) -> Result<LeaseStatus, StoreError> {
        let now = self.shared.clock.elapsed();
        self.shared
            .leases()
            .status(id, now)
            .ok_or(StoreError::LeaseNotFound(id))
    }

    async fn leases(&self) -> Result<Vec<LeaseId>, StoreError> {
        Ok(self.shared.leases().ids())
    }

    async fn status(&self) -> Result<StoreStatus, StoreError> {
        let index = self.shared.index();
        let file_bytes = self.shared.file_bytes.load(Ordering::Relaxed);
        let used = index.live_bytes() + self.shared.window_bytes.load(Ordering::Relaxed);
        Ok(StoreStatus {
            revision: index.revision(),
            compacted: index.compacted(),
            file_bytes,
            used_bytes: used.min(file_bytes),
            version: Embedded::ETCD_VERSION.into(),
        })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.close();
    }
}

impl Driver {
    /// Serves the queued requests and does a part of the background work. Returns how long there is
    /// nothing to do unless a request comes; `None` means forever.
    pub fn turn(&mut self) -> Option<Duration> {
        self.writer.turn()
    }

    /// Runs until the store is closed, sleeping with `tokio::time` when there is nothing to do.
    pub async fn run(self) {
        self.writer.run_as_task().await;
    }
}

fn create(files: &dyn Files, clock: &dyn Clock) -> io::Result<Manifest> {
    let store = u64::try_from(clock.unix().as_nanos()).unwrap_or_default();
    let manifest = Manifest::fresh(store);
    recovery::write_manifest(files, &manifest)?;
    Ok(manifest)
}

fn fold(hash: u32, kv: &KeyValue) -> u32 {
    let numbers = [kv.create_revision.get(), kv.mod_revision.get(), kv.version];
    let hash = crc32c::crc32c_append(hash, &kv.key);
    let hash = numbers.iter().fold(hash, |hash, number| {
        crc32c::crc32c_append(hash, &number.to_le_bytes())
    });
    crc32c::crc32c_append(hash, &kv.value)
}
