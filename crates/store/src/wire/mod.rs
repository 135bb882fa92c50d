//! etcd's v3 API on the wire: the gRPC stubs that the etcd engine (client) and the etcd server use,
//! and the conversion of keys, requests, responses and errors.
//!
//! The stubs are compiled from `proto/` by `build.rs`. `encode` converts our types to etcd's,
//! `decode` etcd's to ours; client and server each use one direction for requests and the other for
//! responses.

mod answers;
mod keys;
mod refusal;
mod requests;

pub(crate) use answers::{
    decode_range_answer, decode_txn_answer, encode_delete_answer, encode_put_answer,
    encode_range_answer, encode_txn_answer, header,
};
pub(crate) use keys::{decode_event, decode_range, encode_event, encode_range};
pub(crate) use refusal::Refusal;
pub(crate) use requests::{
    decode_delete, decode_put, decode_range_request, decode_txn, encode_range_request, encode_txn,
};

/// `etcdserverpb`: the services and their messages.
#[expect(
    unreachable_pub,
    unnameable_types,
    unused_qualifications,
    clippy::allow_attributes,
    clippy::enum_variant_names,
    clippy::too_many_lines,
    reason = "generated"
)]
pub(crate) mod rpc {
    tonic::include_proto!("etcdserverpb");
}

/// `mvccpb`: keys and events. The stubs of [`rpc`] look for it here.
#[expect(unreachable_pub, unnameable_types, reason = "generated")]
pub(crate) mod mvccpb {
    tonic::include_proto!("mvccpb");
}
