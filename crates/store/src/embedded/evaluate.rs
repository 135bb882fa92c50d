//! Evaluates transactions: what a request writes and returns, given the visible state and the
//! pending writes of the same batch. Nothing becomes visible here; the writer does that once the
//! batch is durable.

use super::frame::Position;
use super::index::{Index, Live, Write};
use super::leases::Leases;
use super::read;
use crate::{
    Compare, Delete, End, InvalidRequest, KeyRange, KeyValue, LeaseId, Op, OpAnswer, Put, PutLease,
    PutValue, RangeAnswer, RangeRequest, Relation, Revision, StoreError, Target, Txn, TxnAnswer,
};
use bytes::Bytes;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

/// The maximum number of comparisons, and of operations in a branch: etcd's default.
pub(crate) const MAX_OPS: usize = 128;

/// The state that the next request of a batch sees.
pub(crate) struct Pending<'a> {
    index: &'a Index,
    leases: &'a Leases,
    revision: Revision,
    written: BTreeMap<Bytes, Option<Live>>,
    granted: BTreeMap<LeaseId, Duration>,
    ended: BTreeSet<LeaseId>,
}

/// An evaluated transaction. Without writes it did not change the revision.
pub(crate) struct Evaluated {
    pub(crate) answer: TxnAnswer,
    pub(crate) writes: Vec<Write>,
}

/// What one transaction has written so far, and how to undo it.
struct Run {
    /// The revision its writes get.
    revision: Revision,
    writes: Vec<Write>,
    undo: Vec<(Bytes, Option<Option<Live>>)>,
    /// The results of the comparisons of this transaction and of nested ones, in the order of
    /// evaluation.
    decisions: VecDeque<bool>,
}

