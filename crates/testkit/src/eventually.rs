//! Waits for a condition.

use std::time::Duration;

/// Maximum wait, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// Polling interval.
const PAUSE: Duration = Duration::from_millis(10);

/// Polls until `found` returns something.
///
/// # Panics
/// If it does not within a reasonable time.
pub async fn eventually<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = tokio::time::Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "timed out waiting until {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
