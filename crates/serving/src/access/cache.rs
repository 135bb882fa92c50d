//! A cache with expiry.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use coracle_base::sync::Mutex;
use tokio::time::Instant;

/// Entries at most.
const MAX_ENTRIES: usize = 1024;

pub(super) struct Cache<K, V>(Mutex<HashMap<K, (V, Instant)>>);

impl<K, V> Default for Cache<K, V> {
    fn default() -> Cache<K, V> {
        Cache(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<V> {
        let entries = self.0.lock();
        entries
            .get(key)
            .filter(|(_, until)| Instant::now() < *until)
            .map(|(value, _)| value.clone())
    }

    pub(super) fn insert(&self, key: K, value: V, time: Duration) {
        let now = Instant::now();
        let mut entries = self.0.lock();
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, (_, until)| now < *until);
        }
        if entries.len() >= MAX_ENTRIES {
            entries.clear();
        }
        entries.insert(key, (value, now + time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_expire_and_their_number_is_bounded() {
        let cache = Cache::default();
        cache.insert(1, "a", Duration::from_secs(10));
        assert_eq!(cache.get(&1), Some("a"));
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(cache.get(&1), None);
        for key in 0..5000 {
            cache.insert(key, "b", Duration::from_secs(10));
        }
        assert!(cache.0.lock().len() <= MAX_ENTRIES);
    }
}
