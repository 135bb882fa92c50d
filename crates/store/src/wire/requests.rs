//! Requests: encoded by the etcd engine, decoded by the etcd server.
//!
//! etcd's ranges can also be sorted and filtered. The `Store` trait does not support that, so the
//! server reads the whole range and applies a [`Selection`] to the answer.

use super::keys::{decode_range, encode_range};
use super::{Refusal, mvccpb, rpc};
use crate::{
    Compare, Content, Delete, LeaseId, Op, Put, PutLease, PutValue, RangeRequest, Relation,
    Revision, Target, Txn,
};
use rpc::compare::{CompareResult, CompareTarget, TargetUnion};
use rpc::range_request::{SortOrder, SortTarget};
use rpc::request_op::Request;
use std::cmp::Ordering;

pub(crate) fn encode_range_request(request: &RangeRequest) -> rpc::RangeRequest {
    let (key, range_end) = encode_range(&request.range);
    rpc::RangeRequest {
        key,
        range_end,
        limit: request
            .limit
            .map_or(0, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
        revision: request.at.map_or(0, Revision::to_wire),
        keys_only: request.content == Content::KeysOnly,
        // A limit of zero means no limit on the wire; a request for no keys becomes a count.
        count_only: request.content == Content::CountOnly || request.limit == Some(0),
        ..rpc::RangeRequest::default()
    }
}

pub(crate) fn decode_range_request(request: &rpc::RangeRequest) -> Result<RangeRequest, Refusal> {
    if request.key.is_empty() {
        return Err(Refusal::EmptyKey);
    }

    let content = match (request.count_only, request.keys_only) {
        (true, _) => Content::CountOnly,
        // Sorting by value needs the values; they are removed afterwards.
        (false, true) if !selection(request).sorts_by_value() => Content::KeysOnly,
        (false, _) => Content::Full,
    };

    let limit = usize::try_from(request.limit)
        .ok()
        .filter(|limit| *limit > 0);

    Ok(RangeRequest {
        range: decode_range(request.key.clone(), request.range_end.clone()),
        at: Revision::from_wire(request.revision).filter(|at| *at > Revision::ZERO),
        limit: limit.filter(|_| selection(request).is_everything()),
        content,
    })
}

/// Which keys of a range a response contains, and in which order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection {
    order: SortOrder,
    by: SortTarget,
    modified: (i64, i64),
    created: (i64, i64),
    limit: usize,
    keys_only: bool,
}

pub(crate) fn selection(request: &rpc::RangeRequest) -> Selection {
    // Unlike keys, other properties are sorted even if no order is given.
    let order = match (request.sort_order(), request.sort_target()) {
        (SortOrder::Ascend, SortTarget::Key) => SortOrder::None,
        (SortOrder::None, target) if target != SortTarget::Key => SortOrder::Ascend,
        (order, _) => order,
    };

    Selection {
        order,
        by: request.sort_target(),
        modified: (request.min_mod_revision, request.max_mod_revision),
        created: (request.min_create_revision, request.max_create_revision),
        limit: usize::try_from(request.limit).unwrap_or_default(),
        keys_only: request.keys_only,
    }
}

impl Selection {
    /// Nothing is sorted or filtered: the engine's answer is used as it is.
    pub(crate) fn is_everything(&self) -> bool {
        self.order == SortOrder::None && self.modified == (0, 0) && self.created == (0, 0)
    }

    fn sorts_by_value(&self) -> bool {
        self.order != SortOrder::None && self.by == SortTarget::Value
    }

    pub(crate) fn apply(&self, answer: &mut rpc::RangeResponse) {
        if self.is_everything() {
            return;
        }

        let within = |revision: i64, (least, most): (i64, i64)| {
            (least == 0 || revision >= least) && (most == 0 || revision <= most)
        };
        let chosen = |kv: &mvccpb::KeyValue| {
            within(kv.mod_revision, self.modified) && within(kv.create_revision, self.created)
        };
        answer.kvs.retain(chosen);

        match self.order {
            SortOrder::None => {}
            SortOrder::Ascend => answer.kvs.sort_by(|a, b| self.compare(a, b)),
            SortOrder::Descend => answer.kvs.sort_by(|a, b| self.compare(b, a)),
        }

        if self.limit > 0 && answer.kvs.len() > self.limit {
            answer.kvs.truncate(self.limit);
            answer.more = true;
        }

        if self.keys_only {
            answer.kvs.iter_mut().for_each(|kv| kv.value.clear());
        }
    }

    fn compare(&self, a: &mvccpb::KeyValue, b: &mvccpb::KeyValue) -> Ordering {
        match self.by {
            SortTarget::Key => a.key.cmp(&b.key),
            SortTarget::Version => a.version.cmp(&b.version),
            SortTarget::Create => a.create_revision.cmp(&b.create_revision),
            SortTarget::Mod => a.mod_revision.cmp(&b.mod_revision),
            SortTarget::Value => a.value.cmp(&b.value),
        }
    }
}

