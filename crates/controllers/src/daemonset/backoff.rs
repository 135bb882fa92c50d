//! How long a failed pod is left on a node: the longer, the more have failed there before.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;

/// The first delay, in seconds.
const SHORTEST: i64 = 1;
/// The longest delay, in seconds.
const LONGEST: i64 = 15 * 60;

/// By node: when a failed pod was last replaced, and the delay for the next.
type Losses = BTreeMap<Text, (Timestamp, i64)>;
/// The failures of each DaemonSet, by UID and generation.
type All = BTreeMap<(Text, i64), Losses>;

/// Replaced failed pods.
#[derive(Default)]
pub(super) struct FailureBackoff(Mutex<All>);

impl FailureBackoff {
    /// Until when failed pods are left, by node.
    pub(super) fn of(&self, uid: &Text, generation: i64) -> BTreeMap<Text, Timestamp> {
        let all = self.lock();
        let nodes = all.get(&(uid.clone(), generation)).into_iter().flatten();
        nodes
            .map(|(node, (at, seconds))| (node.clone(), at.plus_seconds(*seconds)))
            .collect()
    }

    /// Notes that a failed pod of a node is replaced now.
    pub(super) fn record_failure(&self, uid: &Text, generation: i64, node: &Text, now: Timestamp) {
        let mut all = self.lock();
        let nodes = all.entry((uid.clone(), generation)).or_default();
        // Old failures are dropped.
        nodes.retain(|_, (at, _)| now.since(*at).as_secs() <= 2 * LONGEST);
        let seconds = nodes
            .get(node)
            .map_or(SHORTEST, |(_, seconds)| (seconds * 2).min(LONGEST));
        nodes.insert(node.clone(), (now, seconds));
    }

    /// Drops deleted DaemonSets.
    pub(super) fn forget(&self, is_gone: impl Fn(&Text) -> bool) {
        self.lock().retain(|(uid, _), _| !is_gone(uid));
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock()
    }
}
