//! How the benchmarks of this crate measure.
//!
//! All cases of a benchmark have a round each in turn, so that whatever else the machine does hits them alike; the
//! median of its rounds stands for a case. On a shared machine the ratios within one run are what counts.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A typical running Pod, about 3 KiB of JSON.
pub(crate) const POD: &[u8] = include_bytes!("pod.json");

const ROUNDS: usize = 15;

/// A round repeats its work until it takes about as long, so that the clock's own steps do not show.
const ROUND_TIME: Duration = Duration::from_millis(8);

/// Something to measure.
pub(crate) struct Case<'a> {
    name: String,
    work: Box<dyn FnMut() + 'a>,
    repeats: u32,
    /// What the work took in each round, once.
    rounds: Vec<Duration>,
}

impl<'a> Case<'a> {
    pub(crate) fn new<T>(name: impl Into<String>, mut work: impl FnMut() -> T + 'a) -> Case<'a> {
        let work = Box::new(move || {
            black_box(work());
        });
        Case { name: name.into(), work, repeats: 1, rounds: Vec::new() }
    }

    /// Finds how often the work fits into a round.
    fn warm_up(&mut self) {
        while self.round() * self.repeats < ROUND_TIME / 2 {
            self.repeats *= 2;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    fn round(&mut self) -> Duration {
        let start = Instant::now();
        for _ in 0..self.repeats {
            (self.work)();
        }
        start.elapsed() / self.repeats
    }

    /// What the work takes, in microseconds.
    pub(crate) fn micros(&self) -> f64 {
        let mut sorted = self.rounds.clone();
        sorted.sort();
        sorted[sorted.len() / 2].as_secs_f64() * 1e6
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:36}  {:10.2} µs", self.name, self.micros())
    }
}

/// Measures all cases and prints them, each with a remark, under a line that says what they are about.
#[expect(clippy::print_stdout, reason = "the result of a benchmark is what it prints")]
pub(crate) fn measure(about: &str, mut cases: Vec<Case<'_>>, remark: impl Fn(usize, &[Case<'_>]) -> String) {
    cases.iter_mut().for_each(Case::warm_up);
    for _ in 0..ROUNDS {
        for case in &mut cases {
            let took = case.round();
            case.rounds.push(took);
        }
    }
    println!("{about}");
    for (place, case) in cases.iter().enumerate() {
        println!("{case}{}", remark(place, &cases));
    }
}
