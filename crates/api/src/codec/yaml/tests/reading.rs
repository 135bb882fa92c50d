//! Decoding of valid texts.

use crate::codec::{json, yaml};

fn check(text: &str, expected: &str) {
    let expected = json::parse(expected.as_bytes()).unwrap();
    assert_eq!(yaml::decode(text.as_bytes()), Ok(expected), "{text:?}");
}

#[test]
fn block_and_flow_collections_are_read() {
    check("a: 1", "{\"a\":1}");
    check("a: b", "{\"a\":\"b\"}");
    check(" - 1", "[1]");
    check("- a\n- b", "[\"a\",\"b\"]");

    check("a:\n- b\n- c", "{\"a\":[\"b\",\"c\"]}");
    check("a:\n  - b\n  - c", "{\"a\":[\"b\",\"c\"]}");
    check(
        "a: {b: c, d: [e, f]}",
        "{\"a\":{\"b\":\"c\",\"d\":[\"e\",\"f\"]}}",
    );

    check("{\"a\":1,\"b\":[true,null]}", "{\"a\":1,\"b\":[true,null]}");
    check("a: \"b: c\"", "{\"a\":\"b: c\"}");
    check("a: 'it''s'", "{\"a\":\"it's\"}");
    check("? a\n: b", "{\"a\":\"b\"}");
    check("? a", "{\"a\":null}");
    check("a:", "{\"a\":null}");
    check("a:\nb:", "{\"a\":null,\"b\":null}");
    check("-\n- \n-", "[null,null,null]");
    check("[a, b: c, {d: e}]", "[\"a\",{\"b\":\"c\"},{\"d\":\"e\"}]");

    check("[a, ]", "[\"a\"]");
    check("{a, b: , c: d}", "{\"a\":null,\"b\":null,\"c\":\"d\"}");
    check("{a:1}", "{\"a:1\":null}");
    check("{a: b:c}", "{\"a\":\"b:c\"}");
    check("{\"a\":1}", "{\"a\":1}");

    check("{'a': 1, \"b\" : 2}", "{\"a\":1,\"b\":2}");
    check("[a:b, c]", "[\"a:b\",\"c\"]");
    check("- - a\n  - b\n- c", "[[\"a\",\"b\"],\"c\"]");
    check(
        "- a: b\n  c: d\n- e: f",
        "[{\"a\":\"b\",\"c\":\"d\"},{\"e\":\"f\"}]",
    );

    check("a: [\n  b,\n  c\n]", "{\"a\":[\"b\",\"c\"]}");
    check("a: {\n b: c,\n}", "{\"a\":{\"b\":\"c\"}}");
    check("'a': b\n\"c\": d", "{\"a\":\"b\",\"c\":\"d\"}");
    check("a b c: d e f", "{\"a b c\":\"d e f\"}");
    check("a: -b", "{\"a\":\"-b\"}");
    check("a: b:c:d", "{\"a\":\"b:c:d\"}");
    check("a: http://x/y?z=1", "{\"a\":\"http://x/y?z=1\"}");
    check("a: [x/y:1, z]", "{\"a\":[\"x/y:1\",\"z\"]}");

    check("a: {}\nb: []", "{\"a\":{},\"b\":[]}");
    check("a: ''\nb: \"\"", "{\"a\":\"\",\"b\":\"\"}");
    check("{a: b}\n", "{\"a\":\"b\"}");
    check("a: b\n c", "{\"a\":\"b c\"}");
    check("[[a]]", "[[\"a\"]]");
    check("? |\n  k\n: v", "{\"k\\n\":\"v\"}");
    check("-1", "-1");
    check("\"a\": 1", "{\"a\":1}");
}

#[test]
fn comments_blank_lines_and_line_ends_do_not_matter() {
    check("a: b # comment", "{\"a\":\"b\"}");
    check("# only a comment", "null");
    check("a: b#c", "{\"a\":\"b#c\"}");
    check("a: b\n# c\n\n", "{\"a\":\"b\"}");
    check("\na: b", "{\"a\":\"b\"}");
    check("a: b\r\nc: d\r\n", "{\"a\":\"b\",\"c\":\"d\"}");
    check("a:\tb", "{\"a\":\"b\"}");
    check("a: b\t# c", "{\"a\":\"b\"}");
}

