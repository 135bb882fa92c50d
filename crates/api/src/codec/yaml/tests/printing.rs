//! Encoding of values.

use crate::codec::{json, yaml};
use crate::value::{RawJson, Value};

/// Expects this output, and that it decodes to the same value.
fn check(value: &str, expected: &str) {
    let value = json::parse(value.as_bytes()).unwrap();
    assert_eq!(yaml::print(&value), expected, "{value:?}");
    assert_eq!(yaml::decode(expected.as_bytes()), Ok(value), "{expected:?}");
}

#[test]
fn collections_are_printed_in_block_style_with_sorted_names() {
    check(
        "{\"b\": 1, \"a\": [1, 2], \"c\": {\"e\": null, \"d\": true}}",
        "a:\n- 1\n- 2\nb: 1\nc:\n  d: true\n  e: null\n",
    );

    check(
        "{\"a\": [], \"b\": {}, \"c\": \"\", \"d\": null}",
        "a: []\nb: {}\nc: \"\"\nd: null\n",
    );

    check(
        "[[1, 2], [], [[3]], {\"a\": [{\"b\": 1, \"c\": 2}]}]",
        "- - 1\n  - 2\n- []\n- - - 3\n- a:\n  - b: 1\n    c: 2\n",
    );

    check(
        "{\"a10\": 1, \"a2\": 2, \"a1\": 3, \"b\": 4, \"A\": 5, \"_\": 6, \"-\": 7}",
        "'-': 7\n_: 6\nA: 5\na1: 3\na2: 2\na10: 1\nb: 4\n",
    );
}

#[test]
fn strings_that_look_like_something_else_are_quoted() {
    check("\"plain\"", "plain\n");
    check("\"\"", "\"\"\n");
    check(
        "[\"y\", \"n\", \"yes\", \"no\", \"on\", \"off\", \"true\", \"False\", \"null\", \"~\", \"Y\", \"NO\"]",
        "- \"y\"\n- \"n\"\n- \"yes\"\n- \"no\"\n- \"on\"\n- \"off\"\n- \"true\"\n- \"False\"\n- \"null\"\n- \"~\"\n- \"Y\"\n- \"NO\"\n",
    );

    check(
        "[\"1\", \"1.5\", \"0x10\", \"0777\", \"0o7\", \"0b1\", \"1e3\", \"1_000\", \".5\", \".inf\", \".nan\", \"-1\", \"+1\", \"1.2.3\", \"1e400\"]",
        "- \"1\"\n- \"1.5\"\n- \"0x10\"\n- \"0777\"\n- \"0o7\"\n- \"0b1\"\n- \"1e3\"\n- \"1_000\"\n- \".5\"\n- \".inf\"\n- \".nan\"\n- \"-1\"\n- \"+1\"\n- 1.2.3\n- 1e400\n",
    );

    check(
        "[\"2001-01-01\", \"2001-1-1\", \"2001-01-01T10:00:00Z\", \"2001-01-01 10:00:00\", \"2001-01-01T10:00:00.5+01:00\", \"2001-13-01\", \"2001-02-29\", \"2001-01-01x\", \"12:30\", \"1:2:3\", \"1:60\", \"-1:30.5\", \"a:b\"]",
        "- \"2001-01-01\"\n- \"2001-1-1\"\n- \"2001-01-01T10:00:00Z\"\n- \"2001-01-01 10:00:00\"\n- \"2001-01-01T10:00:00.5+01:00\"\n- 2001-13-01\n- 2001-02-29\n- 2001-01-01x\n- \"12:30\"\n- \"1:2:3\"\n- 1:60\n- \"-1:30.5\"\n- a:b\n",
    );
}

