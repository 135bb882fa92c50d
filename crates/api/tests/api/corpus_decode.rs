//! Decodes the recorded corpus: what the real server refused to decode, with which texts; and what
//! it accepted.
//!
//! Only creates are replayed, and only decoding: `cannot be handled as` responses must be refused
//! with the same text, and objects that were accepted, or refused by validation, must be decoded.

use crate::recorded::{self, corpus};

use std::collections::BTreeMap;
use std::path::Path;

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::json;
use corpus::{body, text_of};

/// Errors before the object is decoded with a type: not compared here.
const BEFORE_THE_TYPE: [&str; 3] = ["no kind ", "no version ", "converting ("];

#[test]
fn the_decoder_accepts_and_refuses_what_the_real_server_does() {
    let folder = recorded::path("corpus");
    let mut tally = Tally::default();
    for file in recorded::files(&folder, ".jsonl") {
        replay(&file, &mut tally);
    }

    eprintln!(
        "{} refusals and {} readings as recorded, {} cases are not about decoding",
        tally.refused, tally.read, tally.passed_over
    );

    assert!(
        tally.refused > 500 && tally.read > 4000,
        "the corpus has hardly any cases"
    );

    assert!(
        tally.different.is_empty(),
        "{} differ:\n{}",
        tally.different.len(),
        tally.different.join("\n")
    );
}

#[derive(Default)]
struct Tally {
    refused: usize,
    read: usize,
    passed_over: usize,
    different: Vec<String>,
}

fn replay(file: &Path, tally: &mut Tally) {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text
        .lines()
        .map(|line| json::parse_literal(line.as_bytes()).unwrap());
    let head = lines.next().unwrap();

    let field = |name: &str| head.get(name).and_then(Value::as_str).unwrap();
    let Some(kind) = BUILTIN.kind_of(field("apiVersion"), field("kind")) else {
        tally.passed_over += lines.count();
        return;
    };

    let of = BUILTIN.root(kind);
    for case in lines {
        let id = format!(
            "{}:{}",
            file.file_stem().unwrap().display(),
            text_of(case.get("id").unwrap())
        );

        match check(&head, &case, of) {
            None => tally.passed_over += 1,
            Some(Ok(Outcome::Refused)) => tally.refused += 1,
            Some(Ok(Outcome::Read)) => tally.read += 1,
            Some(Err(difference)) => tally.different.push(format!("{id}: {difference}")),
        }
    }
}

enum Outcome {
    Refused,
    Read,
}

/// `None`: the case is not about decoding.
fn check(head: &Value, case: &Value, of: Struct<'_>) -> Option<Result<Outcome, String>> {
    if case.get("method").is_some() || case.get("sub").is_some() || case.get("replace").is_some() {
        return None;
    }

    let answer = case.get("answer")?;
    let message = answer.get("message").map(text_of);
    let refusal = message.as_deref().and_then(|message| {
        let (_, rest) = message.split_once(" cannot be handled as a ")?;
        rest.split_once(": ")
            .map(|(_, refusal)| refusal.to_string())
    });

    if refusal.as_ref().is_some_and(|refusal| {
        BEFORE_THE_TYPE
            .iter()
            .any(|start| refusal.starts_with(start))
    }) {
        return None;
    }

    let code = answer.get("code").and_then(Value::as_int);
    let was_read = matches!(code, Some(200 | 201))
        || answer
            .get("reason")
            .is_some_and(|reason| text_of(reason) == "Invalid");

    let lenient = case
        .get("query")
        .is_some_and(|query| !text_of(query).contains("fieldValidation=Strict"));

    let found = read(&body(head, case), of, lenient);
    match (refusal, found) {
        (Some(expected), Err(found)) if abbreviated(&found) == expected => {
            Some(Ok(Outcome::Refused))
        }
        (Some(expected), found) => Some(Err(format!("{found:?}, not {expected:?}"))),
        (None, Ok(())) if was_read => Some(Ok(Outcome::Read)),
        (None, Err(found)) if was_read => Some(Err(format!("refused: {found}"))),
        (None, _) => None,
    }
}

fn read(text: &str, of: Struct<'_>, lenient: bool) -> Result<(), String> {
    let decoded =
        json::decode(text.as_bytes(), Some(of.node())).map_err(|error| error.to_string())?;
    if lenient || decoded.strict.is_empty() {
        return Ok(());
    }
    Err(format!(
        "strict decoding error: {}",
        decoded.strict.join(", ")
    ))
}

/// A text as the corpus records it: layouts of times are replaced like times, and forty or more of
/// one character are `<<x*300>>`.
fn abbreviated(text: &str) -> String {
    let text = text
        .replace("2006-01-02T15:04:05Z", "<<time>>")
        .replace("2006-01-02T15:04:05.000000Z", "<<microtime>>");

    let mut runs: Vec<(char, usize)> = Vec::new();
    for character in text.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == character => *count += 1,
            _ => runs.push((character, 1)),
        }
    }

    let written = runs.into_iter().map(|(character, count)| match count {
        ..40 => character.to_string().repeat(count),
        _ => format!("<<{character}*{count}>>"),
    });

    written.collect()
}

/// Kinds with cases, so that none is missed because of a misspelt name.
#[test]
fn every_kind_of_the_corpus_is_known() {
    let folder = recorded::path("corpus");
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    for file in recorded::files(&folder, ".jsonl") {
        let text = std::fs::read_to_string(file).unwrap();
        let head = json::parse(text.lines().next().unwrap().as_bytes()).unwrap();
        let field = |name: &str| head.get(name).and_then(Value::as_str).unwrap();
        if BUILTIN
            .kind_of(field("apiVersion"), field("kind"))
            .is_none()
        {
            *unknown.entry(field("kind").to_string()).or_default() += 1;
        }
    }

    assert_eq!(
        unknown.into_keys().collect::<Vec<_>>(),
        ["Widget"],
        "only the custom resource is not built in"
    );
}
