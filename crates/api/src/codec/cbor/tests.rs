//! CBOR there and back, and what is refused.

use super::*;
use crate::catalog::BUILTIN;
use crate::codec::json;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn numbers_have_their_shortest_form() {
    let check = |text: &str, expected: &str| {
        let value = json::parse(text.as_bytes()).unwrap();
        assert_eq!(encode(&value, None)[3..], hex(expected), "{text}");
        assert_eq!(
            to_json(&hex(expected)).unwrap(),
            text.as_bytes(),
            "{expected}"
        );
    };

    check("0", "00");
    check("23", "17");
    check("24", "1818");
    check("1000", "1903e8");
    check("1000000", "1a000f4240");
    check("1000000000000", "1b000000e8d4a51000");
    check("-1", "20");
    check("-1000", "3903e7");
    check("1.5", "f93e00");
    check("100000.5", "fa47c35040");
    check("1.1", "fb3ff199999999999a");
    check("0.00006103515625", "f90400");
    check("false", "f4");
    check("null", "f6");
    check("[1,[2,3]]", "8201820203");
    check(r#"{"a":1,"bb":[true]}"#, "a2416101426262 81f5");
}

#[test]
fn what_other_programs_write_is_read() {
    let check = |bytes: &str, expected: &str| {
        let text = String::from_utf8(to_json(&hex(bytes)).unwrap()).unwrap();
        assert_eq!(text, expected, "{bytes}");
    };

    // Texts, pieces, lists and maps of indefinite length, tags.
    check("63616263", "\"abc\"");
    check("5f41614162ff", "\"ab\"");
    check("9f0102ff", "[1,2]");
    check("bf616101ff", r#"{"a":1}"#);
    check("d9d9f7a0", "{}");
    check("d6426869", "\"aGk=\"");
    check("d7426869", "\"6869\"");
    check(
        "c074323031332d30332d32315432303a30343a30305a",
        "\"2013-03-21T20:04:00Z\"",
    );
    check("c11a514b67b0", "\"2013-03-21T20:04:00Z\"");
    check("f93c00", "1.0");
}

#[test]
fn what_json_does_not_have_is_refused() {
    let check = |bytes: &str, expected: &str| {
        assert_eq!(
            to_json(&hex(bytes)).unwrap_err().to_string(),
            expected,
            "{bytes}"
        );
    };

    check("", "EOF");
    check("82", "unexpected EOF");
    check("ff", "cbor: unexpected \"break\" code");
    check("5bffffffffffffffff", "unexpected EOF");
    check(
        "0000",
        "cbor: 1 bytes of extraneous data starting at index 1",
    );
    check(
        "a2416101416102",
        "cbor: found duplicate map key \"a\" at map element index 1",
    );
    check("a10101", "cbor: a map key is not a string");
    check("61ff", "cbor: invalid UTF-8 string");
    check("c249010000000000000000", "cbor: bignum is not allowed");
    check(
        "f97e00",
        "cbor: a number that is infinite or none is not allowed",
    );
    check("1bffffffffffffffff", "cbor: a number overflows Go's int64");
    check(
        "f7",
        "cbor: a simple value other than false, true and null is not allowed",
    );
    let deep = "81".repeat(501) + "00";
    check(&deep, "cbor: exceeded max nested level 500");
}

#[test]
fn bytes_of_a_type_are_not_encoded_again() {
    let kind = BUILTIN.kind("", "v1", "Secret").unwrap();
    let of = BUILTIN.root(kind);
    let text = r#"{"apiVersion":"v1","data":{"a":"aGk="},"kind":"Secret"}"#;
    let value = json::decode(text.as_bytes(), Some(of.node()))
        .unwrap()
        .value;

    let encoded = encode(&value, Some(of.node()));
    let expected = "d9d9f7a3 4464617461 a1 4161 d6426869 446b696e64 46536563726574 4a61706956657273696f6e 427631";
    assert_eq!(encoded, hex(expected));
    let read = json::parse(&to_json(&encoded).unwrap()).unwrap();
    assert_eq!(json::to_string(&read), text);
}
