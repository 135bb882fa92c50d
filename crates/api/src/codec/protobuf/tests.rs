//! Messages that no encoder here produces, but clients may send.

use super::*;
use crate::catalog::{BUILTIN, PageBuilder};

fn decoded(kind: &str, message: &[u8]) -> String {
    let of = BUILTIN.root(BUILTIN.kind_of("v1", kind).unwrap());
    decode_message(message, of)
        .map_or_else(|error| error.to_string(), |value| json::to_string(&value))
}

/// A field with bytes in it.
fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    [
        &[number << 3 | 2, u8::try_from(content.len()).unwrap()],
        content,
    ]
    .concat()
}

fn entry(key: &str, value: &str) -> Vec<u8> {
    [bytes(1, key.as_bytes()), bytes(2, value.as_bytes())].concat()
}

#[test]
fn parts_of_lists_and_maps_may_come_between_other_fields() {
    let data = |key, value| bytes(2, &entry(key, value));
    let metadata = |content: &[u8]| bytes(1, content);

    let finalizer = |text: &str| bytes(14, text.as_bytes());
    let message = [
        data("b", "1"),
        metadata(
            &[
                finalizer("x"),
                bytes(1, b"name"),
                finalizer("y"),
                finalizer("z"),
            ]
            .concat(),
        ),
        data("a", "2"),
        data("b", "3"),
    ]
    .concat();

    assert_eq!(
        decoded("ConfigMap", &message),
        r#"{"data":{"a":"2","b":"3"},"metadata":{"finalizers":["x","y","z"],"name":"name"}}"#
    );
}

#[test]
fn of_a_field_that_comes_twice_the_last_counts() {
    let named = |name: &[u8]| bytes(1, &bytes(1, name));
    assert_eq!(
        decoded("ConfigMap", &[named(b"a"), named(b"b")].concat()),
        r#"{"metadata":{"name":"b"}}"#
    );

    let twice =
        |first: &[u8], second: &[u8]| bytes(1, &[bytes(1, first), bytes(1, second)].concat());
    assert_eq!(
        decoded("ConfigMap", &twice(b"a", b"b")),
        r#"{"metadata":{"name":"b"}}"#
    );

    assert_eq!(
        decoded("ConfigMap", &twice(b"a", b"")),
        r#"{"metadata":{}}"#
    );

    assert_eq!(
        decoded("ConfigMap", &twice(b"", b"b")),
        r#"{"metadata":{"name":"b"}}"#
    );
}

#[test]
fn a_truncated_list_is_refused_at_its_end() {
    let metadata = [&bytes(14, b"x")[..], &[14 << 3 | 2, 9, b'y']].concat();
    assert_eq!(
        decoded("ConfigMap", &bytes(1, &metadata)),
        "metadata: unexpected EOF"
    );
}

#[test]
fn a_type_made_at_run_time_has_no_message() {
    let mut page = PageBuilder::new();
    let root = page.custom_root(BUILTIN.type_named("meta.v1.ObjectMeta").unwrap());
    page.add_kind("example.com", "v1", "Widget", root);
    let page = page.finish();
    let of = page.root(page.kind("example.com", "v1", "Widget").unwrap());
    let refusal = decode_message(b"", of).unwrap_err();
    assert!(
        matches!(refusal, ProtobufError::NoMessage { .. }),
        "{refusal}"
    );
}

#[test]
fn no_type_has_more_fields_than_a_word_has_bits() {
    for of in BUILTIN.structs() {
        assert!(
            of.fields().len() <= decode::MAX_FIELDS,
            "{}",
            of.declared.name
        );
    }
}

#[test]
fn an_event_around_encoded_bytes_equals_the_encoded_event() {
    let event = json::parse(br#"{"type":"ADDED","object":{"kind":"Widget"}}"#).unwrap();
    let of = BUILTIN.type_named("meta.v1.WatchEvent").unwrap();
    let event = json::decode(&json::to_vec(&event), Some(of.node()))
        .unwrap()
        .value;
    let encoded = encode(&event, of).unwrap();
    assert_eq!(
        encode_event("ADDED", br#"{"kind":"Widget"}"#),
        open(&encoded).unwrap().raw
    );
}
