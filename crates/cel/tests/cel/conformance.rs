//! The tests of `cel.dev/expr`: what each needs, what it expects, and what came out.
//!
//! Kubernetes' environment is not the one that these tests are written for: it lacks libraries,
//! refuses literals of mixed types, and checks every expression. Where the expectation is not met,
//! the answer must be upstream's to the letter; then the test counts as different upstream.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use crate::answer::Answer;
use crate::differential::is_random;
use crate::oracle::{Oracle, tool};
use crate::ours;
use crate::question::Question;
use crate::textproto::{Message, parse};
use crate::values::Value;

/// How many tests pass, cannot be asked without messages of protocol buffers, or expect what
/// Kubernetes' environment does not do.
#[derive(Debug, Default, PartialEq)]
struct Count {
    pass: usize,
    need_messages: usize,
    different_upstream: usize,
    fail: usize,
}

enum Expected {
    Value(String),
    Error,
    /// Only that it compiles, to this type if it is said.
    Checked,
}

struct Test {
    name: String,
    question: Question,
    expected: Expected,
    /// What it needs that Kubernetes' environments do not have.
    needs: Option<&'static str>,
}

#[test]
fn conformance_tests_pass_or_answer_as_upstream() {
    let mut oracle = Oracle::start();
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let mut reasons: Reasons = BTreeMap::new();
    let mut failures = String::new();
    let mut files: Vec<_> = fs::read_dir(tool("cel-conformance"))
        .expect("the folder is there")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();

    for file in files {
        let name = file
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let count = counts.entry(name.clone()).or_default();
        let text = fs::read_to_string(&file).expect("a text");
        for section in parse(&text).messages("section") {
            for test in section.messages("test") {
                match read(test) {
                    Err(reason) => {
                        count.need_messages += 1;
                        *reasons.entry(reason).or_default() += 1;
                    }
                    Ok(test) => run(
                        &name,
                        &test,
                        &mut oracle,
                        count,
                        &mut reasons,
                        &mut failures,
                    ),
                }
            }
        }
    }

    let total = |member: fn(&Count) -> usize| counts.values().map(member).sum::<usize>();
    let summary = format!(
        "{counts:#?}\n{reasons:#?}\npass {}, different upstream {}, need messages {}, fail {}",
        total(|c| c.pass),
        total(|c| c.different_upstream),
        total(|c| c.need_messages),
        total(|c| c.fail)
    );
    assert!(failures.is_empty(), "{failures}\n{summary}");
    assert_eq!(
        total(|c| c.pass + c.different_upstream + c.need_messages),
        2_344,
        "{summary}"
    );
    // Which tests are which may change only on purpose.
    assert_eq!(total(|c| c.pass), PASS, "{summary}");
    let expected: Reasons = NOT_PASSED.iter().copied().collect();
    assert_eq!(reasons, expected, "{summary}");
}

type Reasons = BTreeMap<&'static str, usize>;

const PASS: usize = 1_432;

/// Why others do not pass: those that expect something else answer as upstream.
const NOT_PASSED: &[(&str, usize)] = &[
    // Kubernetes' environments have neither.
    ("messages and enumerations of the test suite", 279),
    ("a container, in which names are looked up", 15),
    (LIBRARY, 208),
    (MIXED, 51),
    (UNCHECKED, 41),
    (STRINGS, 17),
    (CEL_GO, 5),
    // What cannot be asked.
    ("a result that is a message", 197),
    ("variables that are messages", 91),
    ("values that are messages", 2),
    ("a message that is shown", 1),
    ("functions of its own", 5),
];

const LIBRARY: &str = "a library that Kubernetes does not have";
const MIXED: &str = "literals of mixed types, which Kubernetes refuses";
const UNCHECKED: &str = "an expression that does not compile: Kubernetes checks each";
const STRINGS: &str = "a later version of the strings library than Kubernetes has";
const CEL_GO: &str = "cel-go itself answers otherwise";

fn run(
    file: &str,
    test: &Test,
    oracle: &mut Oracle,
    count: &mut Count,
    reasons: &mut Reasons,
    failures: &mut String,
) {
    let ours = ours::answer(&test.question);
    let upstream = oracle.ask(&test.question);
    let difference = ours.difference(&upstream);
    if !difference.is_empty() && !is_random(oracle, &test.question, &ours, &upstream) {
        count.fail += 1;
        writeln!(
            failures,
            "{file}/{}: {}\n{difference}",
            test.name, test.question.expr
        )
        .expect("a string takes all");
    } else if test.expected.is_met(&ours) {
        count.pass += 1;
    } else {
        count.different_upstream += 1;
        let reason = test.needs.unwrap_or_else(|| difference_of(file, &upstream));
        *reasons.entry(reason).or_default() += 1;
    }
}

