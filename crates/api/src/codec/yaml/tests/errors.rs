//! Invalid texts, with upstream's errors.

use crate::codec::yaml;

fn check(text: &str, expected: &str) {
    check_bytes(text.as_bytes(), expected);
}

fn check_bytes(text: &[u8], expected: &str) {
    assert_eq!(
        yaml::decode(text).unwrap_err().to_string(),
        expected,
        "{:?}",
        text.escape_ascii().to_string()
    );
}

fn check_duplicates(text: &str, expected: &str) {
    let (_, duplicates) = yaml::decode_strict(text.as_bytes()).unwrap();
    assert_eq!(duplicates.unwrap().to_string(), expected, "{text:?}");
}

#[test]
fn scanner_errors_name_the_line_and_parser_errors_the_one_before() {
    check(
        "a: b: c",
        "yaml: mapping values are not allowed in this context",
    );

    check(
        "a:\n\tb: c",
        "yaml: line 2: found character that cannot start any token",
    );

    check(
        "\ta: b",
        "yaml: found character that cannot start any token",
    );

    check("a: 'b", "yaml: found unexpected end of stream");
    check("a: \"b", "yaml: found unexpected end of stream");
    check("\"\\q\"", "yaml: found unknown escape character");
    check("\"\\x4\"", "yaml: did not find expected hexdecimal number");
    check(
        "\"\\ud800\"",
        "yaml: found invalid Unicode character escape code",
    );

    check("a: [b", "yaml: line 1: did not find expected ',' or ']'");
    check("a: {b", "yaml: line 1: did not find expected ',' or '}'");
    check("a: [b, c}", "yaml: did not find expected ',' or ']'");
    check("[a b: c", "yaml: line 1: did not find expected ',' or ']'");

    check("[a\nb: c", "yaml: line 1: did not find expected ',' or ']'");
    check("a: ]", "yaml: did not find expected node content");
    check("- a\nb", "yaml: line 3: could not find expected ':'");
    check(
        "a: b\n  c: d",
        "yaml: line 2: mapping values are not allowed in this context",
    );

    check(
        "a:\n  b: c\n d: e",
        "yaml: line 2: did not find expected key",
    );

    check("a: b\n- c", "yaml: line 1: did not find expected key");
    check("a: !<x", "yaml: did not find the expected '>'");
    check(
        "a: |x\n  b",
        "yaml: did not find expected comment or line break",
    );

    check(
        "a: |0\n  b",
        "yaml: found an indentation indicator equal to 0",
    );

    check(
        "a: |\n \tb\n",
        "yaml: line 2: found a tab character where an indentation space is expected",
    );

    check("a: @b", "yaml: found character that cannot start any token");
    check("a: `b", "yaml: found character that cannot start any token");
    check("a: %b", "yaml: found character that cannot start any token");
    check(
        "a\nb: c",
        "yaml: line 2: mapping values are not allowed in this context",
    );

    check("a: b\nc", "yaml: line 3: could not find expected ':'");
    check("a: b\nc\nd: e", "yaml: line 3: could not find expected ':'");
    check(
        "\"a\n---\nb\"",
        "yaml: line 2: found unexpected document indicator",
    );

    check(
        "key: [a, b\nother: c",
        "yaml: line 1: did not find expected ',' or ']'",
    );

    check(
        "a: b\n\n\nc: \"d",
        "yaml: line 4: found unexpected end of stream",
    );

    check(
        "a: b\n\n\nc: [d",
        "yaml: line 4: did not find expected ',' or ']'",
    );

    check(
        "- [a, b\n- c",
        "yaml: line 2: did not find expected ',' or ']'",
    );

    check("a: 'x' y", "yaml: did not find expected key");
    check("a: \"x\" y", "yaml: did not find expected key");
    check(
        "a: - b",
        "yaml: block sequence entries are not allowed in this context",
    );

    check("[- a]", "yaml: did not find expected node content");
    check(
        "? a: b\n: c: d\n e",
        "yaml: line 2: did not find expected key",
    );

    check("...", "yaml: did not find expected node content");
    check(
        "a: >1x\n",
        "yaml: did not find expected comment or line break",
    );

    check("[? : a]", "yaml: did not find expected ',' or ']'");
    check("a: b\n%c", "yaml: line 2: found unknown directive name");
}

#[test]
fn anchors_must_exist_and_end() {
    check("a: *b", "yaml: unknown anchor 'b' referenced");
    check(
        "a: *",
        "yaml: did not find expected alphabetic or numeric character",
    );

    check(
        "a: &",
        "yaml: did not find expected alphabetic or numeric character",
    );

    check("a: &a [*a]", "yaml: anchor 'a' value contains itself");
    check("<<: *x", "yaml: unknown anchor 'x' referenced");
    check("a: *b c", "yaml: unknown anchor 'b' referenced");
}

#[test]
fn tags_must_fit() {
    check("a: !!int x", "yaml: cannot decode !!str `x` as a !!int");
    check("a: !!float x", "yaml: cannot decode !!str `x` as a !!float");
    check("a: !!bool 1", "yaml: cannot decode !!int `1` as a !!bool");
    check("a: !!null x", "yaml: cannot decode !!str `x` as a !!null");
    check(
        "a: !!timestamp x",
        "yaml: cannot decode !!str `x` as a !!timestamp",
    );

    check(
        "a: !!int 1.5",
        "yaml: cannot decode !!float `1.5` as a !!int",
    );

    check(
        "a: !!binary \"*\"",
        "yaml: !!binary value contains invalid base64 data",
    );

    check("a: !x!y z", "yaml: found undefined tag handle");
}

