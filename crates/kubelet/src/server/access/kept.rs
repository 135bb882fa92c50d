//! A cache with expiry.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Entries at most.
const MOST: usize = 1024;

pub(super) struct Kept<Q, A>(Mutex<HashMap<Q, (A, Instant)>>);

impl<Q, A> Default for Kept<Q, A> {
    fn default() -> Kept<Q, A> {
        Kept(Mutex::default())
    }
}

impl<Q: Eq + Hash, A: Clone> Kept<Q, A> {
    pub(super) fn get(&self, question: &Q) -> Option<A> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(question)
            .filter(|(_, until)| Instant::now() < *until)
            .map(|(answer, _)| answer.clone())
    }

    pub(super) fn keep(&self, question: Q, answer: A, time: Duration) {
        let now = Instant::now();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.retain(|_, (_, until)| now < *until);
        }
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(question, (answer, now + time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_expire_and_their_number_is_bounded() {
        let kept = Kept::default();
        kept.keep(1, "a", Duration::from_secs(10));
        assert_eq!(kept.get(&1), Some("a"));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(kept.get(&1), None);
        for question in 0..5000 {
            kept.keep(question, "b", Duration::from_secs(10));
        }
        assert!(kept.0.lock().unwrap().len() <= MOST);
    }
}