pub(crate) fn encode_txn(txn: &Txn) -> rpc::TxnRequest {
    let ops = |ops: &[Op]| {
        ops.iter()
            .map(|op| rpc::RequestOp {
                request: Some(encode_op(op)),
            })
            .collect()
    };

    rpc::TxnRequest {
        compare: txn.compare.iter().map(encode_compare).collect(),
        success: ops(&txn.then),
        failure: ops(&txn.otherwise),
    }
}

fn encode_op(op: &Op) -> Request {
    match op {
        Op::Range(request) => Request::RequestRange(encode_range_request(request)),
        Op::Put(put) => Request::RequestPut(encode_put(put)),
        Op::Delete(delete) => {
            let (key, range_end) = encode_range(&delete.range);
            let prev_kv = delete.previous;
            Request::RequestDeleteRange(rpc::DeleteRangeRequest {
                key,
                range_end,
                prev_kv,
            })
        }
        Op::Txn(txn) => Request::RequestTxn(encode_txn(txn)),
    }
}

fn encode_put(put: &Put) -> rpc::PutRequest {
    let (value, ignore_value) = match &put.value {
        PutValue::Set(value) => (value.clone(), false),
        PutValue::Keep => (bytes::Bytes::new(), true),
    };

    let (lease, ignore_lease) = match put.lease {
        PutLease::None => (0, false),
        PutLease::Attach(id) => (id.to_wire(), false),
        PutLease::Keep => (0, true),
    };

    rpc::PutRequest {
        key: put.key.clone(),
        value,
        lease,
        prev_kv: put.previous,
        ignore_value,
        ignore_lease,
    }
}

fn encode_compare(compare: &Compare) -> rpc::Compare {
    let (key, range_end) = encode_range(&compare.range);
    let result = match compare.relation {
        Relation::Equal => CompareResult::Equal,
        Relation::NotEqual => CompareResult::NotEqual,
        Relation::Greater => CompareResult::Greater,
        Relation::Less => CompareResult::Less,
    };

    let (target, with) = match &compare.with {
        Target::Version(version) => (
            CompareTarget::Version,
            TargetUnion::Version(i64::try_from(*version).unwrap_or(i64::MAX)),
        ),
        Target::CreateRevision(at) => (
            CompareTarget::Create,
            TargetUnion::CreateRevision(at.to_wire()),
        ),
        Target::ModRevision(at) => (CompareTarget::Mod, TargetUnion::ModRevision(at.to_wire())),
        Target::Value(value) => (CompareTarget::Value, TargetUnion::Value(value.clone())),
        Target::Lease(id) => (
            CompareTarget::Lease,
            TargetUnion::Lease(id.map_or(0, LeaseId::to_wire)),
        ),
    };

    rpc::Compare {
        result: result.into(),
        target: target.into(),
        key,
        range_end,
        target_union: Some(with),
    }
}

pub(crate) fn decode_txn(txn: &rpc::TxnRequest) -> Result<Txn, Refusal> {
    Ok(Txn {
        compare: txn
            .compare
            .iter()
            .map(decode_compare)
            .collect::<Result<_, _>>()?,
        then: decode_ops(&txn.success)?,
        otherwise: decode_ops(&txn.failure)?,
    })
}

/// An operation of unknown kind does nothing and has no answer, as in etcd.
fn decode_ops(ops: &[rpc::RequestOp]) -> Result<Vec<Op>, Refusal> {
    ops.iter()
        .filter_map(|op| op.request.as_ref())
        .map(decode_op)
        .collect()
}

fn decode_op(op: &Request) -> Result<Op, Refusal> {
    Ok(match op {
        Request::RequestRange(request) => Op::Range(decode_range_request(request)?),
        Request::RequestPut(put) => Op::Put(decode_put(put)?),
        Request::RequestDeleteRange(delete) => Op::Delete(decode_delete(delete)?),
        Request::RequestTxn(txn) => Op::Txn(decode_txn(txn)?),
    })
}

pub(crate) fn decode_put(put: &rpc::PutRequest) -> Result<Put, Refusal> {
    if put.key.is_empty() {
        return Err(Refusal::EmptyKey);
    }
    if put.ignore_value && !put.value.is_empty() {
        return Err(Refusal::ValueProvided);
    }
    if put.ignore_lease && put.lease != 0 {
        return Err(Refusal::LeaseProvided);
    }

    let lease = if put.ignore_lease {
        PutLease::Keep
    } else {
        LeaseId::from_wire(put.lease).map_or(PutLease::None, PutLease::Attach)
    };

    let value = if put.ignore_value {
        PutValue::Keep
    } else {
        PutValue::Set(put.value.clone())
    };

    Ok(Put {
        key: put.key.clone(),
        value,
        lease,
        previous: put.prev_kv,
    })
}

pub(crate) fn decode_delete(delete: &rpc::DeleteRangeRequest) -> Result<Delete, Refusal> {
    if delete.key.is_empty() {
        return Err(Refusal::EmptyKey);
    }
    let range = decode_range(delete.key.clone(), delete.range_end.clone());
    Ok(Delete {
        range,
        previous: delete.prev_kv,
    })
}