#[test]
fn directives_are_checked() {
    check("%FOO\n---\na", "yaml: found unknown directive name");
    check(
        "%YAML 1.2\n---\na",
        "yaml: found incompatible YAML document",
    );

    check(
        "%YAML 1.1\n%YAML 1.1\n---\na",
        "yaml: line 1: found duplicate %YAML directive",
    );

    check("%YAML x", "yaml: did not find expected version number");
    check("%YAML 1.111", "yaml: found extremely long version number");
    check("%TAG x", "yaml: did not find expected '!'");
    check(
        "%TAG !a! x\n%TAG !a! y\n---\n",
        "yaml: line 1: found duplicate %TAG directive",
    );

    check(
        "%YAML 1.1\na: b",
        "yaml: line 1: did not find expected <document start>",
    );
}

#[test]
fn keys_must_be_names() {
    check("? [a]\n: b", "yaml: invalid map key: []interface {}{\"a\"}");
    check(
        "? {a: 1.5}\n: b",
        "yaml: invalid map key: map[interface {}]interface {}{\"a\":1.5}",
    );

    check(
        "{{ .Values.x }}",
        "yaml: invalid map key: map[interface {}]interface {}{\".Values.x\":interface {}(nil)}",
    );

    check(
        "name: {{ x }}\n",
        "yaml: invalid map key: map[interface {}]interface {}{\"x\":interface {}(nil)}",
    );

    check(
        "~: a",
        "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\"",
    );

    check(
        "? \n: a",
        "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"a\"",
    );

    check(
        "18446744073709551615: a",
        "unsupported map key of type: uint64, key: 0xffffffffffffffff, value: \"a\"",
    );
}

#[test]
fn json_cannot_hold_infinities() {
    check("[.inf]", "json: unsupported value: +Inf");
    check("[-.inf]", "json: unsupported value: -Inf");
    check("[.nan]", "json: unsupported value: NaN");
}

#[test]
fn only_mappings_are_merged() {
    check(
        "<<: a",
        "yaml: map merge requires map or sequence of maps as the value",
    );

    check(
        "<<: [a]",
        "yaml: map merge requires map or sequence of maps as the value",
    );

    check(
        "a: &x b\n<<: *x",
        "yaml: map merge requires map or sequence of maps as the value",
    );
}

#[test]
fn keys_that_occur_twice_are_reported_beside_the_value() {
    check_duplicates(
        "a: 1\na: 2",
        "yaml: unmarshal errors:\n  line 2: key \"a\" already set in map",
    );

    check_duplicates(
        "a: 1\nb: {c: 1, c: 2}\na: 2\na: 3",
        "yaml: unmarshal errors:\n  line 2: key \"c\" already set in map\n  line 3: key \"a\" already set in map\n  line 4: key \"a\" already set in map",
    );

    check_duplicates(
        "1: a\n\"1\": b\n1: c",
        "yaml: unmarshal errors:\n  line 3: key 1 already set in map",
    );

    check_duplicates(
        "1.5: a\n1.5: b\n1: c",
        "yaml: unmarshal errors:\n  line 2: key 1.5 already set in map",
    );

    check_duplicates(
        "yes: 1\ntrue: 2",
        "yaml: unmarshal errors:\n  line 2: key true already set in map",
    );

    check_duplicates(
        "a: &x {k: 1}\nb: {<<: *x, k: 2}",
        "yaml: unmarshal errors:\n  line 2: key \"k\" already set in map",
    );

    check_duplicates(
        "[{a: 1, a: 2}, {a: 1}]",
        "yaml: unmarshal errors:\n  line 1: key \"a\" already set in map",
    );

    check_duplicates(
        "\"q\\\"\": 1\n'q\"': 2",
        "yaml: unmarshal errors:\n  line 2: key \"q\\\"\" already set in map",
    );

    assert_eq!(
        yaml::decode_strict(b"a: 1\nb: 1\n1: 1\n'1': 1").unwrap().1,
        None
    );
}

#[test]
fn invalid_bytes_are_reported() {
    check_bytes(b"a: \x01", "yaml: control characters are not allowed");
    check_bytes(b"a: \x7f", "yaml: control characters are not allowed");
    check_bytes(b"a: \xc2\x80", "yaml: control characters are not allowed");
    check_bytes(
        b"a: \xef\xbf\xbf",
        "yaml: control characters are not allowed",
    );

    check_bytes(b"a: \xff", "yaml: invalid leading UTF-8 octet");
    check_bytes(b"a: \xc3", "yaml: incomplete UTF-8 octet sequence");
    check_bytes(b"a: \xc3(", "yaml: invalid trailing UTF-8 octet");
    check_bytes(b"a: \xc0\x80", "yaml: invalid length of a UTF-8 sequence");

    check_bytes(b"a: \xed\xa0\x80", "yaml: invalid Unicode character");
    check_bytes(b"\xff\xfea", "yaml: incomplete UTF-16 character");
    check_bytes(b"\xff\xfe\x00\xdc", "yaml: unexpected low surrogate area");
    check_bytes(
        b"\xff\xfe\x00\xd8a\x00",
        "yaml: expected low surrogate area",
    );
}

#[test]
fn an_error_before_the_piece_with_a_bad_byte_comes_first() {
    let near = [b"a: @".as_slice(), b" ".repeat(100).as_slice(), b"\x01"].concat();
    let far = [b"a: @".as_slice(), b" ".repeat(600).as_slice(), b"\x01"].concat();
    check_bytes(&near, "yaml: control characters are not allowed");
    check_bytes(&far, "yaml: found character that cannot start any token");
}
