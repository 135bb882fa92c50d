//! Properties of the codecs for any bytes that a client sends.

use crate::catalog::BUILTIN;
use crate::codec::{canonical, json as json_codec, protobuf as protobuf_codec};

/// Bytes are no JSON, or they round-trip; typed decoding never panics, and what it accepts has a
/// canonical form.
pub fn json(data: &[u8]) {
    if let Ok(value) = &json_codec::parse(data) {
        assert!(
            json_codec::raw(data).is_ok(),
            "what a tree can be made of can be carried"
        );

        let printed = json_codec::to_vec(value);
        let again = json_codec::parse(&printed).expect("what is printed can be read");
        assert_eq!(
            json_codec::to_vec(&again),
            printed,
            "the printed form is stable"
        );
    }

    for (api_version, kind) in [
        ("v1", "Pod"),
        ("v1", "Secret"),
        ("apps/v1", "ControllerRevision"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ] {
        typed_json(data, api_version, kind);
    }
}

fn typed_json(data: &[u8], api_version: &str, kind: &str) {
    let kind = BUILTIN.kind_of(api_version, kind).expect("a built-in kind");
    let node = BUILTIN.root(kind).node();
    let Ok(decoded) = json_codec::decode(data, Some(node)) else {
        return;
    };
    let mut value = decoded.value;
    canonical::canonicalize(&mut value, node);
    let printed = json_codec::to_vec(&value);
    let again = json_codec::decode(&printed, Some(node)).expect("what is printed can be read");
    assert!(again.strict.is_empty(), "{:?}", again.strict);
}

/// Bytes are no enveloped object, or one that round-trips.
pub fn protobuf(data: &[u8]) {
    if let Ok(envelope) = protobuf_codec::open(data)
        && let Some(kind) = BUILTIN.kind_of(&envelope.api_version, &envelope.kind)
    {
        let of = BUILTIN.root(kind);
        let Ok(value) = protobuf_codec::decode_opened(&envelope, of) else {
            return;
        };

        // Out-of-range times, durations and quantities are decoded, but not encoded.
        let Ok(bytes) = protobuf_codec::encode(&value, of) else {
            return;
        };

        let again = protobuf_codec::decode(&bytes, &BUILTIN).expect("what is written can be read");
        assert_eq!(
            protobuf_codec::encode(&again, of).as_deref(),
            Ok(&*bytes),
            "the bytes are stable"
        );

        return;
    }

    // Bare messages too, so that a fuzzer need not invent the envelope.
    for kind in ["Pod", "Node", "Service"] {
        let kind = BUILTIN.kind_of("v1", kind).expect("a built-in kind");
        if let Ok(value) = protobuf_codec::decode_message(data, BUILTIN.root(kind)) {
            json_codec::to_vec(&value);
        }
    }
}
