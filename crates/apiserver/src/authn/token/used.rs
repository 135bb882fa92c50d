//! Secrets whose tokens were used today for the first time.

use std::collections::BTreeSet;

use coracle_base::sync::Mutex;
use tokio::sync::Notify;

/// The label of a secret that says when its token was last used.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";

/// The keys of secrets, from authentication to the task that labels them.
#[derive(Default)]
pub struct UsedSecrets {
    keys: Mutex<BTreeSet<String>>,
    noted: Notify,
}

impl UsedSecrets {
    pub(super) fn note(&self, key: String) {
        let mut keys = self.keys.lock();
        if keys.insert(key) {
            self.noted.notify_one();
        }
    }

    /// Waits for some, and takes them.
    pub async fn take(&self) -> BTreeSet<String> {
        loop {
            {
                let mut keys = self.keys.lock();
                if !keys.is_empty() {
                    return std::mem::take(&mut keys);
                }
            }
            self.noted.notified().await;
        }
    }
}
