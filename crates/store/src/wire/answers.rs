//! Responses: encoded by the etcd server, decoded by the etcd engine.

use super::keys::{count, decode_kv, encode_kv, revision};
use super::requests::selection;
use super::rpc;
use crate::{OpAnswer, RangeAnswer, Revision, TxnAnswer};
use rpc::{request_op::Request, response_op::Response};

/// The revision in a response header.
pub(crate) fn header(header: Option<&rpc::ResponseHeader>) -> Revision {
    revision(header.map_or(0, |header| header.revision))
}

pub(crate) fn decode_range_answer(answer: rpc::RangeResponse) -> RangeAnswer {
    RangeAnswer {
        revision: header(answer.header.as_ref()),
        kvs: answer.kvs.into_iter().map(decode_kv).collect(),
        count: count(answer.count),
        more: answer.more,
    }
}

pub(crate) fn decode_txn_answer(answer: rpc::TxnResponse) -> TxnAnswer {
    let at = header(answer.header.as_ref());
    decode_txn_at(answer, at)
}

/// Every answer of a transaction gets the revision of the transaction; etcd does not set it in all
/// of its parts.
fn decode_txn_at(answer: rpc::TxnResponse, at: Revision) -> TxnAnswer {
    let answers = answer.responses.into_iter().filter_map(|op| op.response);
    TxnAnswer {
        revision: at,
        succeeded: answer.succeeded,
        answers: answers.map(|answer| decode_op_answer(answer, at)).collect(),
    }
}

fn decode_op_answer(answer: Response, at: Revision) -> OpAnswer {
    match answer {
        Response::ResponseRange(range) => OpAnswer::Range(RangeAnswer {
            revision: at,
            ..decode_range_answer(range)
        }),
        Response::ResponsePut(put) => OpAnswer::Put {
            previous: put.prev_kv.map(decode_kv),
        },
        Response::ResponseDeleteRange(delete) => OpAnswer::Delete {
            deleted: count(delete.deleted),
            previous: delete.prev_kvs.into_iter().map(decode_kv).collect(),
        },
        Response::ResponseTxn(txn) => OpAnswer::Txn(decode_txn_at(txn, at)),
    }
}

/// Encodes the answer to `request`, sorted and filtered as requested.
pub(crate) fn encode_range_answer(
    request: &rpc::RangeRequest,
    answer: RangeAnswer,
    header: rpc::ResponseHeader,
) -> rpc::RangeResponse {
    let mut encoded = rpc::RangeResponse {
        header: Some(header),
        kvs: answer.kvs.into_iter().map(encode_kv).collect(),
        more: answer.more,
        count: i64::try_from(answer.count).unwrap_or(i64::MAX),
    };
    selection(request).apply(&mut encoded);
    encoded
}

pub(crate) fn encode_put_answer(answer: OpAnswer, header: rpc::ResponseHeader) -> rpc::PutResponse {
    let previous = if let OpAnswer::Put { previous } = answer {
        previous
    } else {
        None
    };
    rpc::PutResponse {
        header: Some(header),
        prev_kv: previous.map(encode_kv),
    }
}

pub(crate) fn encode_delete_answer(
    answer: OpAnswer,
    header: rpc::ResponseHeader,
) -> rpc::DeleteRangeResponse {
    let (deleted, previous) = match answer {
        OpAnswer::Delete { deleted, previous } => (deleted, previous),
        _ => (0, Vec::new()),
    };
    rpc::DeleteRangeResponse {
        header: Some(header),
        deleted: i64::try_from(deleted).unwrap_or(i64::MAX),
        prev_kvs: previous.into_iter().map(encode_kv).collect(),
    }
}

/// Encodes the answer to `request`, which is needed because it says how ranges are sorted.
pub(crate) fn encode_txn_answer(
    request: &rpc::TxnRequest,
    answer: TxnAnswer,
    header: rpc::ResponseHeader,
) -> rpc::TxnResponse {
    let ran = if answer.succeeded {
        &request.success
    } else {
        &request.failure
    };

    let known = ran.iter().filter_map(|op| op.request.as_ref());
    let responses = known.zip(answer.answers).map(|(request, answer)| {
        let response = encode_op_answer(request, answer, header);
        rpc::ResponseOp {
            response: Some(response),
        }
    });

    rpc::TxnResponse {
        header: Some(header),
        succeeded: answer.succeeded,
        responses: responses.collect(),
    }
}

fn encode_op_answer(request: &Request, answer: OpAnswer, header: rpc::ResponseHeader) -> Response {
    match (request, answer) {
        (Request::RequestRange(request), OpAnswer::Range(answer)) => {
            Response::ResponseRange(encode_range_answer(request, answer, header))
        }
        (Request::RequestTxn(request), OpAnswer::Txn(answer)) => {
            Response::ResponseTxn(encode_txn_answer(request, answer, header))
        }
        (Request::RequestDeleteRange(_), answer) => {
            Response::ResponseDeleteRange(encode_delete_answer(answer, header))
        }
        // The remaining case is a put: the kind of an answer matches its operation.
        (_, answer) => Response::ResponsePut(encode_put_answer(answer, header)),
    }
}
