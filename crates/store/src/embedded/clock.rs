//! The clock, passed in: lease expiry and the retention window depend on it.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime},
};

/// The engine's source of time.
pub trait Clock: Send + Sync + 'static {
    /// Monotonic time since a fixed moment. Leases use it.
    fn elapsed(&self) -> Duration;

    /// Time since the Unix epoch. The retention window uses it, because it must hold across
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
            reason = "this is the clock that is passed in"
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
            reason = "this is the clock that is passed in"
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
