//! Input that must be refused, or stopped within its budget: neither the stack nor memory nor time
//! may grow with it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::answer::Answer;
use crate::ours;
use crate::question::Question;

/// On the stack of a worker thread of the server.
const STACK: usize = 2 << 20;
/// Processor time of one answer, so that it does not depend on what else the machine does. Without
/// optimization the whole budget of work takes seconds; what is not bounded takes hours.
const LONGEST: Duration = Duration::from_secs(60);

fn answer(expr: String) -> Answer {
    let question = Question::of(expr);
    let thread = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            let answer = ours::answer(&question);
            let spent = processor_time();
            assert!(spent < LONGEST, "took {spent:?}: {:.80}", question.expr);

            answer
        })
        .expect("a thread");
    thread.join().expect("no overflow of the stack, no panic")
}

/// Of this thread, since it began.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a thread's processor time is not negative")
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

/// Regular expressions on which a backtracking matcher needs exponential time, and those that need
/// much memory.
#[test]
fn regular_expressions_take_linear_time_or_are_refused() {
    let text = format!("'{}!'", "a".repeat(2_000));
    for pattern in [
        "(a+)+$",
        "(a*)*b",
        "(a|a)*$",
        "(a|aa)+$",
        "(.*a){20}$",
        "([a-z]+)*[0-9]",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(?:a?){100}a{100}$",
    ] {
        for call in ["matches", "find", "findAll"] {
            answer(format!("{text}.{call}('{pattern}') == dyn(1)"));
        }
    }

    for pattern in ["(a{1000}){1000}", "((a{100}){100}){100}"] {
        let answer = answer(format!("'a'.matches('{pattern}')"));
        assert!(answer.value.is_empty(), "{pattern}: {}", answer.value);
    }
    // Each is another expression, compiled at run time.
    stopped("lists.range(50000).all(i, 'a'.find('a{' + string(i % 100) + '}') != 'b')");
    answer(
        "lists.range(300).all(i, 'a'.matches('(\\\\pL{' + string(i % 30) + '})*') || true)".into(),
    );
}

/// Values that double with each step: as large as the number of steps is an exponent.
#[test]
fn doubling_is_stopped_before_it_takes_memory() {
    let doubled = |first: &str, step: &str, last: &str| {
        let steps = format!(".map(x, {step})").repeat(60);
        answer(format!("[{first}]{steps}{last}"))
    };
    let stops = |answer: Answer| {
        assert_eq!(
            answer.err, "operation cancelled: actual cost limit exceeded",
            "{:.200}{:.200}",
            answer.errors, answer.value
        );
    };

    stops(doubled("'ab'", "x + x", ".size()"));
    stops(doubled("b'ab'", "x + x", ".size()"));
    stops(doubled("'a'", "x.replace('a', 'aaaa')", ".size()"));
    stops(doubled("'a'", "[x, x].join(x)", ".size()"));
    stops(doubled("'a'", "'%s%s'.format([x, x])", ".size()"));
    stops(doubled("[1]", "[x, x].flatten()", ".size()"));

    // The sum of two lists takes no memory; what is done with it does.
    assert_eq!(doubled("[1]", "x + x", ".size()").value, "1");
    for last in [
        "[0].map(x, x)",
        "[0].all(x, x == 1)",
        "[0].sort()",
        "[0].distinct()",
        "[0].map(y, [y]).flatten()",
        "[0].reverse()",
        "[0].slice(0, 1000000000)",
        "[0].sum()",
        "[0].isSorted()",
        "[0].indexOf(2)",
    ] {
        stops(doubled("[1]", "x + x", last));
    }
    for last in [" == [[2]]", ".exists(x, 2 in x)"] {
        doubled("[1]", "x + x", last);
    }
    answer("'%1000000000d'.format([1])".into());
    answer("'%.1000000000f'.format([1.0])".into());
}

/// All of the above in a process of its own, whose memory is measured.
#[test]
fn memory_stays_bounded() {
    /// Tables of the parser and of Unicode, 64 MB of values, a text of 10 MB, threads.
    const MOST: u64 = 512 << 20;
    const NAME: &str = "hostile::memory_stays_bounded";

    let is_measured = std::env::var_os("CORACLE_CEL_MEASURED").is_some();
    if !is_measured {
        let program = std::env::current_exe().expect("the path of the test");
        let output = std::process::Command::new(program)
            .args(["--exact", NAME, "--nocapture"])
            .env("CORACLE_CEL_MEASURED", "1")
            .output()
            .expect("the test starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        return;
    }

    deep_nesting_is_refused();
    long_texts_are_refused();
    huge_literals_are_answered();
    exponential_comprehensions_are_stopped();
    regular_expressions_take_linear_time_or_are_refused();
    doubling_is_stopped_before_it_takes_memory();

    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .expect("a size in kB");
    println!("at most {} MB", peak >> 10);
    assert!(peak << 10 < MOST, "{peak} kB");
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
