//! Input that must be refused, or stopped within its budget: neither the stack nor memory nor time
//! may grow with it.

use std::time::{Duration, Instant};

use crate::answer::Answer;
use crate::ours;
use crate::question::Question;

/// On the stack of a worker thread of the server.
const STACK: usize = 2 << 20;
/// Generous, because test machines are busy; what is not bounded takes minutes.
const LONGEST: Duration = Duration::from_secs(20);

fn answer(expr: String) -> Answer {
    let question = Question::of(expr);
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            #[expect(
                clippy::disallowed_methods,
                reason = "measures how long the answer takes"
            )]
            let started = Instant::now();
            let answer = ours::answer(&question);
            assert!(
                started.elapsed() < LONGEST,
                "took {:?}: {:.80}",
                started.elapsed(),
                question.expr
            );
            answer
        })
        .expect("a thread");
    thread.join().expect("no overflow of the stack, no panic")
}

fn refused(expr: String, text: &str) {
    let answer = answer(expr);
    assert!(
        answer.errors.contains(text),
        "not refused with {text:?}: {:.300} {:.100} {:.100}",
        answer.errors,
        answer.err,
        answer.value
    );
}

fn stopped(expr: &str) {
    let answer = answer(expr.into());
    assert_eq!(
        answer.err, "operation cancelled: actual cost limit exceeded",
        "{expr}: {:.200}{:.200}",
        answer.errors, answer.value
    );
}

#[test]
fn deep_nesting_is_refused() {
    const DEPTH: usize = 20_000;
    let recursion = "recursion limit exceeded: 250";
    refused("(".repeat(DEPTH), recursion);
    refused("[".repeat(DEPTH), recursion);
    refused("{1:".repeat(DEPTH), recursion);
    refused(
        format!("{}1{}", "(".repeat(DEPTH), ")".repeat(DEPTH)),
        recursion,
    );
    refused(
        format!("{}1{}", "[".repeat(DEPTH), "]".repeat(DEPTH)),
        recursion,
    );
    refused("f(".repeat(DEPTH), recursion);

    refused("a?".repeat(DEPTH), "");
    refused(format!("{}1", "true?1:".repeat(DEPTH / 2)), recursion);
    refused(format!("{}a", "!(".repeat(DEPTH)), recursion);
    refused(
        format!("x{}", ".a".repeat(DEPTH)),
        "max recursion depth exceeded",
    );
    refused(
        format!("x{}", "[0]".repeat(DEPTH)),
        "max recursion depth exceeded",
    );
    refused(
        format!("1{}", "+1".repeat(DEPTH)),
        "max recursion depth exceeded",
    );
    refused(
        format!("x{}", ".f()".repeat(DEPTH)),
        "max recursion depth exceeded",
    );
}

#[test]
fn long_texts_are_refused() {
    let limit = "expression code point size exceeds limit";
    refused("a".repeat(10 << 20), limit);
    refused(" ".repeat(10 << 20), limit);
    refused("é".repeat(5 << 20), limit);
    refused(format!("'{}'", "x".repeat(10 << 20)), limit);
}

#[test]
fn huge_literals_are_answered() {
    for text in [
        "9".repeat(99_990),
        format!("0x{}", "f".repeat(99_990)),
        format!("1e{}", "9".repeat(99_990)),
        format!("{}.5", "9".repeat(99_990)),
        format!("'{}'", "\\n".repeat(49_990)),
        format!("b'{}'", "\\xff".repeat(24_990)),
        format!("'''{}'''", "\n".repeat(99_990)),
        format!("[{}]", "1,".repeat(49_990)),
        format!("{{{}}}", "1:1,".repeat(24_990)),
        format!("f({})", "1,".repeat(49_990)),
        format!("true{}", "&&true".repeat(16_660)),
        format!("{}true", "!".repeat(99_990)),
        format!("{}1", "-".repeat(99_990)),
        "//".repeat(49_990),
        "?".repeat(99_990),
        "'".repeat(99_990),
        "(".repeat(99_990),
        ")".repeat(99_990),
        "1 1 ".repeat(24_990),
        "a b ".repeat(24_990),
        "\u{1}".repeat(99_990),
        ".".repeat(99_990),
        "`".repeat(99_990),
        "in ".repeat(33_300),
    ] {
        answer(text);
    }
}

#[test]
fn exponential_comprehensions_are_stopped() {
    let digits = "[0,1,2,3,4,5,6,7,8,9]";
    let mut text = "true".to_owned();
    for depth in 0..12 {
        text = format!("{digits}.all(x{depth}, {text})");
    }
    stopped(&text);

    // Doubles what it holds with each step, without charging for it.
    let doubling = format!("[{}].map(x, x)", "1,".repeat(1000));
    answer(doubling);
    for text in [
        "lists.range(1000000000)",
        "lists.range(999000).map(x, lists.range(1000))",
        "lists.range(900).map(a, lists.range(900).map(b, lists.range(900)))",
        "lists.range(50000).distinct()",
        "lists.range(100000).map(x, 'abcdefghijklmnopqrstuvwxyz')",
    ] {
        answer(text.into());
    }
}

#[test]
fn the_fuzz_corpus_and_its_mutations_end_within_their_budget() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/cel");
    let mut rng = fastrand::Rng::with_seed(24);
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("a text");
        coracle_cel::fuzz::expression(text.as_bytes());
        for _ in 0..200 {
            let broken = crate::mutate::mutate(&mut rng, &text);
            coracle_cel::fuzz::expression(broken.as_bytes());
        }
    }
}