#[test]
fn scalars_over_several_lines_are_folded() {
    check("a: |\n  x\n  y\n", "{\"a\":\"x\\ny\\n\"}");
    check("a: |-\n  x\n  y\n", "{\"a\":\"x\\ny\"}");
    check("a: |+\n  x\n\n", "{\"a\":\"x\\n\\n\"}");
    check("a: |2\n   x\n  y\n", "{\"a\":\" x\\ny\\n\"}");
    check("a: >\n  x\n  y\n\n  z\n", "{\"a\":\"x y\\nz\\n\"}");
    check("a: >-\n  x\n   y\n  z\n", "{\"a\":\"x\\n y\\nz\"}");
    check("a: >+\n  x\n\n", "{\"a\":\"x\\n\\n\"}");
    check("a: x\n  y\n\n  z", "{\"a\":\"x y\\nz\"}");
    check("a: \"x\n  y\n\n  z\"", "{\"a\":\"x y\\nz\"}");
    check("a: \"x \\\\\n  y\"", "{\"a\":\"x \\\\ y\"}");
    check("a: 'x\n  y'", "{\"a\":\"x y\"}");
}

#[test]
fn escapes_are_resolved() {
    check(
        "\"\\x41\\u00e9\\U0001F600\\t\\n\\\\\\\"\"",
        "\"Aé😀\\t\\n\\\\\\\"\"",
    );
    check(
        "\"\\0\\a\\b\\v\\f\\r\\e\\ \\N\\_\\L\\P\"",
        "\"\\u0000\\u0007\\b\\u000b\\f\\r\\u001b \u{85}\u{a0}\\u2028\\u2029\"",
    );
    check("a: \"é世\\u2028\"", "{\"a\":\"é世\\u2028\"}");
}

#[test]
fn anchors_are_repeated_and_merge_keys_merged_in_the_order_of_the_text() {
    check("a: &b 1\nc: *b", "{\"a\":1,\"c\":1}");
    check("a: &b {x: 1}\nc: *b", "{\"a\":{\"x\":1},\"c\":{\"x\":1}}");
    check(
        "a: &b [1, 2]\nc: *b\nd: *b",
        "{\"a\":[1,2],\"c\":[1,2],\"d\":[1,2]}",
    );

    check("&a a: *a", "{\"a\":\"a\"}");
    check(
        "a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  k: 3",
        "{\"a\":{\"k\":1,\"l\":2},\"b\":{\"k\":3,\"l\":2}}",
    );

    check(
        "a: &x {k: 1}\nb:\n  k: 3\n  <<: *x",
        "{\"a\":{\"k\":1},\"b\":{\"k\":1}}",
    );

    check(
        "a: &x {k: 1}\nb: &y {k: 2, m: 3}\nc:\n  <<: [*x, *y]",
        "{\"a\":{\"k\":1},\"b\":{\"k\":2,\"m\":3},\"c\":{\"k\":1,\"m\":3}}",
    );

    check("a: {<<: {b: c}}", "{\"a\":{\"b\":\"c\"}}");
    check("a: \"<<\"", "{\"a\":\"\\u003c\\u003c\"}");
    check("\"<<\": a", "{\"\\u003c\\u003c\":\"a\"}");
    check("!!merge \"<<\": {a: b}", "{\"a\":\"b\"}");
    check("- &a\n- *a", "[null,null]");
    check("a: <<", "{\"a\":\"\\u003c\\u003c\"}");
    check("<<: {a: 1}", "{\"a\":1}");
}

#[test]
fn words_are_what_yaml_1_1_says() {
    check("yes", "true");
    check(
        "[yes, Yes, YES, yEs, on, On, ON, y, Y, true, True, TRUE, tRUE]",
        "[true,true,true,\"yEs\",true,true,true,true,true,true,true,true,\"tRUE\"]",
    );

    check(
        "[no, No, NO, off, Off, OFF, n, N, false, False, FALSE]",
        "[false,false,false,false,false,false,false,false,false,false,false]",
    );

    check(
        "[~, null, Null, NULL, nUll, \"\", '']",
        "[null,null,null,null,\"nUll\",\"\",\"\"]",
    );
}

