//! Many seeds on all cores, and one alone.

use std::cell::RefCell;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use super::network::Trace;
use super::{Scenario, server, tell};

/// How many lines of a story that failed are printed.
const PRINTED: usize = 250;

/// A story that did not end well.
#[derive(Debug)]
pub struct Failure {
    /// Whose story it is.
    pub seed: u64,
    /// What did not hold.
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
        write!(out, "CORACLE_SEED={} plays it alone", self.seed)
    }
}

/// Plays as many seeds as `CORACLE_SEEDS` says, or `few`, or the one that `CORACLE_SEED` names.
///
/// # Panics
/// At a story that does not end well.
pub fn survives(scenario: &dyn Scenario, few: u64) {
    let first_failure = match number("CORACLE_SEED") {
        Some(seed) => play(scenario, seed).failure,
        None => finds(scenario, number("CORACLE_SEEDS").unwrap_or(few)),
    };
    if let Some(failure) = first_failure {
        panic!("{failure}");
    }
}

/// Plays the stories of seeds from 0, and answers one that does not end well, if there is one below
/// `bound`.
pub fn finds(scenario: &dyn Scenario, bound: u64) -> Option<Failure> {
    server::make_template();
    let (next, found) = (AtomicU64::new(0), Mutex::new(None::<Failure>));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= bound {
                return;
            }

            if let Some(failure) = play(scenario, seed).failure {
                next.store(bound, Ordering::Relaxed);
                let mut found = found.lock().unwrap();
                if found.as_ref().is_none_or(|other| failure.seed < other.seed) {
                    *found = Some(failure);
                }
            }
        }
    };

    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));

    found.into_inner().unwrap()
}

/// A story that was played to its end.
pub struct Played {
    /// A number that is another one for every other story.
    pub hash: u64,
    /// Everything that happened, line by line.
    pub trace: Vec<String>,
    /// What did not hold, if something did not.
    pub failure: Option<Failure>,
}

/// Plays the story of one seed.
pub fn play(scenario: &dyn Scenario, seed: u64) -> Played {
    server::make_template();
    watch_panics();
    PANICS.set(Some(Vec::new()));
    let trace = Trace::default();
    let told = || runtime().block_on(tell(scenario, seed, trace.clone()));

    // A story that panics is one that failed; what panicked stands among the panics.
    let verdict = panic::catch_unwind(AssertUnwindSafe(told)).unwrap_or(Ok(()));
    let trace = std::mem::take(&mut *trace.lock().unwrap_or_else(PoisonError::into_inner));
    let panics = PANICS.take().unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    trace.hash(&mut hasher);
    let verdict = match panics.first() {
        Some(panicked) => Err(format!("something panicked: {panicked}")),
        None => verdict,
    };

    let failure = verdict.err().map(|complaint| Failure {
        seed,
        complaint,
        trace: trace.clone(),
    });

    Played {
        hash: hasher.finish(),
        trace,
        failure,
    }
}

/// One thread, whose clock moves when nothing else can be done.
pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

thread_local! {
    /// What panicked in the story that this thread plays, if it plays one.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// A task that panics takes only itself with it: this is how it becomes known.
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
    reason = "whoever runs tests has no other way to say it"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
