//! The writer: applies all changes, in batches (group commit).
//!
//! A turn takes the queued requests, evaluates them against the index and the earlier writes of the
//! same batch, writes the batch to disk with one write and one sync, and only then publishes it,
//! answers the requests and wakes watchers. Between batches it does background work: expires
//! leases, compacts history, rewrites the log into parts. The writer runs as a thread in
//! production, as a task, or in a test that calls [`Writer::turn`].

use super::compaction::Round;
use super::evaluate::{self, Evaluated, Pending};
use super::frame::{FrameBuffer, Position, Stamp, size};
use super::index::Write;
use super::layout::Manifest;
use super::log::Log;
use super::queue::{Reply, Request};
use super::record::{Record, milliseconds};
use super::retention::Marks;
use super::runtime_load::RuntimeLoad;
use super::shared::Shared;
use super::watcher::Slot;
use crate::{LeaseId, Revision, StoreError, Unavailable};
use std::{sync::Arc, time::Duration};

pub(crate) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) log: Log,
    pub(super) manifest: Manifest,
    /// For each part, the newest revision that changed one of its keys.
    pub(super) changed: Vec<Revision>,
    pub(super) round: Option<Round>,
    pub(super) defragmenting: Vec<Reply<()>>,
    /// The manifest on disk is older than ours.
    pub(super) unsaved: bool,
    /// Files to remove once the manifest on disk does not name them.
    pub(super) to_remove: Vec<String>,
    /// After a disk failure in background work, it is not retried before this time.
    pub(super) retry_after: Duration,
    marks: Marks,
    held: Held,
    /// How many requests the last turn served.
    last_batch: usize,
    writes_fail: bool,
}

/// Requests that wait to share a flush with others.
#[derive(Default)]
struct Held {
    requests: Vec<Request>,
    until: Duration,
}

/// Delay before background work is retried after a disk failure.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// How many changes are removed from the history between two batches.
const TRIM: usize = 4096;
/// How many keys are changed under one hold of the index lock. Readers wait for that, so it must
/// take microseconds.
pub(super) const HOLD: usize = 16;
/// How many transactions are published under one hold. Each hold contends with readers and costs
/// the writers time.
const PUBLISHED_AT_ONCE: usize = 4;

/// After a batch of at least this size, the next one waits for more requests…
const GROUP_SIZE: usize = 4;
/// …but no longer than this.
const GROUP_WAIT: Duration = Duration::from_micros(300);

/// While the runtime is busy, a batch waits until it has this many requests…
const BUSY_GROUP_SIZE: usize = 64;
/// …checking the load at this interval…
const BUSY_WAIT: Duration = Duration::from_micros(400);
/// …at most this many times.
const BUSY_WAITS: usize = 3;

/// An evaluated request with its answer, which is sent once the batch is durable or has failed.
struct Prepared {
    answer: Box<dyn FnOnce(Option<Unavailable>) + Send>,
    /// It wrote, or read an earlier write of the batch.
    needs_disk: bool,
}

/// A change to be published, in order.
enum Visible {
    Writes(Revision, Vec<Write>),
    Lease(LeaseId, Duration),
    LeaseEnd(LeaseId),
    Compacted(Revision),
}

