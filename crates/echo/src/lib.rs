//! The program of the built-in image, `coracle.local/echo`.
//!
//! The program itself is in `src/bin/coracle-echo`: an HTTP echo server, and small commands
//! (`resolve`, `fetch`, `sleep`, `exit`, `memory`). The build script builds a static executable,
//! the only program of the image.

/// The static executable.
pub const PROGRAM: &[u8] = include_bytes!(env!("CORACLE_ECHO"));
