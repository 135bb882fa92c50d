//! The writer: the one place that changes anything.
//!
//! A turn takes what waits, evaluates it against the index and what the same batch already wrote,
//! puts the batch on the disk with one write and one sync, and only then makes it visible, answers,
//! and wakes watchers. Between batches it does the chores: ends leases, forgets history, settles
//! the log into parts. The writer is a thread of its own in production, or a task, or a loop in a
//! test that calls [`Writer::turn`] by hand.

use super::askers::Askers;
use super::compaction::Round;
use super::evaluate::{self, Evaluated, Pending};
use super::frame::{FrameBuffer, Position, Stamp, size};
use super::index::Write;
use super::layout::Manifest;
use super::log::Log;
use super::queue::{Reply, Request};
use super::record::{Record, milliseconds};
use super::retention::Marks;
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
    pub(super) doomed: Vec<String>,
    /// After the disk failed at a chore, the next try is not before this.
    pub(super) chores_after: Duration,
    marks: Marks,
    held: Held,
    /// How many requests the last turn served.
    last_batch: usize,
    writes_fail: bool,
}

/// Requests that wait for others to share a flush with.
#[derive(Default)]
struct Held {
    requests: Vec<Request>,
    until: Duration,
}

/// When the disk fails at a chore, it is tried again after this.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// How many changes are forgotten between two batches.
const TRIM: usize = 4096;
/// So many keys are touched under one hold of the index: readers wait for that, so it is over in
/// microseconds.
pub(super) const HOLD: usize = 16;
/// So many transactions become visible under one hold. Each hold is a fight with the readers, and
/// writers pay for it.
const TOGETHER: usize = 4;

/// After a batch of so many, the next one waits for company…
const COMPANY: usize = 4;
/// …but no longer than this.
const COMPANY_TIME: Duration = Duration::from_micros(300);

/// While all who might ask are at work, a batch waits for so many…
const CROWD: usize = 64;
/// …looking again every so often whether they still are…
const CROWD_STEP: Duration = Duration::from_micros(400);
/// …and so many times at most.
const CROWD_STEPS: usize = 3;

/// A request that was evaluated: what to answer once the batch is durable, or when it cannot be.
struct Prepared {
    answer: Box<dyn FnOnce(Option<Unavailable>) + Send>,
    /// It wrote, or saw what the batch had written before it.
    needs_disk: bool,
}

/// What becomes visible, in order.
enum Visible {
    Writes(Revision, Vec<Write>),
    Lease(LeaseId, Duration),
    LeaseEnd(LeaseId),
    Compacted(Revision),
}