fn decode_compare(compare: &rpc::Compare) -> Result<Compare, Refusal> {
    if compare.key.is_empty() {
        return Err(Refusal::EmptyKey);
    }

    let relation = match compare.result() {
        CompareResult::Equal => Relation::Equal,
        CompareResult::NotEqual => Relation::NotEqual,
        CompareResult::Greater => Relation::Greater,
        CompareResult::Less => Relation::Less,
    };

    let revision = |number: i64| Revision::from_wire(number).unwrap_or_default();

    // The operand may be missing, which means zero.
    let with = match (compare.target(), &compare.target_union) {
        (CompareTarget::Version, Some(TargetUnion::Version(version))) => {
            Target::Version(u64::try_from(*version).unwrap_or_default())
        }
        (CompareTarget::Version, _) => Target::Version(0),
        (CompareTarget::Create, Some(TargetUnion::CreateRevision(at))) => {
            Target::CreateRevision(revision(*at))
        }
        (CompareTarget::Create, _) => Target::CreateRevision(Revision::ZERO),
        (CompareTarget::Mod, Some(TargetUnion::ModRevision(at))) => {
            Target::ModRevision(revision(*at))
        }
        (CompareTarget::Mod, _) => Target::ModRevision(Revision::ZERO),
        (CompareTarget::Value, Some(TargetUnion::Value(value))) => Target::Value(value.clone()),
        (CompareTarget::Value, _) => Target::Value(bytes::Bytes::new()),
        (CompareTarget::Lease, Some(TargetUnion::Lease(id))) => {
            Target::Lease(LeaseId::from_wire(*id))
        }
        (CompareTarget::Lease, _) => Target::Lease(None),
    };

    let range = decode_range(compare.key.clone(), compare.range_end.clone());
    Ok(Compare {
        range,
        relation,
        with,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyRange;

    #[test]
    fn a_transaction_survives_the_wire() {
        let key = || bytes::Bytes::from_static(b"k");
        let compare = |relation, with| Compare {
            range: KeyRange::prefix("p"),
            relation,
            with,
        };

        let lease = LeaseId::from_wire(7);
        let inner = Txn {
            then: vec![Op::Put(Put::new("i", "v").lease(lease))],
            ..Txn::default()
        };

        let keeps = Put {
            key: key(),
            value: PutValue::Keep,
            lease: PutLease::Keep,
            previous: true,
        };

        let txn = Txn {
            compare: vec![
                Compare::unchanged_since(key(), Revision::new(3)),
                compare(Relation::Less, Target::Version(2)),
                compare(Relation::Greater, Target::CreateRevision(Revision::ZERO)),
                compare(Relation::NotEqual, Target::Value("".into())),
                compare(Relation::Equal, Target::Lease(lease)),
            ],
            then: vec![Op::Put(keeps), Op::Txn(inner)],
            otherwise: vec![
                Op::Range(
                    RangeRequest::new(KeyRange::from("k"))
                        .limit(3)
                        .at(Revision::new(9))
                        .keys_only(),
                ),
                Op::Delete(Delete::new(KeyRange::prefix("k")).with_previous()),
            ],
        };
        assert_eq!(decode_txn(&encode_txn(&txn)), Ok(txn));
    }

    #[test]
    fn a_selection_filters_sorts_and_cuts() {
        let kv = |key: &'static str, modified, version| mvccpb::KeyValue {
            key: key.into(),
            value: "v".into(),
            mod_revision: modified,
            create_revision: 2,
            version,
            ..mvccpb::KeyValue::default()
        };

        let all = || rpc::RangeResponse {
            kvs: vec![kv("a", 5, 1), kv("b", 3, 3), kv("c", 4, 2)],
            ..rpc::RangeResponse::default()
        };

        let check = |request: rpc::RangeRequest, expected: &str, more: bool| {
            let mut answer = all();
            selection(&request).apply(&mut answer);
            let keys: Vec<_> = answer
                .kvs
                .iter()
                .map(|kv| String::from_utf8_lossy(&kv.key).into_owned())
                .collect();

            assert_eq!(
                (keys.concat().as_str(), answer.more),
                (expected, more),
                "{request:?}"
            );
        };

        let request = |order: SortOrder, by: SortTarget| rpc::RangeRequest {
            sort_order: order.into(),
            sort_target: by.into(),
            ..rpc::RangeRequest::default()
        };

        check(request(SortOrder::None, SortTarget::Key), "abc", false);
        check(request(SortOrder::Descend, SortTarget::Key), "cba", false);
        check(request(SortOrder::None, SortTarget::Mod), "bca", false);
        check(
            request(SortOrder::Descend, SortTarget::Version),
            "bca",
            false,
        );

        check(
            rpc::RangeRequest {
                limit: 1,
                ..request(SortOrder::Descend, SortTarget::Mod)
            },
            "a",
            true,
        );

        check(
            rpc::RangeRequest {
                min_mod_revision: 4,
                ..rpc::RangeRequest::default()
            },
            "ac",
            false,
        );

        check(
            rpc::RangeRequest {
                max_mod_revision: 4,
                ..rpc::RangeRequest::default()
            },
            "bc",
            false,
        );
    }
}
