//! Runs many seeds on all cores, or a single one.

use std::cell::RefCell;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use coracle_base::sync::Mutex;
use tokio::runtime::{Builder, Runtime};

use super::network::Trace;
use super::{Scenario, server, simulate};

/// Number of trace lines printed for a failure.
const PRINTED: usize = 250;

/// A failed run.
#[derive(Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The violated condition.
    pub complaint: String,
    trace: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.trace.len().saturating_sub(PRINTED);
        if skipped > 0 {
            writeln!(out, "({skipped} lines before these)")?;
        }
        for line in &self.trace[skipped..] {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "seed {}: {}", self.seed, self.complaint)?;
        write!(out, "CORACLE_SEED={} runs it alone", self.seed)
    }
}

/// Runs `CORACLE_SEEDS` seeds, or `few`, or the single seed `CORACLE_SEED`.
///
/// # Panics
/// If a run fails.
pub fn check_seeds(scenario: &dyn Scenario, few: u64) {
    let first_failure = match number("CORACLE_SEED") {
        Some(seed) => run_seed(scenario, seed).failure,
        None => find_failure(scenario, number("CORACLE_SEEDS").unwrap_or(few)),
    };
    if let Some(failure) = first_failure {
        panic!("{failure}");
    }
}

/// Runs the seeds from 0 below `bound`; returns the first failure, if any.
pub fn find_failure(scenario: &dyn Scenario, bound: u64) -> Option<Failure> {
    server::make_template();
    let (next, found) = (AtomicU64::new(0), Mutex::new(None::<Failure>));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= bound {
                return;
            }

            if let Some(failure) = run_seed(scenario, seed).failure {
                next.store(bound, Ordering::Relaxed);
                let mut found = found.lock();
                if found.as_ref().is_none_or(|other| failure.seed < other.seed) {
                    *found = Some(failure);
                }
            }
        }
    };

    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));

    found.into_inner()
}

/// A completed run.
pub struct SeedRun {
    /// Hash of the trace.
    pub hash: u64,
    /// The trace, line by line.
    pub trace: Vec<String>,
    /// The failure, if any.
    pub failure: Option<Failure>,
}

/// Runs one seed.
pub fn run_seed(scenario: &dyn Scenario, seed: u64) -> SeedRun {
    server::make_template();
    watch_panics();
    PANICS.set(Some(Vec::new()));
    let trace = Trace::default();
    let run = || runtime().block_on(simulate(scenario, seed, trace.clone()));

    // A panic is a failure; its message is in `PANICS`.
    let verdict = panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or(Ok(()));
    let trace = std::mem::take(&mut *trace.lock());
    let panics = PANICS.take().unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    trace.hash(&mut hasher);
    let verdict = match panics.first() {
        Some(panicked) => Err(format!("panic: {panicked}")),
        None => verdict,
    };

    let failure = verdict.err().map(|complaint| Failure {
        seed,
        complaint,
        trace: trace.clone(),
    });

    SeedRun {
        hash: hasher.finish(),
        trace,
        failure,
    }
}

/// A single-threaded runtime with a paused clock.
pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

thread_local! {
    /// Panics of the run of this thread, if there is one.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Records panics of tasks, which tokio would only report to their join handles.
fn watch_panics() {
    static ONCE: Once = Once::new();

    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let noted = PANICS.with_borrow_mut(|panics| {
                panics
                    .as_mut()
                    .map(|panics| panics.push(info.to_string()))
                    .is_some()
            });

            if !noted {
                before(info);
            }
        }));
    });
}

#[expect(
    clippy::disallowed_methods,
    reason = "seeds are set by environment variables"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
