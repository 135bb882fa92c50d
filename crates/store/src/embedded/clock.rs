//! Time, handed in: lease expiry and the retention window depend on nothing else.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime},
};

/// What the engine knows of time.
pub trait Clock: Send + Sync + 'static {
    /// Time since some fixed moment; never goes back. Leases run on it.
    fn elapsed(&self) -> Duration;

    /// Time since the Unix epoch. The retention window runs on it, because it must hold across
    /// restarts.
    fn unix(&self) -> Duration;
}

/// The machine's clocks.
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the clock that is handed in"
        )]
        let start = Instant::now();
        SystemClock { start }
    }
}

impl Clock for SystemClock {
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix(&self) -> Duration {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the clock that is handed in"
        )]
        let now = SystemTime::now();
        now.duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default()
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemClock")
    }
}
