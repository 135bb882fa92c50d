//! Room for what is nested deeply.
//!
//! Expressions may be nested 250 levels, each of several calls of ours. The stack of a worker is
//! too small for this in a build with checks, so what may be deep runs on a thread with a stack of
//! its own. Its memory is reserved, but used only as deep as the expression goes.

use std::io;

/// Of the thread, in bytes.
const SIZE: usize = 64 << 20;

/// Trees higher than this are deep.
pub const HIGH: usize = 50;

/// Runs `work` with room for the deepest expression; this thread waits.
///
/// # Errors
/// No thread can be started.
///
/// # Panics
/// If `work` does.
pub fn run<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("deep expression".into())
            .stack_size(SIZE)
            .spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