/// A batch in progress.
struct Batch {
    buffer: FrameBuffer,
    start: u32,
    time: u64,
    prepared: Vec<Prepared>,
    visible: Vec<Visible>,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, recovered: RecoveredLog) -> Self {
        let writer = Writer {
            shared,
            log: recovered.log,
            manifest: recovered.manifest,
            changed: recovered.changed,
            round: None,
            defragmenting: Vec::new(),
            unsaved: false,
            to_remove: recovered.unreferenced,
            retry_after: Duration::ZERO,
            marks: recovered.marks,
            held: Held::default(),
            last_batch: 0,
            writes_fail: false,
        };
        writer.publish_sizes();

        writer
    }

    /// Runs until the store is closed, as a thread.
    pub(crate) fn run(mut self, runtime_load: &RuntimeLoad) {
        loop {
            let pause = self.turn();

            if self.shared.queue.is_closed() && self.shared.queue.is_empty() {
                return self.last_turn();
            }

            if self.last_batch >= GROUP_SIZE {
                // The callers just answered are about to send their next requests: a sync for the
                // first of them would only delay the others.
                let expected = self.last_batch + self.shared.queue.len();
                self.shared.queue.wait(expected * 3 / 4, Some(GROUP_WAIT));
            }

            if pause != Some(Duration::ZERO) {
                self.shared.queue.wait(1, pause);
            }

            self.wait_for_group(runtime_load);
        }
    }

    /// On a busy machine, requests arrive one by one, and a sync for every two or three of them
    /// would take a fifth of the CPU time. Tasks that are busy anyway lose nothing if their writes
    /// wait for those of the others.
    fn wait_for_group(&self, runtime_load: &RuntimeLoad) {
        for _ in 0..BUSY_WAITS {
            let here = self.shared.queue.len();
            if here == 0
                || here >= BUSY_GROUP_SIZE
                || self.shared.queue.is_closed()
                || !runtime_load.is_saturated()
            {
                return;
            }
            self.shared.queue.wait(BUSY_GROUP_SIZE, Some(BUSY_WAIT));
        }
    }

    /// Runs until the store is closed, as a task.
    pub(crate) async fn run_as_task(mut self) {
        loop {
            let pause = self.turn();
            if self.shared.queue.is_closed() && self.shared.queue.is_empty() {
                return self.last_turn();
            }
            match pause {
                Some(Duration::ZERO) => tokio::task::yield_now().await,
                pause => self.shared.queue.wait_as_task(pause).await,
            }
        }
    }

    /// Does what can be done now. Returns how long there is nothing to do unless a request comes.
    pub(crate) fn turn(&mut self) -> Option<Duration> {
        let now = self.shared.clock.elapsed();
        let mut requests = self.take_requests(now);
        if now >= self.retry_after {
            let ended = self.shared.leases().ended(now);
            requests.extend(
                ended
                    .into_iter()
                    .map(|id| Request::EndLease { id, reply: None }),
            );
        }

        self.last_batch = requests.len();

        if !requests.is_empty() {
            self.commit(requests);
        }

        let busy = self.compact_history() | (now >= self.retry_after && self.settle(now));
        if busy {
            Some(Duration::ZERO)
        } else {
            self.pause(now)
        }
    }

    /// The store is closed: the delayed requests are served now.
    fn last_turn(&mut self) {
        let held = std::mem::take(&mut self.held.requests);
        if !held.is_empty() {
            self.commit(held);
        }
    }

    fn take_requests(&mut self, now: Duration) -> Vec<Request> {
        let requests = self.shared.queue.take();
        let Some(coalesce) = &self.shared.config.coalesce else {
            return requests;
        };
        let patient = |request: &Request| match request {
            Request::Txn(txn, _) => evaluate::writes_only_below(txn, &coalesce.prefix),
            _ => false,
        };
        let urgent = !requests.iter().all(patient);

        if self.held.requests.is_empty() {
            self.held.until = now + coalesce.delay;
        }

        self.held.requests.extend(requests);

        if urgent || now >= self.held.until {
            std::mem::take(&mut self.held.requests)
        } else {
            Vec::new()
        }
    }

    fn commit(&mut self, mut requests: Vec<Request>) {
        self.take_defragment(&mut requests);
        let room = match requests.iter().any(may_write) {
            true => self.prepare_log(),
            false => Ok(()),
        };

        let batch = self.evaluate(requests);
        let written = if batch.buffer.bytes().is_empty() {
            Ok(())
        } else {
            room.and_then(|()| self.write(&batch.buffer, batch.last_revision()))
        };

        let failure = written.err().map(|error| self.shared.disk_error(&error));
        if !batch.buffer.bytes().is_empty() {
            self.log_failure(failure.as_ref());
        }

        if failure.is_none() {
            self.publish(batch.visible);
        } else {
            self.retry_after = self.shared.clock.elapsed() + RETRY;
        }

        for prepared in batch.prepared {
            let failure = failure.clone().filter(|_| prepared.needs_disk);
            (prepared.answer)(failure);
        }

        self.publish_sizes();
    }

    /// Logs when writes start to fail and when they succeed again, each once.
    fn log_failure(&mut self, failure: Option<&Unavailable>) {
        match failure {
            Some(error) if !self.writes_fail => {
                tracing::error!(%error, "store writes failing; reads continue")
            }
            None if self.writes_fail => tracing::info!("store writes recovered"),
            _ => {}
        }
        self.writes_fail = failure.is_some();
    }

    fn prepare_log(&mut self) -> std::io::Result<()> {
        let revision = self.shared.index().revision();
        if let Some(begun) = self.log.prepare(revision)? {
            self.shared.index_mut().add_file(begun.id, begun.file);
        }
        Ok(())
    }

    fn write(&mut self, buffer: &FrameBuffer, last: Option<Revision>) -> std::io::Result<()> {
        let last = last.unwrap_or_else(|| self.shared.index().revision());
        self.log.append(buffer, last)
    }

    fn evaluate(&self, requests: Vec<Request>) -> Batch {
        let index = self.shared.index();
        let leases = self.shared.leases();
        let mut pending = Pending::new(&index, &leases);

        let mut batch = Batch::new(self.log.buffer(), self.shared.clock.unix());
        for request in requests {
            match request {
                // The caller has dropped its request, so it must not be executed.
                Request::Txn(_, reply) if reply.is_closed() => {}
                Request::Txn(txn, reply) => {
                    let answer = pending.txn(&txn).map(|evaluated| batch.add(evaluated, &[]));
                    batch.prepare(reply, answer);
                }
                Request::GrantLease { id, ttl, reply } => {
                    let answer = pending.grant(id, ttl);
                    if answer.is_ok() {
                        batch.note(
                            pending.revision(),
                            &Record::GrantLease { id, ttl },
                            Visible::Lease(id, ttl),
                        );
                    }

                    batch.prepare(reply, answer);
                }
                Request::EndLease { id, reply } => {
                    let ended = pending.end_lease(id).map(|evaluated| {
                        let revision = evaluated.answer.revision;
                        batch.add(evaluated, &[Record::EndLease { id }]);
                        batch.visible.push(Visible::LeaseEnd(id));
                        revision
                    });

                    if let Some(reply) = reply {
                        batch.prepare(reply, ended);
                    }
                }
                Request::Compact { revision, reply } => {
                    let answer = compactable(index.compacted(), pending.revision(), revision);
                    if answer.is_ok() {
                        let visible = Visible::Compacted(revision);
                        batch.note(pending.revision(), &Record::Compact { revision }, visible);
                    }
                    batch.prepare(reply, answer);
                }
                Request::Defragment(_) => {}
            }
        }

        batch
    }

    /// Publishes a durable batch, a few transactions at a time: a reader waits for those at most,
    /// never for a whole batch.
    fn publish(&mut self, visible: Vec<Visible>) {
        let now = self.shared.clock.elapsed();
        let mut woken = Vec::new();
        let mut items = visible.into_iter().peekable();
        while items.peek().is_some() {
            let mut few: Vec<Visible> = items.by_ref().take(PUBLISHED_AT_ONCE).collect();
            // A lease must disappear together with its keys.
            few.extend(items.next_if(|next| matches!(next, Visible::LeaseEnd(_))));
            self.publish_few(few, now, &mut woken);
        }

        woken.iter().for_each(|slot| slot.wake());
        let beyond = self.shared.index_mut().take_beyond_recent();
        drop(beyond);
        let revision = self.shared.index().revision();
        self.marks.note(self.shared.clock.unix(), revision);
    }

    /// Publishes a few changes at once.
    fn publish_few(&mut self, items: Vec<Visible>, now: Duration, woken: &mut Vec<Arc<Slot>>) {
        let mut changed = Vec::new();
        {
            let mut index = self.shared.index_mut();
            let mut leases = self.shared.leases();
            for item in items {
                match item {
                    Visible::Lease(id, ttl) => leases.grant(id, ttl, now),
                    Visible::LeaseEnd(id) => leases.end(id),
                    Visible::Compacted(revision) => index.compact(revision),
                    Visible::Writes(revision, writes) => {
                        let slots = self.shared.slots();
                        for one in index.apply(revision, writes) {
                            woken.extend(
                                slots
                                    .iter()
                                    .filter(|slot| slot.notify_change(&one.key, revision))
                                    .cloned(),
                            );
                            leases.move_key(&one.key, one.old_lease, one.new_lease);
                            changed.push((one.key, revision));
                        }
                    }
                }
            }
        }

        for (key, revision) in changed {
            let part = self.manifest.part_of(&key);
            self.changed[part] = revision;
        }
    }

    /// Compacts history that is old enough. Returns whether there is more to do immediately.
    fn compact_history(&mut self) -> bool {
        let (current, compacted, oldest) = {
            let index = self.shared.index();
            (index.revision(), index.compacted(), index.oldest_change())
        };

        let kept = self
            .marks
            .oldest_kept(&self.shared.config, self.shared.clock.unix(), current);
        if kept > compacted {
            self.shared.index_mut().compact(kept);
            self.marks.trim(kept);
        }

        let removable_through = self.removable_through(kept.max(compacted));
        if oldest.is_none_or(|oldest| oldest > removable_through) {
            return false;
        }

        (0..TRIM / HOLD).all(|_| self.shared.index_mut().trim(removable_through, HOLD))
    }

    /// The newest revision whose changes are not needed any more, if `compacted` is the oldest one
    /// kept.
    pub(super) fn removable_through(&self, compacted: Revision) -> Revision {
        let settling = self.round.as_ref().map(Round::target);
        let pinned = self.shared.oldest_pin();
        [settling, pinned]
            .into_iter()
            .flatten()
            .fold(compacted.previous(), Revision::min)
    }

    /// How long there is nothing to do.
    fn pause(&self, now: Duration) -> Option<Duration> {
        let lease = self
            .shared
            .leases()
            .next_end()
            .map(|ends| ends.max(self.retry_after));

        let held = Some(self.held.until).filter(|_| !self.held.requests.is_empty());
        let elapsed = [lease, held]
            .into_iter()
            .flatten()
            .map(|at| at.saturating_sub(now))
            .min();

        let (current, compacted) = {
            let index = self.shared.index();
            (index.revision(), index.compacted())
        };

        let unix = self.shared.clock.unix();
        let window = self
            .marks
            .next_change(&self.shared.config, unix, current, compacted);

        // Compacting a little later costs nothing; waking up every second would.
        let window = window.map(|at| {
            at.saturating_sub(unix)
                .max(self.shared.config.retention / 10)
        });

        let background = Some(self.retry_after.saturating_sub(now))
            .filter(|wait| !wait.is_zero() && self.has_background_work());

        [elapsed, window, background].into_iter().flatten().min()
    }

    fn take_defragment(&mut self, requests: &mut Vec<Request>) {
        let asked = requests.extract_if(.., |request| matches!(request, Request::Defragment(_)));
        for request in asked {
            if let Request::Defragment(reply) = request {
                self.defragmenting.push(reply);
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.shut();
    }
}

impl Batch {
    fn new(buffer: FrameBuffer, time: Duration) -> Self {
        let start = buffer.start();
        Batch {
            buffer,
            start,
            time: milliseconds(time),
            prepared: Vec::new(),
            visible: Vec::new(),
        }
    }

    /// Adds the writes of a transaction, with `more` records in the same frame; returns its answer.
    fn add(&mut self, evaluated: Evaluated, more: &[Record<'_>]) -> crate::TxnAnswer {
        let Evaluated { answer, mut writes } = evaluated;
        if writes.is_empty() && more.is_empty() {
            return answer;
        }

        let stamp = Stamp {
            revision: answer.revision,
            time: self.time,
            batch: self.start,
        };

        let first = self.buffer.push(stamp, |out| {
            writes.iter().for_each(|write| record(write).encode(out));
            more.iter().for_each(|record| record.encode(out));
        });

        for (number, write) in writes.iter_mut().enumerate() {
            if let Some(live) = &mut write.live {
                live.at = Position {
                    record: size(number),
                    ..first
                };
            }
        }

        if !writes.is_empty() {
            self.visible.push(Visible::Writes(answer.revision, writes));
        }

        answer
    }

    /// Adds a record that is no change of a key.
    fn note(&mut self, revision: Revision, record: &Record<'_>, visible: Visible) {
        self.buffer.push(
            Stamp {
                revision,
                time: self.time,
                batch: self.start,
            },
            |out| record.encode(out),
        );
        self.visible.push(visible);
    }

    fn prepare<T: Send + 'static>(&mut self, reply: Reply<T>, answer: Result<T, StoreError>) {
        let answer = move |failure: Option<Unavailable>| {
            let answer = failure.map_or(answer, |failure| Err(failure.into()));
            drop(reply.send(answer)); // the caller may have stopped waiting
        };
        let needs_disk = !self.buffer.bytes().is_empty();
        self.prepared.push(Prepared {
            answer: Box::new(answer),
            needs_disk,
        });
    }

    fn last_revision(&self) -> Option<Revision> {
        self.visible.iter().rev().find_map(|item| match item {
            Visible::Writes(revision, _) => Some(*revision),
            _ => None,
        })
    }
}

/// The log record of a write.
fn record(write: &Write) -> Record<'_> {
    match &write.live {
        Some(live) => Record::Put {
            key: &write.key,
            value: &live.value,
            create: live.create,
            version: live.version,
            lease: live.lease,
        },
        None => Record::Delete { key: &write.key },
    }
}

fn compactable(
    compacted: Revision,
    current: Revision,
    requested: Revision,
) -> Result<(), StoreError> {
    if requested > current {
        return Err(StoreError::FutureRevision { requested, current });
    }

    // There was nothing before revision 0, so compacting to it is valid while nothing is compacted.
    let nothing_yet = compacted == Revision::ZERO && requested == Revision::ZERO;
    if requested <= compacted && !nothing_yet {
        return Err(StoreError::Compacted {
            requested,
            compacted,
        });
    }

    Ok(())
}

fn may_write(request: &Request) -> bool {
    match request {
        Request::Txn(txn, _) => evaluate::may_write(txn),
        Request::Defragment(_) => false,
        Request::GrantLease { .. } | Request::EndLease { .. } | Request::Compact { .. } => true,
    }
}

/// The part of the recovered state that the writer owns.
pub(crate) struct RecoveredLog {
    pub(crate) log: Log,
    pub(crate) manifest: Manifest,
    pub(crate) changed: Vec<Revision>,
    pub(crate) marks: Marks,
    pub(crate) unreferenced: Vec<String>,
}
