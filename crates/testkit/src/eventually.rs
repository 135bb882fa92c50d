//! Waiting for what must come about.

use std::time::Duration;

/// How long tests wait at most: on a machine that is busy with much else. Whoever waits so long has
/// waited in vain.
const PATIENCE: Duration = Duration::from_secs(180);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks until `found` finds something.
///
/// # Panics
/// If it does not within a reasonable time.
pub async fn eventually<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = tokio::time::Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "it did not come about: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
