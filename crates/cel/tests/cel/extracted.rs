//! Every text in the tests of cel-go, k8s.io/apiserver, k8s.io/apiextensions-apiserver and
//! k8s.io/dynamic-resource-allocation, expression or not.
//!
//! What upstream's tests declare is in their code, so here every name that is not declared becomes
//! a variable of type `dyn` without a value: names are resolved and types checked as far as can be,
//! and the evaluation goes as far as the first variable that matters.

use std::fs;

use serde::Deserialize;

use crate::differential::Differences;
use crate::oracle::{Oracle, tool};
use crate::question::Question;

#[derive(Deserialize)]
struct Extracted {
    expr: String,
}

#[test]
fn texts_of_upstreams_tests_have_upstreams_results() {
    let text = fs::read_to_string(tool("cel-extracted.jsonl")).expect("a text");
    let mut oracle = Oracle::start();
    let mut questions: Vec<Question> = text
        .lines()
        .map(|line| serde_json::from_str::<Extracted>(line).expect("an extracted text"))
        .map(|extracted| Question::of(extracted.expr))
        .collect();
    assert!(questions.len() > 10_000, "only {} texts", questions.len());

    let mut found = Differences::default();
    while !questions.is_empty() {
        found.compare(&mut oracle, &questions);
        questions = with_missing_variables(&mut oracle, questions);
    }

    assert_eq!(found.count, 0, "{}\n{:?}", found.text, found.outcomes);
}

/// Those that name what is not declared, with it declared.
fn with_missing_variables(oracle: &mut Oracle, questions: Vec<Question>) -> Vec<Question> {
    let answers = oracle.ask_all(&questions);
    questions
        .into_iter()
        .zip(answers)
        .filter_map(|(mut question, answer)| {
            let before = question.vars.len();
            for name in answer.errors.split("undeclared reference to '").skip(1) {
                let name = name.split('\'').next().unwrap_or_default();
                // A function is not declared by declaring a variable.
                if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                    question.vars.insert(name.into(), "dyn".into());
                }
            }
            (question.vars.len() > before).then_some(question)
        })
        .collect()
}
