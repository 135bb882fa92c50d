//! What is said again and again is said once in a while: for log lines that outsiders can cause.

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_base::sync::Mutex;
use tokio::time::Instant;

/// How long a text is not said again.
const SILENCE: Duration = Duration::from_secs(60);
/// How many different texts are said in that time.
const MOST: usize = 16;

/// Which texts were said a short while ago.
#[derive(Debug, Default)]
pub struct Repeats(Mutex<BTreeMap<String, Instant>>);

impl Repeats {
    /// Whether a text is to be said: not within a minute after it was, and no more than so many
    /// different ones.
    pub fn is_news(&self, text: &str) -> bool {
        let now = Instant::now();
        let mut said = self.0.lock();
        said.retain(|_, at| now.duration_since(*at) < SILENCE);
        if said.contains_key(text) || said.len() >= MOST {
            return false;
        }
        said.insert(text.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_text_is_said_once_a_minute_and_not_too_many_of_them() {
        let repeats = Repeats::default();
        assert!(repeats.is_news("a") && !repeats.is_news("a") && repeats.is_news("b"));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!repeats.is_news("a"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(repeats.is_news("a") && repeats.is_news("b"));
        let said = (0..100)
            .filter(|number| repeats.is_news(&format!("text {number}")))
            .count();
        assert_eq!(said, MOST - 2);
    }
}
