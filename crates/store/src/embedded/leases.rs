//! Leases, their keys and their expiry. In memory; grants and ends are in the log.
//!
//! Keeping a lease alive does not touch the disk. After a restart every lease has its full time to
//! live again, as in etcd after a change of leader: clients could not renew it meanwhile.

use crate::{LeaseId, LeaseStatus};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

#[derive(Default)]
pub(crate) struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
    /// When each lease expires, on the engine's clock.
    ends: BTreeSet<(Duration, LeaseId)>,
}

struct Lease {
    granted: Duration,
    ends: Duration,
    keys: BTreeSet<Bytes>,
}

impl Leases {
    /// A lease that is granted again, as in replaying a log, keeps its keys.
    pub(crate) fn grant(&mut self, id: LeaseId, ttl: Duration, now: Duration) {
        let ends = now.saturating_add(ttl);
        let lease = self.leases.entry(id).or_insert(Lease {
            granted: ttl,
            ends,
            keys: BTreeSet::new(),
        });
        self.ends.remove(&(lease.ends, id));
        lease.granted = ttl;
        lease.ends = ends;
        self.ends.insert((ends, id));
    }

    /// Renews a lease. `None`: there is no such lease, or it has expired and its end is being
    /// written.
    pub(crate) fn keep_alive(&mut self, id: LeaseId, now: Duration) -> Option<Duration> {
        let lease = self.leases.get_mut(&id).filter(|lease| lease.ends > now)?;
        self.ends.remove(&(lease.ends, id));
        lease.ends = now.saturating_add(lease.granted);
        self.ends.insert((lease.ends, id));
        Some(lease.granted)
    }

    pub(crate) fn end(&mut self, id: LeaseId) {
        if let Some(lease) = self.leases.remove(&id) {
            self.ends.remove(&(lease.ends, id));
        }
    }

    pub(crate) fn attach(&mut self, id: LeaseId, key: &[u8]) {
        if let Some(lease) = self.leases.get_mut(&id) {
            // A copy, because the caller's bytes may keep a whole request alive.
            lease.keys.insert(Bytes::copy_from_slice(key));
        }
    }

    /// Moves a key from one lease to another.
    pub(crate) fn move_key(&mut self, key: &Bytes, from: Option<LeaseId>, to: Option<LeaseId>) {
        if let Some(lease) = from.and_then(|id| self.leases.get_mut(&id)) {
            lease.keys.remove(key);
        }
        if let Some(id) = to {
            self.attach(id, key);
        }
    }

    pub(crate) fn contains(&self, id: LeaseId) -> bool {
        self.leases.contains_key(&id)
    }

    pub(crate) fn keys(&self, id: LeaseId) -> impl Iterator<Item = &Bytes> {
        self.leases
            .get(&id)
            .into_iter()
            .flat_map(|lease| &lease.keys)
    }

    pub(crate) fn status(&self, id: LeaseId, now: Duration) -> Option<LeaseStatus> {
        let lease = self.leases.get(&id)?;
        let remaining = lease.ends.saturating_sub(now);
        Some(LeaseStatus {
            id,
            granted: lease.granted,
            remaining,
            keys: lease.keys.iter().cloned().collect(),
        })
    }

    pub(crate) fn ids(&self) -> Vec<LeaseId> {
        self.leases.keys().copied().collect()
    }

    pub(crate) fn granted(&self) -> Vec<(LeaseId, Duration)> {
        self.leases
            .iter()
            .map(|(id, lease)| (*id, lease.granted))
            .collect()
    }

    /// When the next lease expires.
    pub(crate) fn next_end(&self) -> Option<Duration> {
        self.ends.first().map(|(ends, _)| *ends)
    }

    /// The expired leases, oldest first.
    pub(crate) fn ended(&self, now: Duration) -> Vec<LeaseId> {
        self.ends
            .iter()
            .take_while(|(ends, _)| *ends <= now)
            .map(|(_, id)| *id)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_expires_unless_it_is_kept_alive() {
        let second = Duration::from_secs;
        let id = LeaseId::from_wire(1).unwrap();
        let mut leases = Leases::default();
        leases.grant(id, second(10), second(0));
        assert_eq!(leases.keep_alive(id, second(6)), Some(second(10)));

        assert_eq!(leases.ended(second(15)), vec![]);
        assert_eq!(leases.next_end(), Some(second(16)));
        assert_eq!(leases.ended(second(16)), vec![id]);
        assert_eq!(
            leases.keep_alive(id, second(16)),
            None,
            "its end may be being written"
        );

        leases.end(id);
        assert_eq!(leases.next_end(), None);
    }
}