impl<'a> Pending<'a> {
    pub(crate) fn new(index: &'a Index, leases: &'a Leases) -> Self {
        Pending {
            index,
            leases,
            revision: index.revision(),
            written: BTreeMap::new(),
            granted: BTreeMap::new(),
            ended: BTreeSet::new(),
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Runs a valid transaction; one that fails leaves no changes.
    pub(crate) fn txn(&mut self, txn: &Txn) -> Result<Evaluated, StoreError> {
        // All comparisons are evaluated before any write: a nested transaction does not see the
        // writes of the outer one.
        let mut decisions = VecDeque::new();
        self.decide(txn, &mut decisions);
        let mut run = Run {
            revision: self.revision.next(),
            writes: Vec::new(),
            undo: Vec::new(),
            decisions,
        };

        match self.branch(txn, &mut run) {
            Ok(mut answer) => {
                if !run.writes.is_empty() {
                    self.revision = run.revision;
                }
                stamp(&mut answer, self.revision);
                Ok(Evaluated {
                    answer,
                    writes: run.writes,
                })
            }
            Err(error) => {
                for (key, before) in run.undo.into_iter().rev() {
                    match before {
                        Some(entry) => self.written.insert(key, entry),
                        None => self.written.remove(&key),
                    };
                }
                Err(error)
            }
        }
    }

    /// Grants a lease; fails if the id is in use.
    pub(crate) fn grant(&mut self, id: LeaseId, ttl: Duration) -> Result<(), StoreError> {
        if self.has_lease(id) {
            return Err(StoreError::LeaseExists(id));
        }
        self.ended.remove(&id);
        self.granted.insert(id, ttl);
        Ok(())
    }

    /// Ends a lease and deletes its keys together.
    pub(crate) fn end_lease(&mut self, id: LeaseId) -> Result<Evaluated, StoreError> {
        if !self.has_lease(id) {
            return Err(StoreError::LeaseNotFound(id));
        }

        let mut keys: BTreeSet<Bytes> = self.leases.keys(id).cloned().collect();
        keys.extend(self.written.keys().cloned());
        keys.retain(|key| self.live(key).is_some_and(|live| live.lease == Some(id)));
        let then = keys
            .into_iter()
            .map(|key| Op::Delete(Delete::new(KeyRange::single(key))))
            .collect();

        let evaluated = self.txn(&Txn {
            then,
            ..Txn::default()
        })?;

        self.granted.remove(&id);
        self.ended.insert(id);

        Ok(evaluated)
    }

    pub(crate) fn has_lease(&self, id: LeaseId) -> bool {
        self.granted.contains_key(&id) || self.leases.contains(id) && !self.ended.contains(&id)
    }

    fn decide(&self, txn: &Txn, decisions: &mut VecDeque<bool>) {
        let succeeded = txn.compare.iter().all(|compare| self.holds(compare));
        decisions.push_back(succeeded);
        for op in if succeeded { &txn.then } else { &txn.otherwise } {
            if let Op::Txn(inner) = op {
                self.decide(inner, decisions);
            }
        }
    }

    fn branch(&mut self, txn: &Txn, run: &mut Run) -> Result<TxnAnswer, StoreError> {
        let succeeded = run
            .decisions
            .pop_front()
            .expect("comparisons are evaluated in the order of the branches");
        let ops = if succeeded { &txn.then } else { &txn.otherwise };
        let answers = ops
            .iter()
            .map(|op| self.op(op, run))
            .collect::<Result<_, _>>()?;

        Ok(TxnAnswer {
            revision: self.revision,
            succeeded,
            answers,
        })
    }

    fn op(&mut self, op: &Op, run: &mut Run) -> Result<OpAnswer, StoreError> {
        match op {
            Op::Range(request) => self.range(request).map(OpAnswer::Range),
            Op::Put(put) => self.put(put, run),
            Op::Delete(delete) => Ok(self.delete(delete, run)),
            Op::Txn(txn) => self.branch(txn, run).map(OpAnswer::Txn),
        }
    }

    fn range(&self, request: &RangeRequest) -> Result<RangeAnswer, StoreError> {
        if let Some(revision) = request.at.filter(|at| *at != self.revision) {
            self.index.readable(revision)?;
            return read::range_now(self.index, request, revision);
        }
        let found = self.live_range(&request.range);
        let kvs = found.into_iter().map(|(key, live)| live.kv(key)).collect();
        Ok(read::answer(self.revision, kvs, request))
    }

    fn put(&mut self, put: &Put, run: &mut Run) -> Result<OpAnswer, StoreError> {
        let old = self.live(&put.key).cloned();
        let kept = || old.as_ref().ok_or(InvalidRequest::KeyNotFound);
        let value = match &put.value {
            PutValue::Set(value) => value.clone(),
            PutValue::Keep => kept()?.value.clone(),
        };

        let lease = match put.lease {
            PutLease::None => None,
            PutLease::Attach(id) if self.has_lease(id) => Some(id),
            PutLease::Attach(id) => return Err(StoreError::LeaseNotFound(id)),
            PutLease::Keep => kept()?.lease,
        };

        let (create, version) = match &old {
            Some(old) => (old.create, old.version + 1),
            None => (run.revision, 1),
        };

        let live = Live {
            value,
            create,
            modified: run.revision,
            version,
            lease,
            at: Position::UNKNOWN,
        };
        self.write(put.key.clone(), Some(live), run);

        let previous = old
            .filter(|_| put.previous)
            .map(|old| old.kv(put.key.clone()));

        Ok(OpAnswer::Put { previous })
    }

    fn delete(&mut self, delete: &Delete, run: &mut Run) -> OpAnswer {
        let found = self.live_range(&delete.range);
        let deleted = found.len() as u64;
        let mut previous = Vec::new();
        for (key, live) in found {
            if delete.previous {
                previous.push(live.kv(key.clone()));
            }
            self.write(key, None, run);
        }
        OpAnswer::Delete { deleted, previous }
    }

    fn write(&mut self, key: Bytes, live: Option<Live>, run: &mut Run) {
        let before = self.written.insert(key.clone(), live.clone());
        run.undo.push((key.clone(), before));
        run.writes.push(Write { key, live });
    }

    fn live(&self, key: &Bytes) -> Option<&Live> {
        match self.written.get(key) {
            Some(written) => written.as_ref(),
            None => self.index.live(key),
        }
    }

    /// The live keys of a range, in order, as the batch sees them.
    fn live_range(&self, range: &KeyRange) -> Vec<(Bytes, Live)> {
        if *range.end() == End::Single {
            let key = range.start();
            return self
                .live(key)
                .map(|live| (key.clone(), live.clone()))
                .into_iter()
                .collect();
        }

        let visible = self.index.live_range(range);
        let mut found: BTreeMap<Bytes, Live> = visible
            .map(|(key, live)| (Bytes::copy_from_slice(key), live.clone()))
            .collect();
        for (key, written) in self.written.range::<[u8], _>(range.bounds()) {
            match written {
                Some(live) => found.insert(key.clone(), live.clone()),
                None => found.remove(key),
            };
        }

        found.into_iter().collect()
    }

    fn holds(&self, compare: &Compare) -> bool {
        if *compare.range.end() == End::Single {
            return holds(compare, self.live(compare.range.start()));
        }
        let found = self.live_range(&compare.range);
        if found.is_empty() {
            return holds(compare, None);
        }
        found.iter().all(|(_, live)| holds(compare, Some(live)))
    }
}

fn holds(compare: &Compare, live: Option<&Live>) -> bool {
    let revision = |property: fn(&Live) -> Revision| live.map_or(Revision::ZERO, property);
    let order = match &compare.with {
        Target::Version(version) => live.map_or(0, |live| live.version).cmp(version),
        Target::CreateRevision(wanted) => revision(|live| live.create).cmp(wanted),
        Target::ModRevision(wanted) => revision(|live| live.modified).cmp(wanted),
        Target::Lease(lease) => live.and_then(|live| live.lease).cmp(lease),
        Target::Value(value) => match live {
            Some(live) => live.value.cmp(value),
            None => return false,
        },
    };

    match compare.relation {
        Relation::Equal => order == Ordering::Equal,
        Relation::NotEqual => order != Ordering::Equal,
        Relation::Greater => order == Ordering::Greater,
        Relation::Less => order == Ordering::Less,
    }
}

/// Every answer of a transaction carries the transaction's final revision.
fn stamp(answer: &mut TxnAnswer, revision: Revision) {
    answer.revision = revision;
    for answer in &mut answer.answers {
        match answer {
            OpAnswer::Range(range) => range.revision = revision,
            OpAnswer::Txn(txn) => stamp(txn, revision),
            OpAnswer::Put { .. } | OpAnswer::Delete { .. } => {}
        }
    }
}

/// Rejects requests that are invalid in any state of the store.
pub(crate) fn validate(txn: &Txn) -> Result<(), InvalidRequest> {
    branches(txn).map(|_| ())
}

/// The keys that a transaction may put, and the ranges it may delete.
#[derive(Default)]
struct Touched {
    puts: BTreeSet<Bytes>,
    deletes: Vec<KeyRange>,
}

fn branches(txn: &Txn) -> Result<[Touched; 2], InvalidRequest> {
    let count = txn
        .compare
        .len()
        .max(txn.then.len())
        .max(txn.otherwise.len());

    if count > MAX_OPS {
        return Err(InvalidRequest::TooManyOps {
            count,
            limit: MAX_OPS,
        });
    }

    txn.compare
        .iter()
        .try_for_each(|compare| named(compare.range.start(), compare.range.end()))?;

    Ok([touched(&txn.then)?, touched(&txn.otherwise)?])
}

fn touched(ops: &[Op]) -> Result<Touched, InvalidRequest> {
    let mut all = Touched::default();
    for op in ops {
        match op {
            Op::Range(request) => named(request.range.start(), request.range.end())?,
            Op::Put(put) => {
                named(&put.key, &End::Single)?;
                let one = Touched {
                    puts: BTreeSet::from([put.key.clone()]),
                    deletes: Vec::new(),
                };
                all.add([one])?;
            }
            Op::Delete(delete) => {
                named(delete.range.start(), delete.range.end())?;
                all.add([Touched {
                    puts: BTreeSet::new(),
                    deletes: vec![delete.range.clone()],
                }])?;
            }
            Op::Txn(txn) => all.add(branches(txn)?)?,
        }
    }

    Ok(all)
}

impl Touched {
    /// Adds the keys of one operation. Its branches exclude each other, so only earlier operations
    /// can conflict.
    fn add<const N: usize>(&mut self, branches: [Touched; N]) -> Result<(), InvalidRequest> {
        let clash = |new: &Touched| {
            let put = |key: &Bytes| {
                self.puts.contains(key) || self.deletes.iter().any(|range| range.contains(key))
            };
            let delete = |range: &KeyRange| self.puts.iter().any(|key| range.contains(key));
            new.puts.iter().any(put) || new.deletes.iter().any(delete)
        };

        if branches.iter().any(clash) {
            return Err(InvalidRequest::DuplicateKey);
        }

        for branch in branches {
            self.puts.extend(branch.puts);
            self.deletes.extend(branch.deletes);
        }

        Ok(())
    }
}

/// The empty key is not a key; it is valid as the start of a longer range.
fn named(start: &Bytes, end: &End) -> Result<(), InvalidRequest> {
    if start.is_empty() && *end == End::Single {
        Err(InvalidRequest::EmptyKey)
    } else {
        Ok(())
    }
}

/// The maximum number of bytes that a transaction writes to disk.
pub(crate) fn request_bytes(txn: &Txn) -> usize {
    let branch = |ops: &[Op]| ops.iter().map(op_bytes).sum::<usize>();
    branch(&txn.then) + branch(&txn.otherwise)
}

fn op_bytes(op: &Op) -> usize {
    match op {
        Op::Put(put) => {
            let value = if let PutValue::Set(value) = &put.value {
                value.len()
            } else {
                0
            };
            put.key.len() + value
        }
        Op::Txn(txn) => request_bytes(txn),
        Op::Delete(_) | Op::Range(_) => 0,
    }
}

/// Whether a transaction may write at all.
pub(crate) fn may_write(txn: &Txn) -> bool {
    txn.then.iter().chain(&txn.otherwise).any(|op| match op {
        Op::Range(_) => false,
        Op::Put(_) | Op::Delete(_) => true,
        Op::Txn(txn) => may_write(txn),
    })
}

/// Whether a transaction writes, and only below `prefix`.
pub(crate) fn writes_only_below(txn: &Txn, prefix: &[u8]) -> bool {
    let below = |op: &Op| match op {
        Op::Range(_) => true,
        Op::Put(put) => put.key.starts_with(prefix),
        Op::Delete(delete) => {
            *delete.range.end() == End::Single && delete.range.start().starts_with(prefix)
        }
        Op::Txn(txn) => writes_only_below(txn, prefix),
    };
    may_write(txn) && txn.then.iter().chain(&txn.otherwise).all(below)
}

/// A key-value pair as a record for a file.
pub(crate) fn put_record(kv: &KeyValue) -> super::record::Record<'_> {
    super::record::Record::Put {
        key: &kv.key,
        value: &kv.value,
        create: kv.create_revision,
        version: kv.version,
        lease: kv.lease,
    }
}
