//! How long a pod that has failed on a node is left there: the longer, the more have failed before
//! it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use coracle_api::Text;
use coracle_api::time::Timestamp;

/// The first time, in seconds.
const SHORTEST: i64 = 1;
/// Never longer, in seconds.
const LONGEST: i64 = 15 * 60;

/// By node: when one was last replaced, and for how long the next is left.
type Losses = BTreeMap<Text, (Timestamp, i64)>;
/// The losses of each DaemonSet, in each generation.
type All = BTreeMap<(Text, i64), Losses>;

/// What pods have been lost.
#[derive(Default)]
pub(super) struct Patience(Mutex<All>);

impl Patience {
    /// Until when failed pods are left, by node.
    pub(super) fn of(&self, uid: &Text, generation: i64) -> BTreeMap<Text, Timestamp> {
        let all = self.lock();
        let nodes = all.get(&(uid.clone(), generation)).into_iter().flatten();
        nodes
            .map(|(node, (at, seconds))| (node.clone(), at.plus_seconds(*seconds)))
            .collect()
    }

    /// A failed pod of a node is replaced now.
    pub(super) fn lose(&self, uid: &Text, generation: i64, node: &Text, now: Timestamp) {
        let mut all = self.lock();
        let nodes = all.entry((uid.clone(), generation)).or_default();
        // Those that lasted are forgiven.
        nodes.retain(|_, (at, _)| now.since(*at).as_secs() <= 2 * LONGEST);
        let seconds = nodes
            .get(node)
            .map_or(SHORTEST, |(_, seconds)| (seconds * 2).min(LONGEST));
        nodes.insert(node.clone(), (now, seconds));
    }

    /// The DaemonSet is gone.
    pub(super) fn forget(&self, is_gone: impl Fn(&Text) -> bool) {
        self.lock().retain(|(uid, _), _| !is_gone(uid));
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
