//! Counts the work that an input causes, instead of timing it, so that a slow machine cannot fail a
//! test.
//!
//! Readers of untrusted input call [`count`] where their work grows with it: per byte visited, per
//! element moved, per comparison. In builds without debug assertions the calls vanish.

#[cfg(debug_assertions)]
thread_local! {
    static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds to the steps that this thread has taken.
#[inline(always)]
pub fn count(steps: usize) {
    #[cfg(debug_assertions)]
    STEPS.set(STEPS.get().wrapping_add(steps as u64));
    #[cfg(not(debug_assertions))]
    let _: usize = steps;
}

/// The steps that `work` took on this thread: always 0 in builds without debug assertions.
pub fn taken_by(work: impl FnOnce()) -> u64 {
    let before = so_far();
    work();
    so_far().wrapping_sub(before)
}

#[cfg(debug_assertions)]
fn so_far() -> u64 {
    STEPS.get()
}

#[cfg(not(debug_assertions))]
fn so_far() -> u64 {
    0
}
