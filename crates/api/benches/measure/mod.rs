//! How the benchmarks of this crate measure.
//!
//! All cases of a benchmark have a round each in turn, many times. Rounds are short, and the
//! fastest stands for its case: on a shared machine it is the one in which nothing else had the
//! core.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A typical running Pod, about 3 KiB of JSON.
pub(crate) const POD: &[u8] = include_bytes!("pod.json");

const ROUNDS: usize = 100;

/// A round repeats its work until it takes about as long: much longer than reading the clock, and
/// shorter than what a busy machine lets a process have at once.
const ROUND_TIME: Duration = Duration::from_millis(1);

/// Something to measure.
pub(crate) struct Case<'a> {
    name: String,
    work: Box<dyn FnMut() + 'a>,
    repeats: u32,
    /// What the work took once, in the fastest round.
    fastest: Duration,
}

impl<'a> Case<'a> {
    pub(crate) fn new<T>(name: impl Into<String>, mut work: impl FnMut() -> T + 'a) -> Case<'a> {
        let work = Box::new(move || {
            black_box(work());
        });
        Case {
            name: name.into(),
            work,
            repeats: 1,
            fastest: Duration::MAX,
        }
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
        self.fastest.as_secs_f64() * 1e6
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:36}  {:10.2} µs", self.name, self.micros())
    }
}

/// Measures all cases and prints them, each with a remark, under a line that says what they are
/// about.
#[expect(
    clippy::print_stdout,
    reason = "the result of a benchmark is what it prints"
)]
pub(crate) fn measure(
    about: &str,
    mut cases: Vec<Case<'_>>,
    remark: impl Fn(usize, &[Case<'_>]) -> String,
) {
    cases.iter_mut().for_each(Case::warm_up);
    for _ in 0..ROUNDS {
        for case in &mut cases {
            case.fastest = case.round().min(case.fastest);
        }
    }
    println!("{about}");
    for (place, case) in cases.iter().enumerate() {
        println!("{case}{}", remark(place, &cases));
    }
}
