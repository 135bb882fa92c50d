//! Generated and broken expressions, asked of both. `scripts/cel-differential.sh` runs a million.

use std::fmt::Write as _;

use fastrand::Rng;

use crate::answer::Answer;
use crate::generate::{Generator, question};
use crate::mutate::mutate;
use crate::oracle::Oracle;
use crate::ours;
use crate::question::Question;

/// How many in `make test`; `CORACLE_CEL_EXPRESSIONS` for more.
const FEW: usize = 3_000;
/// How many are asked at once.
const BATCH: usize = 500;
/// How many differences are shown.
const SHOWN: usize = 40;

#[test]
fn generated_expressions_have_upstreams_results_and_costs() {
    let count = number("CORACLE_CEL_EXPRESSIONS").unwrap_or(FEW as u64);
    let seed = number("CORACLE_SEED").unwrap_or(24);
    let mut rng = Rng::with_seed(seed);
    let mut oracle = Oracle::start();
    let mut found = Differences::default();
    let mut asked = 0;

    while asked < count && found.count < SHOWN {
        let questions: Vec<_> = (0..BATCH).map(|_| next(&mut rng)).collect();
        found.compare(&mut oracle, &questions);
        asked += BATCH as u64;
    }

    assert_eq!(
        found.count, 0,
        "CORACLE_SEED={seed}, {asked} asked:\n{}\n{:?}",
        found.text, found.outcomes
    );
    // A generator whose expressions do not compile tests nothing.
    assert!(
        found.outcomes.values * 4 > asked,
        "too few have values: {:?}",
        found.outcomes
    );
}

fn next(rng: &mut Rng) -> Question {
    let text = Generator::new(rng).expression();
    let text = if rng.u8(0..5) == 0 {
        mutate(rng, &text)
    } else {
        text
    };
    question(text)
}

fn number(variable: &str) -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long a test runs is set for it alone"
    )]
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect("a number"))
}

/// What was different, and how much was compared.
#[derive(Default)]
pub(crate) struct Differences {
    pub(crate) text: String,
    pub(crate) count: usize,
    pub(crate) outcomes: Outcomes,
}

/// What upstream answered.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) values: u64,
    pub(crate) failures: u64,
    pub(crate) refused: u64,
    /// Upstream panicked, or the name of a type was declared as a variable.
    pub(crate) unanswered: u64,
    /// Answers that were not the same twice.
    pub(crate) random: u64,
}

impl Differences {
    pub(crate) fn compare(&mut self, oracle: &mut Oracle, questions: &[Question]) {
        let answers = oracle.ask_all(questions);
        for (question, upstream) in questions.iter().zip(answers) {
            self.outcomes.add(&upstream);
            // Its estimator panics for some optionals of unknown type.
            if !upstream.bad.is_empty() {
                self.outcomes.unanswered += 1;
                continue;
            }
            let ours = ours::answer(question);
            let difference = ours.difference(&upstream);
            if difference.is_empty() {
                continue;
            }
            if is_random(oracle, question, &ours, &upstream) {
                self.outcomes.random += 1;
                continue;
            }
            self.count += 1;
            if self.count <= SHOWN {
                writeln!(self.text, "{}\n{difference}", question.expr).expect("a string takes all");
            }
        }
    }
}

impl Outcomes {
    fn add(&mut self, answer: &Answer) {
        let counter = if !answer.errors.is_empty() {
            &mut self.refused
        } else if answer.value.is_empty() {
            &mut self.failures
        } else {
            &mut self.values
        };
        *counter += 1;
    }
}

/// Whether upstream answers differently each time, because it goes through a map in random order,
/// and ours is one of its answers.
pub(crate) fn is_random(
    oracle: &mut Oracle,
    question: &Question,
    ours: &Answer,
    upstream: &Answer,
) -> bool {
    let again = vec![question.clone(); 24];
    let answers = oracle.ask_all(&again);
    answers.iter().any(|answer| answer != upstream)
        && answers
            .iter()
            .any(|answer| answer.difference(ours).is_empty())
}
