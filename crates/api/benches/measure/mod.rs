//! Measuring code shared by the benchmarks of this crate.
//!
//! The cases of a benchmark take turns, one short round each, many times. The fastest round stands
//! for its case: on a shared machine it is the one that was not interrupted.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A typical running Pod, about 3 KiB of JSON.
pub(crate) const POD: &[u8] = include_bytes!("pod.json");

const ROUNDS: usize = 100;

/// Duration of a round, which repeats its work to reach it: much longer than reading the clock,
/// shorter than a time slice on a busy machine.
const ROUND_TIME: Duration = Duration::from_millis(1);

/// Something to measure.
pub(crate) struct Case<'a> {
    name: String,
    work: Box<dyn FnMut() + 'a>,
    repeats: u32,
    /// Duration of one run of the work, in the fastest round.
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

    /// Determines how many runs fit into a round.
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

    /// Duration of one run, in microseconds.
    pub(crate) fn micros(&self) -> f64 {
        self.fastest.as_secs_f64() * 1e6
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:36}  {:10.2} µs", self.name, self.micros())
    }
}

/// Measures all cases and prints them below a title, each with a remark.
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