#[test]
fn strings_with_indicators_and_other_characters_are_quoted() {
    check(
        "[\"a: b\", \"a:\", \"a:b\", \"a #b\", \"a#b\", \"#a\", \"- a\", \"-a\", \"-\", \"?\", \"? a\", \"?a\", \":a\", \": a\", \":\", \"[a]\", \"{a}\", \"a,b\", \",a\", \"&a\", \"*a\", \"!a\", \"|\", \"|a\", \">\", \"%a\", \"@a\", \"`a\", \"'a'\", \"\\\"a\\\"\", \"a'b\", \"a\\\"b\", \"---\", \"...\", \"---a\", \"...a\", \"--\", \"=\", \"<<\", \"a]\", \"a{b\"]",
        "- 'a: b'\n- 'a:'\n- a:b\n- 'a #b'\n- a#b\n- '#a'\n- '- a'\n- -a\n- '-'\n- '?'\n- '? a'\n- ?a\n- :a\n- ': a'\n- ':'\n- '[a]'\n- '{a}'\n- a,b\n- ',a'\n- '&a'\n- '*a'\n- '!a'\n- '|'\n- '|a'\n- '>'\n- '%a'\n- '@a'\n- '`a'\n- '''a'''\n- '\"a\"'\n- a'b\n- a\"b\n- '---'\n- '...'\n- '---a'\n- '...a'\n- --\n- =\n- <<\n- a]\n- a{b\n",
    );
    check(
        "[\" a\", \"a \", \"a  b\", \"\\ta\", \"a\\tb\", \"a\\\\b\", \"\\\\\", \"é\", \"世界\", \"😀\", \"\\u0000\", \"\\u001b\", \"\\r\", \"a\\rb\", \"\u{a0}\", \"\u{2028}\", \"a\u{2028}b\", \"\u{feff}\", \"\u{feff}a\"]",
        "- ' a'\n- 'a '\n- a  b\n- \"\\ta\"\n- \"a\\tb\"\n- a\\b\n- \\\n- é\n- 世界\n- \"\\U0001F600\"\n- \"\\0\"\n- \"\\e\"\n- \"\\r\"\n- \"a\\rb\"\n- \u{a0}\n- '\u{2028}'\n- 'a\u{2028}  b'\n- \"\\uFEFF\"\n- \"\\uFEFF\\x61\"\n",
    );
}

#[test]
fn strings_of_several_lines_are_literal() {
    check(
        "[\"a\\n\", \"a\\n\\n\", \"a\\nb\", \"a\\nb\\n\", \" a\\nb\", \"\\na\", \"\\n\", \"\\n\\n\", \"a \\nb\", \"a\\n b\", \"a\\n\\n\\nb\", \"a\\nb \", \"a\\tb\\nc\", \"😀\\na\", \"a:\\n  b: c\\n\"]",
        "- |\n  a\n- |+\n  a\n\n- |-\n  a\n  b\n- |\n  a\n  b\n- |2-\n   a\n  b\n- |2-\n\n  a\n- |2+\n\n- |2+\n\n\n- \"a \\nb\"\n- |-\n  a\n   b\n- |-\n  a\n\n\n  b\n- \"a\\nb \"\n- \"a\\tb\\nc\"\n- \"\\U0001F600\\na\"\n- |\n  a:\n    b: c\n",
    );
    check(
        "{\"a\": \"x\\ny\\n\", \"b\": [\"x\\n\", \"y\"], \"c\": {\"d\": \"x\\n\\n\"}}",
        "a: |\n  x\n  y\nb:\n- |\n  x\n- \"y\"\nc:\n  d: |+\n    x\n\n",
    );
}