#[test]
fn numbers_are_what_upstream_reads() {
    check(
        "[0777, 0o777, 0x1F, 0X1f, 0b11, 0B11, 1_000, 0_7, 0x_ff, -0x1, +12, -0b1, 0b-1]",
        "[511,511,31,31,3,3,1000,7,255,-1,12,-1,-1]",
    );

    check(
        "[08, 09.5, 1., .5, -.5, +.5, 1e3, 1E3, 1e+3, 1.5e-3, 1_0.5, .5_0, ._5, .5_, 5._0]",
        "[8,9.5,1,0.5,-0.5,0.5,1000,1000,1000,0.0015,10.5,0.5,\"._5\",\".5_\",5]",
    );

    check(
        "[0x, 0b, 0o, 0b2, 0o8, 1e, 1e+, ., .., ..., +, -, -a, 1e400, -1e400, 0x1p3, 1__0, _1, 1_]",
        "[\"0x\",\"0b\",\"0o\",\"0b2\",\"0o8\",\"1e\",\"1e+\",\".\",\"..\",\"...\",\"+\",\"-\",\"-a\",\"1e400\",\"-1e400\",\"0x1p3\",10,\"_1\",1]",
    );

    check(
        "[9223372036854775807, -9223372036854775808, 9223372036854775808, 18446744073709551615, 18446744073709551616, -9223372036854775809]",
        "[9223372036854775807,-9223372036854775808,9223372036854775808,18446744073709551615,18446744073709552000,-9223372036854776000]",
    );

    check(
        "[1.0, 1.50, 100000000000000000000, 1e20, 1e21, 1e-7, 123456789.125, -0.0]",
        "[1,1.5,100000000000000000000,100000000000000000000,1e+21,1e-7,123456789.125,-0]",
    );
}

#[test]
fn timestamps_stay_strings() {
    check(
        "[2001-01-01, 2001-01-01T00:00:00Z, 12:30, 1:30:00]",
        "[\"2001-01-01\",\"2001-01-01T00:00:00Z\",\"12:30\",\"1:30:00\"]",
    );
    check("2001-01-01: a", "{\"2001-01-01\":\"a\"}");
}

#[test]
fn keys_become_names() {
    check("1: a\n-2: b", "{\"-2\":\"b\",\"1\":\"a\"}");
    check(
        "1.5: a\n1e10: b\n0.1: c\n.inf: d",
        "{\".inf\":\"d\",\"0.1\":\"c\",\"1.5\":\"a\",\"1e+10\":\"b\"}",
    );
    check("true: a\nno: b", "{\"false\":\"b\",\"true\":\"a\"}");
    check("!!str true: !!str 2", "{\"true\":\"2\"}");
    check("a: 1\na: 2", "{\"a\":2}");
    check("{a: .inf, a: 1}", "{\"a\":1}");
}

#[test]
fn tags_say_what_a_scalar_is() {
    check("!!str 1", "\"1\"");
    check("!!str", "\"\"");
    check("!!int \"1\"", "1");
    check("!!int 0x10", "16");
    check("!!float 1", "1");

    check("!!float \"1.5\"", "1.5");
    check("!!bool \"yes\"", "true");
    check("!!null \"\"", "null");
    check("!!timestamp 2001-01-01", "\"2001-01-01\"");
    check("!!binary aGVsbG8=", "\"hello\"");

    check("!!binary |\n  aGVs\n  bG8=\n", "\"hello\"");
    check("!!binary /w==", "\"\\ufffd\"");
    check("!foo bar", "\"bar\"");
    check("!foo {a: b}", "{\"a\":\"b\"}");
    check("!!seq [a]", "[\"a\"]");
    check("! 12", "\"12\"");
    check("!<tag:yaml.org,2002:str> 12", "\"12\"");
    check("%TAG !y! tag:yaml.org,2002:\n---\n!y!str 12", "\"12\"");
    check("a: !!str\nb: !!null", "{\"a\":\"\",\"b\":null}");
}

#[test]
fn only_the_first_document_is_read() {
    check("%YAML 1.1\n---\na: b", "{\"a\":\"b\"}");
    check("--- a", "\"a\"");
    check("---\na: b\n---\nc: d", "{\"a\":\"b\"}");
    check("a: b\n...\nc: d", "{\"a\":\"b\"}");
    check("---\n---\na", "null");
    check("--- # x\n", "null");
    check("\"foo\" }", "\"foo\"");
}

#[test]
fn a_colon_behind_an_empty_collection_ends_the_document_as_upstream_has_it() {
    check("{}: x", "{}");
}

#[test]
fn utf_16_and_byte_order_marks_are_read() {
    let check = |text: &[u8]| {
        assert_eq!(
            yaml::decode(text),
            Ok(json::parse("{\"a\":\"é😀\"}".as_bytes()).unwrap())
        );
    };

    let units: Vec<u16> = "\u{feff}a: é😀".encode_utf16().collect();
    check(
        &units
            .iter()
            .flat_map(|unit| unit.to_le_bytes())
            .collect::<Vec<_>>(),
    );

    check(
        &units
            .iter()
            .flat_map(|unit| unit.to_be_bytes())
            .collect::<Vec<_>>(),
    );

    check("\u{feff}a: é😀".as_bytes());
}