/// A batch on its way.
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
            doomed: recovered.rubbish,
            chores_after: Duration::ZERO,
            marks: recovered.marks,
            held: Held::default(),
            last_batch: 0,
            writes_fail: false,
        };
        writer.publish_sizes();

        writer
    }

    /// Turns until the store is closed: for a thread.
    pub(crate) fn run(mut self, askers: &Askers) {
        loop {
            let pause = self.turn();

            if self.shared.queue.is_closed() && self.shared.queue.is_empty() {
                return self.last_turn();
            }

            if self.last_batch >= COMPANY {
                // Those just answered are about to ask again: a sync for each of the first to come
                // would only keep the others waiting.
                let company = self.last_batch + self.shared.queue.len();
                self.shared.queue.wait(company * 3 / 4, Some(COMPANY_TIME));
            }

            if pause != Some(Duration::ZERO) {
                self.shared.queue.wait(1, pause);
            }

            self.let_them_come(askers);
        }
    }

    /// On a busy machine, requests come one by one, and a sync for each two or three of them would
    /// be a fifth of all the work there is. Whoever is at work anyway loses nothing when its write
    /// waits for those of the others.
    fn let_them_come(&self, askers: &Askers) {
        for _ in 0..CROWD_STEPS {
            let here = self.shared.queue.len();
            if here == 0
                || here >= CROWD
                || self.shared.queue.is_closed()
                || !askers.are_all_at_work()
            {
                return;
            }
            self.shared.queue.wait(CROWD, Some(CROWD_STEP));
        }
    }

    /// Turns until the store is closed: for a task.
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

    /// Does what can be done now. Answers how long there is nothing more to do unless a request
    /// comes.
    pub(crate) fn turn(&mut self) -> Option<Duration> {
        let now = self.shared.clock.elapsed();
        let mut requests = self.take_requests(now);
        if now >= self.chores_after {
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

        let busy = self.forget() | (now >= self.chores_after && self.settle(now));
        if busy {
            Some(Duration::ZERO)
        } else {
            self.pause(now)
        }
    }

    /// The store is closed: whoever was held back is served now.
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
            true => self.make_room(),
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
            self.chores_after = self.shared.clock.elapsed() + RETRY;
        }

        for prepared in batch.prepared {
            let failure = failure.clone().filter(|_| prepared.needs_disk);
            (prepared.answer)(failure);
        }

        self.publish_sizes();
    }

    /// Logs that writes begin to fail, and that they succeed again: each once.
    fn log_failure(&mut self, failure: Option<&Unavailable>) {
        match failure {
            Some(error) if !self.writes_fail => {
                tracing::error!(%error, "store writes fail; reads go on")
            }
            None if self.writes_fail => tracing::info!("store writes succeed again"),
            _ => {}
        }
        self.writes_fail = failure.is_some();
    }

    fn make_room(&mut self) -> std::io::Result<()> {
        let revision = self.shared.index().revision();
        if let Some(begun) = self.log.make_room(revision)? {
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
                // Whoever asked is gone: then it must not happen.
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

    /// Makes a durable batch visible, a few transactions at a time: a reader waits for those at
    /// most, never for a whole batch.
    fn publish(&mut self, visible: Vec<Visible>) {
        let now = self.shared.clock.elapsed();
        let mut woken = Vec::new();
        let mut items = visible.into_iter().peekable();
        while items.peek().is_some() {
            let mut few: Vec<Visible> = items.by_ref().take(TOGETHER).collect();
            // A lease goes together with the keys that were on it.
            few.extend(items.next_if(|next| matches!(next, Visible::LeaseEnd(_))));
            self.show(few, now, &mut woken);
        }

        woken.iter().for_each(|slot| slot.wake());
        let beyond = self.shared.index_mut().take_beyond_recent();
        drop(beyond);
        let revision = self.shared.index().revision();
        self.marks.note(self.shared.clock.unix(), revision);
    }

    /// Makes a few things visible at once.
    fn show(&mut self, items: Vec<Visible>, now: Duration, woken: &mut Vec<Arc<Slot>>) {
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
                                    .filter(|slot| slot.tell(&one.key, revision))
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

    /// Forgets history that is old enough. Whether there is more to forget at once.
    fn forget(&mut self) -> bool {
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

        let forgettable = self.forgettable(kept.max(compacted));
        if oldest.is_none_or(|oldest| oldest > forgettable) {
            return false;
        }

        (0..TRIM / HOLD).all(|_| self.shared.index_mut().trim(forgettable, HOLD))
    }

    /// The newest revision whose changes nobody needs, when the oldest one kept is `compacted`.
    pub(super) fn forgettable(&self, compacted: Revision) -> Revision {
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
            .map(|ends| ends.max(self.chores_after));

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

        // Forgetting a little later costs nothing; waking up for every second's worth would.
        let window = window.map(|at| {
            at.saturating_sub(unix)
                .max(self.shared.config.retention / 10)
        });

        let chore = Some(self.chores_after.saturating_sub(now))
            .filter(|wait| !wait.is_zero() && self.has_chores());

        [elapsed, window, chore].into_iter().flatten().min()
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

    /// Adds what a transaction wrote, with `more` records in the same frame; answers what it
    /// answered.
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

    /// Adds something that is no change of a key.
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
            drop(reply.send(answer)); // whoever asked may be gone
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

/// What the log says of a write.
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

    // Nothing was before revision 0, and a store that forgot nothing yet may be told to forget
    // that.
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

/// The part of what was recovered that the writer owns.
pub(crate) struct RecoveredLog {
    pub(crate) log: Log,
    pub(crate) manifest: Manifest,
    pub(crate) changed: Vec<Revision>,
    pub(crate) marks: Marks,
    pub(crate) rubbish: Vec<String>,
}
