//! Trying again: how long to wait, and the loop around a write that somebody else overtook.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::Error;
use crate::world::World;

/// The first pause.
const FIRST: Duration = Duration::from_millis(800);
/// No pause is longer than this before chance lengthens it.
const LONGEST: Duration = Duration::from_secs(30);
/// After this long without a failure the next one counts as the first.
const FORGIVEN_AFTER: Duration = Duration::from_secs(120);

/// Pauses between attempts to reach a server: each up to twice as long as the one before, and never
/// the same for two.
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

    /// How long to wait now.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, so it is no iterator"
    )]
    pub fn next(&mut self) -> Duration {
        let now = Instant::now();
        if self
            .last
            .is_some_and(|last| now.duration_since(last) > FORGIVEN_AFTER)
        {
            self.pause = FIRST;
        }
        let pause = self.pause.mul_f64(1.0 + self.world.fraction());
        self.pause = (self.pause * 2).min(LONGEST);
        self.last = Some(now + pause);
        pause
    }
}

/// How often a write is tried that others overtake.
const TRIES: u32 = 5;
/// The pause between two tries, but for chance.
const BETWEEN: Duration = Duration::from_millis(10);

/// Does `attempt` until nobody has overtaken it: each time it reads what there is, changes it and
/// writes it back.
///
/// # Errors
/// What `attempt` fails with, and the last conflict when there have been too many.
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