/// Why upstream does not do what a test expects.
fn difference_of(file: &str, upstream: &Answer) -> &'static str {
    let errors = &upstream.errors;
    let lacks = |names: &[&str]| {
        let is_named = |name: &&str| errors.contains(&format!("undeclared reference to '{name}'"));
        names.iter().any(is_named)
    };
    if lacks(&["math", "base64", "cel", "strings", "reverse", "proto"]) {
        LIBRARY
    } else if errors.contains("expected type '") && errors.contains("' but found '") {
        MIXED
    } else if !errors.is_empty() {
        UNCHECKED
    } else if file == "string_ext" {
        STRINGS
    } else {
        CEL_GO
    }
}

impl Expected {
    fn is_met(&self, answer: &Answer) -> bool {
        let failed =
            !(answer.errors.is_empty() && answer.program.is_empty() && answer.err.is_empty());
        match self {
            Self::Value(text) => !failed && answer.value == *text,
            Self::Error => failed,
            Self::Checked => answer.errors.is_empty(),
        }
    }
}

/// A test as a question, or why it needs messages of protocol buffers.
fn read(test: &Message) -> Result<Test, &'static str> {
    let expr = test.text("expr").expect("every test has an expression");
    let needs = needs(test, &expr);
    // Go writes messages with blanks that vary from build to build.
    if expr.starts_with("google.protobuf.Any{") && expr.ends_with(".type_url") {
        return Err("a message that is shown");
    }
    let mut question = Question::of(expr);
    for declared in test.messages("type_env") {
        let name = declared.text("name").expect("a name");
        let Some(ident) = declared.message("ident") else {
            return Err("functions of its own");
        };
        let of = ident
            .message("type")
            .and_then(type_text)
            .ok_or("variables that are messages")?;
        question.vars.insert(name, of);
    }
    for bound in test.messages("bindings") {
        let name = bound.text("key").expect("a key");
        let value = bound
            .message("value")
            .and_then(|value| value.message("value"))
            .and_then(Value::read)
            .ok_or("values that are messages")?;
        // Upstream binds what is not declared, too; here it must be declared.
        question.vars.entry(name.clone()).or_insert("dyn".into());
        question.lets.insert(name, value.expression());
    }
    Ok(Test {
        name: test.text("name").unwrap_or_default(),
        expected: expected(test)?,
        question,
        needs,
    })
}

fn needs(test: &Message, expr: &str) -> Option<&'static str> {
    const MESSAGES: [&str; 6] = [
        "TestAllTypes",
        "TestRequired",
        "NestedTestAllTypes",
        "GlobalEnum",
        "cel.expr.conformance",
        "proto.",
    ];
    if MESSAGES.iter().any(|name| expr.contains(name)) {
        return Some("messages and enumerations of the test suite");
    }
    let container = test.text("container").is_some_and(|name| !name.is_empty());
    container.then_some("a container, in which names are looked up")
}

fn expected(test: &Message) -> Result<Expected, &'static str> {
    if test.text("check_only").as_deref() == Some("true") {
        return Ok(Expected::Checked);
    }
    if test.message("eval_error").is_some() || test.message("any_eval_errors").is_some() {
        return Ok(Expected::Error);
    }
    let value = match (test.message("value"), test.message("typed_result")) {
        (Some(value), _) => value,
        (None, Some(typed)) => typed.message("result").ok_or("no result")?,
        // Nothing is said: true is expected.
        (None, None) => return Ok(Expected::Value("true".into())),
    };
    Value::read(value)
        .map(|value| Expected::Value(value.text()))
        .ok_or("a result that is a message")
}

/// A declared type as messages print it; `None` for messages.
fn type_text(of: &Message) -> Option<String> {
    let inner = |name: &str, field: &str| of.message(name)?.message(field).and_then(type_text);
    if let Some(primitive) = of.text("primitive") {
        return Some(
            match primitive.as_str() {
                "BOOL" => "bool",
                "INT64" => "int",
                "UINT64" => "uint",
                "DOUBLE" => "double",
                "STRING" => "string",
                "BYTES" => "bytes",
                _ => return None,
            }
            .into(),
        );
    }
    match of.0.first()?.0.as_str() {
        "dyn" => Some("dyn".into()),
        "null" => Some("null".into()),
        "list_type" => Some(format!("list({})", inner("list_type", "elem_type")?)),
        "map_type" => Some(format!(
            "map({}, {})",
            inner("map_type", "key_type")?,
            inner("map_type", "value_type")?
        )),
        "well_known" => match of.text("well_known")?.as_str() {
            "TIMESTAMP" => Some("timestamp".into()),
            "DURATION" => Some("duration".into()),
            "ANY" => Some("any".into()),
            _ => None,
        },
        _ => None,
    }
}
