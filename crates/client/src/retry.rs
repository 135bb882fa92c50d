//! Retries: backoff, and the loop around a conflicting write.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::world::World;

/// The first delay.
const FIRST: Duration = Duration::from_millis(800);
/// The maximum delay before jitter.
const LONGEST: Duration = Duration::from_secs(30);
/// After this long without a failure the backoff is reset.
const RESET_AFTER: Duration = Duration::from_secs(120);

/// Backoff with jitter between attempts to reach a server: each delay is up to twice as long as the
/// one before.
pub struct Backoff {
    world: World,
    pause: Duration,
    last: Option<Instant>,
}

impl Backoff {
    /// No failure yet.
    pub fn new(world: World) -> Backoff {
        Backoff {
            world,
            pause: FIRST,
            last: None,
        }
    }

    /// The delay before the next attempt.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, so it is not an iterator"
    )]
    pub fn next(&mut self) -> Duration {
        let now = Instant::now();
        if self
            .last
            .is_some_and(|last| now.duration_since(last) > RESET_AFTER)
        {
            self.pause = FIRST;
        }
        let pause = self.pause.mul_f64(1.0 + self.world.fraction());
        self.pause = (self.pause * 2).min(LONGEST);
        self.last = Some(now + pause);
        pause
    }
}

/// How often a conflicting write is tried.
const TRIES: u32 = 5;
/// The delay between two tries, before jitter.
const BETWEEN: Duration = Duration::from_millis(10);

/// Runs `attempt`, which reads an object, changes it and writes it back, until there is no
/// conflict.
///
/// # Errors
/// The error of `attempt`, and the last conflict when there were too many.
pub async fn on_conflict<T, F: Future<Output = Result<T, Error>>>(
    world: World,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error> {
    for _ in 1..TRIES {
        match attempt().await {
            Err(error) if error.is_conflict() => {}
            done => return done,
        }
        tokio::time::sleep(BETWEEN.mul_f64(1.0 + 0.1 * world.fraction())).await;
    }
    attempt().await
}
