//! How many connections a server accepts, from one address and in all.
//!
//! Before a client is authenticated, all that is known of it is its address. A limit for each
//! address keeps one client from taking all connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, MutexGuard};

use coracle_base::sync::Mutex;

/// Counts the connections of a server.
#[derive(Clone)]
pub struct ConnectionLimit {
    counts: Arc<Mutex<Counts>>,
    per_address: usize,
    total: usize,
}

#[derive(Default)]
struct Counts {
    all: usize,
    of: HashMap<IpAddr, usize>,
}

/// Counts one connection until it is dropped.
pub struct ConnectionPermit {
    limit: ConnectionLimit,
    address: IpAddr,
}

impl ConnectionLimit {
    /// At most so many connections from one address, and so many in all.
    pub fn new(per_address: usize, total: usize) -> ConnectionLimit {
        ConnectionLimit {
            counts: Arc::default(),
            per_address,
            total,
        }
    }

    /// `None`: the address, or all together, have too many already.
    pub fn admit(&self, address: IpAddr) -> Option<ConnectionPermit> {
        let mut counts = self.counts();
        let of_one = counts.of.get(&address).copied().unwrap_or_default();
        if of_one >= self.per_address || counts.all >= self.total {
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
        self.counts.lock()
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
    fn each_address_and_all_together_have_a_limit() {
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let limit = ConnectionLimit::new(10, 11);
        let mut open: Vec<ConnectionPermit> = (0..10).map(|_| limit.admit(one).unwrap()).collect();
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
