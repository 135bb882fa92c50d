//! The program of the built-in image, `coracle.local/echo`.
//!
//! The program itself is in `src/bin/coracle-echo`: an HTTP server that tells what it sees, and
//! small deeds by name (`resolve`, `fetch`, `sleep`, `exit`, `memory`). The build script makes a
//! static executable of it, which is all that the image holds.

/// The static executable.
pub const PROGRAM: &[u8] = include_bytes!(env!("CORACLE_ECHO"));
