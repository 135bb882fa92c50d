//! The wall clock: CRI counts in nanoseconds since 1970.

use rustix::time::{ClockId, clock_gettime};

pub(crate) fn now() -> i64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