#[test]
fn names_are_quoted_too_and_long_ones_need_a_question_mark() {
    check(
        "{\"a b\": 1, \"a: b\": 2, \"a\\nb\": 3, \"\": 4, \"null\": 5, \"1\": 6, \"- a\": 7, \"true\": 8, \" \": 9}",
        "\"\": 4\n' ': 9\n'- a': 7\n\"1\": 6\n? |-\n  a\n  b\n: 3\na b: 1\n'a: b': 2\n\"null\": 5\n\"true\": 8\n",
    );
    check(
        "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": 1, \"baaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": [1, {\"c\": 2}]}",
        "? aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n: 1\n? baaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n: - 1\n  - c: 2\n",
    );
}

#[test]
fn long_lines_are_broken_at_spaces() {
    check(
        "{\"a\": \"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen\"}",
        "a: one two three four five six seven eight nine ten eleven twelve thirteen fourteen\n  fifteen sixteen\n",
    );

    check(
        "{\"a\": [\"one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen\"]}",
        "a:\n- one two three four five six seven eight nine ten eleven twelve thirteen fourteen\n  fifteen sixteen\n",
    );

    check(
        "{\"a\": \"one: two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen\"}",
        "a: 'one: two three four five six seven eight nine ten eleven twelve thirteen fourteen\n  fifteen sixteen'\n",
    );

    check(
        "{\"a\": \"one\\ttwo three four five six seven eight nine ten eleven twelve thirteen fourteen  fifteen sixteen\"}",
        "a: \"one\\ttwo three four five six seven eight nine ten eleven twelve thirteen fourteen\n  \\ fifteen sixteen\"\n",
    );

    check(
        "{\"a\": \"oneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneone two\"}",
        "a: oneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneoneone\n  two\n",
    );
}

#[test]
fn numbers_are_printed_as_upstream_does() {
    check(
        "[0, -1, 1.5, 100000.5, 1000000.5, 123456789.5, 0.0001, 1e-05, 1e-07, 1e+21, 1e+300, 9223372036854775807, -9223372036854775808]",
        "- 0\n- -1\n- 1.5\n- 100000.5\n- 1.0000005e+06\n- 1.234567895e+08\n- 0.0001\n- 1e-05\n- 1e-07\n- 1e+21\n- 1e+300\n- 9223372036854775807\n- -9223372036854775808\n",
    );
}

#[test]
fn floats_go_through_json_where_whole_ones_are_integers() {
    let check =
        |number: f64, expected: &str| assert_eq!(yaml::print(&Value::Float(number)), expected);
    check(1.0, "1\n");
    check(-0.0, "0\n");
    check(1e6, "1000000\n");
    check(1e19, "10000000000000000000\n");
    check(2e19, "2e+19\n");
    check(9.223372036854775e18, "9223372036854775000\n");
    check(-1.5e-9, "-1.5e-09\n");
}

#[test]
fn characters_that_upstream_cannot_print_are_escaped() {
    // Upstream refuses the first three, and turns the line separator into a space.
    for (text, expected) in [
        ("\u{7f}", "\"\\x7F\"\n"),
        ("\u{80}", "\"\\x80\"\n"),
        ("\u{ffff}", "\"\\uFFFF\"\n"),
        ("a\u{85}b", "\"a\\Nb\"\n"),
    ] {
        assert_eq!(yaml::print(&Value::string(text)), expected);
        assert_eq!(yaml::decode(expected.as_bytes()), Ok(Value::string(text)));
    }
}

#[test]
fn a_key_that_looks_like_a_merge_key_is_quoted() {
    check("{\"<<\":{\"a\":\"<<\"}}", "\"<<\":\n  a: <<\n");
}

#[test]
fn raw_json_is_printed_as_what_it_is() {
    let mut object = Value::object();
    let map = object.as_object_mut().unwrap();
    map.insert(
        "raw",
        Value::Raw(RawJson::trusted(r#"{"b":[1,{"d":2}],"a":"x"}"#)),
    );

    map.insert(
        "list",
        Value::Array(vec![
            Value::Raw(RawJson::trusted("[1]")),
            Value::Raw(RawJson::trusted("{}")),
        ]),
    );

    assert_eq!(
        yaml::print(&object),
        "list:\n- - 1\n- {}\nraw:\n  a: x\n  b:\n  - 1\n  - d: 2\n"
    );
}
