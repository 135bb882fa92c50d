//! Malicious texts: nesting, breadth, aliases, and anything that could take quadratic time.

use crate::codec::json::MAX_TREE_DEPTH;
use crate::codec::yaml::{self, Error};
use crate::fuzz::steps;

fn nested(open: &str, close: &str, depth: usize) -> String {
    open.repeat(depth) + "1" + &close.repeat(depth)
}

#[test]
fn a_value_may_be_as_deep_as_one_from_json() {
    for (open, close, bracket) in [
        ("[", "]", '['),
        ("{a: ", "}", '{'),
        ("- ", "", '['),
        ("? ", "", '{'),
    ] {
        let refused = Err(Error::TooDeep(bracket));
        assert_eq!(
            yaml::decode(nested(open, close, MAX_TREE_DEPTH + 1).as_bytes()),
            refused
        );

        assert_eq!(
            yaml::decode(nested(open, close, 10_000).as_bytes()),
            refused
        );

        if open != "? " {
            let value = yaml::decode(nested(open, close, MAX_TREE_DEPTH).as_bytes()).unwrap();
            assert_eq!(yaml::decode(yaml::print(&value).as_bytes()), Ok(value));
        }
    }
}

#[test]
fn text_may_be_nested_ten_thousand_deep_in_brackets_and_as_deep_in_blocks() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", "")] {
        let error = yaml::decode(nested(open, close, 10_001).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "yaml: exceeded max depth of 10000");
    }
    let mixed = "- ".repeat(10_000) + &nested("[", "]", 10_000);
    assert_eq!(yaml::decode(mixed.as_bytes()), Err(Error::TooDeep('[')));
}

#[test]
fn aliases_may_not_expand_a_text_excessively() {
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        laughs += &format!("a{level}: &a{level} [{aliases}]\n");
    }

    assert_eq!(
        yaml::decode(laughs.as_bytes()),
        Err(Error::ExcessiveAliasing)
    );

    let long = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(100_000),
        "*a, ".repeat(1_000)
    );
    assert_eq!(yaml::decode(long.as_bytes()), Err(Error::ExcessiveAliasing));

    let mut chain = "a0: &a0 x\n".to_owned();
    for level in 1..20_000 {
        chain += &format!("a{level}: &a{level} [*a{}]\n", level - 1);
    }

    assert_eq!(
        yaml::decode(chain.as_bytes()),
        Err(Error::ExcessiveAliasing)
    );
}

#[test]
fn a_document_of_many_small_aliases_is_read() {
    let text = format!("a: &a {{b: c}}\nd: [{}]\n", "*a, ".repeat(300));
    assert_eq!(
        yaml::decode(text.as_bytes())
            .unwrap()
            .get("d")
            .unwrap()
            .as_array()
            .unwrap()
            .len(),
        300
    );
}

/// Four times the text costs at most six times the steps.
fn check_linear(name: &str, size: usize, text: impl Fn(usize) -> String) {
    let cost = |size| {
        let text = text(size);
        steps::taken_by(|| drop(yaml::decode_strict(text.as_bytes())))
    };
    let (small, large) = (cost(size / 4), cost(size));
    assert!(small > 0, "{name}: steps are counted");
    assert!(large <= 6 * small, "{name}: {small} steps became {large}");
}

const MIB: usize = 1 << 20;

#[test]
fn no_repetition_takes_quadratic_time() {
    let pieces = [
        "[",
        "{",
        "[{",
        "]",
        "- ",
        "? ",
        "? - ",
        ": ",
        "a: ",
        "[a: ",
        "[a, ",
        "a, ",
        "{a: b, ",
        "'",
        "''",
        "\"",
        "\\",
        "\"\\x41",
        "&a ",
        "*a ",
        "!a ",
        "!!",
        "%TAG !a! x\n",
        "|\n",
        "|+\n\n",
        ">\n a\n",
        "\n",
        "\n\n",
        " ",
        "  \n",
        "\t",
        "#",
        "# a\n",
        "a\n",
        "a b ",
        "a: b\n",
        "- a\n",
        "-\n",
        "?\n",
        ":\n",
        "---\n",
        "...\n",
        "a: &a b\n",
        "a: *a\n",
        "<<: {a: b}\n",
        "<<: [{a: b}]\n",
        "é",
        "\u{2028}",
        "\r",
        "1_",
        "0",
        ".",
        "1e",
        "[]: ",
        "[[a]: b]: ",
        "{a}: ",
    ];

    for before in ["", "[", "{a: ", "a: \"", "a: |\n  ", "a: >\n  ", "a: '"] {
        for piece in pieces {
            let name = format!("{before:?} and {piece:?}");
            check_linear(&name, MIB / 16, |size| {
                before.to_owned() + &piece.repeat(size / piece.len())
            });
        }
    }
}

#[test]
fn a_mebibyte_of_brackets_colons_or_words_takes_linear_time() {
    for piece in [
        "[",
        "{",
        "[a, ",
        "[a: ",
        "? ",
        "- a\n",
        "a b ",
        "a: b\n",
        "[[a]: b]: ",
        "\"a\\x41\" ",
    ] {
        check_linear(piece, MIB, |size| piece.repeat(size / piece.len()));
    }
}

#[test]
fn many_different_handles_anchors_and_keys_cost_no_search() {
    fn numbered(size: usize, make: fn(usize) -> String) -> String {
        let mut text = String::new();
        for number in 0.. {
            if text.len() >= size {
                break;
            }
            text += &make(number);
        }
        text
    }

    let check =
        |name, make: fn(usize) -> String| check_linear(name, MIB, |size| numbered(size, make));
    check("handles", |n| format!("%TAG !h{n}! x\n"));
    check("anchors", |n| format!("- &a{n} x\n- *a{n}\n"));
    check("keys", |n| format!("k{n}: x\n"));

    check("keys backwards", |n| format!("k{:08}: x\n", 10_000_000 - n));
    check("numbers", |n| format!("{n}.5: x\n"));
    check_linear("handles used", MIB, |size| {
        let used = numbered(size / 2, |n| format!("- !h{}!y z\n", n % 1000));
        numbered(size / 2, |n| format!("%TAG !h{n}! x\n")) + "---\n" + &used
    });
}
