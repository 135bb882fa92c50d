//! What is said about texts that are not right. All expectations are cel-go's answers.

use std::sync::Arc;

use crate::env::Env;
use crate::parse::tree::Forest;
use crate::source::{Issues, Source};

const ANYTHING: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                        NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// `expected` lists errors as line, column and message.
fn check(text: &str, expected: &[(i32, i32, &str)]) {
    let issues = Env::base().parse(text).expect_err(text);
    let found: Vec<(i32, i32, String)> = issues
        .sorted()
        .into_iter()
        .map(|issue| {
            let place = issue.location;
            (
                place.line,
                place.column + 1,
                issue.message.replace(ANYTHING, "ANYTHING"),
            )
        })
        .collect();
    let expected: Vec<(i32, i32, String)> = expected
        .iter()
        .map(|(line, column, message)| (*line, *column, (*message).into()))
        .collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn a_token_that_does_not_fit_is_named_with_what_was_expected() {
    check(
        "",
        &[(
            1,
            0,
            "Syntax error: mismatched input '<EOF>' expecting ANYTHING",
        )],
    );
    check(
        "a ? b",
        &[(1, 6, "Syntax error: mismatched input '<EOF>' expecting ':'")],
    );

    check(
        "-5 x",
        &[(1, 4, "Syntax error: extraneous input 'x' expecting <EOF>")],
    );
    check(
        "-80 , (-2)",
        &[(1, 5, "Syntax error: mismatched input ',' expecting <EOF>")],
    );
    check(
        "1 + $",
        &[
            (1, 5, "Syntax error: token recognition error at: '$'"),
            (
                1,
                6,
                "Syntax error: mismatched input '<EOF>' expecting ANYTHING",
            ),
        ],
    );
}

#[test]
fn reading_goes_on_after_an_error() {
    check(
        "[].all(+, 1)",
        &[
            (
                1,
                8,
                "Syntax error: mismatched input '+' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
            ),
            (
                1,
                9,
                "Syntax error: extraneous input ',' expecting ANYTHING",
            ),
            (1, 12, "Syntax error: extraneous input ')' expecting <EOF>"),
        ],
    );
    check(
        "has(a[1]) || has(b",
        &[
            (1, 6, "invalid argument to has() macro"),
            (1, 18, "invalid argument to has() macro"),
            (1, 19, "Syntax error: missing ')' at '<EOF>'"),
        ],
    );
    check(
        "{for: 1",
        &[
            (1, 2, "reserved identifier: for"),
            (
                1,
                8,
                "Syntax error: mismatched input '<EOF>' expecting {'}', ','}",
            ),
        ],
    );
}

#[test]
fn a_reserved_word_after_a_dot_is_a_name_that_is_missing() {
    check(
        "[].map(.true, 1)",
        &[
            (1, 0, "argument is not an identifier"),
            (
                1,
                9,
                "Syntax error: mismatched input 'true' expecting IDENTIFIER",
            ),
        ],
    );
}

#[test]
fn recovery_gives_up_after_a_while() {
    let issues = Env::base().parse(&"#".repeat(200)).expect_err("no text");
    let text = issues.to_string();
    assert!(text.ends_with("1 more errors were truncated"), "{text}");

    let text = Env::base()
        .parse(&"'a' ".repeat(300))
        .expect_err("no operators")
        .to_string();
    assert!(
        text.contains("error recovery token lookahead limit exceeded: 256"),
        "{text}"
    );
}

#[test]
fn deep_and_long_texts_are_refused() {
    let refused = |text: String, message: &str| {
        let found = Env::base().parse(&text).expect_err(message).to_string();
        assert_eq!(found, format!("ERROR: <input>:-1:0: {message}"));
    };

    refused(
        "(".repeat(50_000),
        "expression recursion limit exceeded: 250",
    );
    refused(
        "[".repeat(251) + &"]".repeat(251),
        "expression recursion limit exceeded: 250",
    );
    refused(
        format!("1{}", "+1".repeat(251)),
        "max recursion depth exceeded",
    );
    refused(
        format!("a{}", ".b".repeat(251)),
        "max recursion depth exceeded",
    );
    refused(
        "a".repeat(100_001),
        "expression code point size exceeds limit: size: 100001, limit 100000",
    );
    refused(
        format!("a{}", ".optMap(x, x)".repeat(60)),
        "expression exceeds 500000 nodes after expansion of macros",
    );
}

#[test]
fn the_deepest_expression_fits_into_a_small_stack() {
    for text in [
        "(".repeat(249) + "1" + &")".repeat(249),
        "[1].map(x, ".repeat(200) + "1" + &")".repeat(200),
        "[".repeat(250) + &"]".repeat(249),
        format!("true{}", " && true".repeat(10_000)),
    ] {
        let compile = move || Env::base().compile(&text).is_ok();
        let thread = std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(compile);
        thread.unwrap().join().unwrap();
    }
}

/// The fast parser must accept just what the grammar does.
#[test]
fn both_parsers_accept_the_same_texts() {
    const PARTS: [&str; 34] = [
        "a", "b", "1", "-", "1.5", "'s'", "(", ")", "[", "]", "{", "}", ",", ".", "?", ":", "!",
        "-", "+", "*", "<", "in", "&&", "||", "true", "f(", ".g(", "a.b{", "{1:", "?", "a", "1",
        ")", "`x`",
    ];
    let mut accepted = 0;
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };

    for _ in 0..6_000 {
        let count = 1 + random(6);
        let text: String = (0..count).map(|_| PARTS[random(PARTS.len())]).collect();
        let source = Arc::new(Source::new(&text));
        let fast = crate::parse::accepts(&source);
        let mut issues = Issues::new(&source);
        super::parse(&source, &mut Forest::default(), &mut issues);
        assert_eq!(fast, issues.is_empty(), "{text}");
        accepted += usize::from(fast);
    }
    assert!(accepted > 150, "only {accepted} texts were right");
}
