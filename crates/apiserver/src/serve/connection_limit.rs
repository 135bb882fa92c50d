//! How many connections may be open, of one address and in all.
//!
//! Before a client has said who it is, all that is known of it is its address; and a connection
//! that has only begun a request costs as much as the head of a request may be long. All together
//! leave half of the process's descriptors to its other parts: the store, and the node that may run
//! beside it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, getrlimit};

/// Connections of one address. A client library has one or two, each with many requests.
const MOST: usize = 512;

#[derive(Clone)]
pub(super) struct ConnectionLimit {
    counts: Arc<Mutex<Counts>>,
    most_in_all: usize,
}

#[derive(Default)]
struct Counts {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// One connection, as long as it is open.
pub(super) struct ConnectionPermit {
    limit: ConnectionLimit,
    address: IpAddr,
}

impl ConnectionLimit {
    pub(super) fn new() -> ConnectionLimit {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        ConnectionLimit::at_most(usize::try_from(descriptors / 2).unwrap_or(usize::MAX))
    }

    fn at_most(most_in_all: usize) -> ConnectionLimit {
        ConnectionLimit {
            counts: Arc::default(),
            most_in_all,
        }
    }

    /// None: the address, or all together, have too many already.
    pub(super) fn admit(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let mut counts = self.counts();
        let of_one = counts.of.get(&address).copied().unwrap_or_default();
        if of_one >= MOST || counts.all >= self.most_in_all {
            return None;
        }

        counts.all += 1;
        counts.of.insert(address, of_one + 1);

        Some(ConnectionPermit {
            limit: self.clone(),
            address,
        })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut counts = self.limit.counts();
        counts.all -= 1;
        match counts.of.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.of.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_connections_and_others_theirs() {
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let limit = ConnectionLimit::at_most(MOST + 1);
        let mut open: Vec<ConnectionPermit> =
            (0..MOST).map(|_| limit.admit(one).unwrap()).collect();
        assert!(limit.admit(one).is_none());

        let last = limit.admit(other);
        assert!(last.is_some());
        assert!(limit.admit(other).is_none());

        drop(last);
        open.pop();
        open.extend(limit.admit(one));
        assert!(limit.admit(one).is_none());

        drop(open);
        assert!(limit.counts().of.is_empty() && limit.counts().all == 0);
    }
}
