//! Allocates addresses of a range. No I/O: the ledger says which are in use.
//!
//! Allocation is round robin, so that a released address stays unused as long as possible: clients
//! may still send to it. The network address, the gateway (the second) and the IPv4 broadcast
//! address are never allocated.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

#[derive(Clone, Debug)]
pub(crate) struct Pool {
    range: IpNet,
    /// Offsets from the range's first address.
    taken: BTreeSet<u128>,
    last: u128,
}

impl Pool {
    /// An empty pool; none if the range is too small.
    pub(crate) fn new(range: IpNet) -> Option<Self> {
        let host_bits = range.max_prefix_len() - range.prefix_len();
        (host_bits >= 2).then(|| Self {
            range: range.trunc(),
            taken: BTreeSet::new(),
            last: GATEWAY,
        })
    }

    pub(crate) fn range(&self) -> IpNet {
        self.range
    }

    pub(crate) fn gateway(&self) -> IpAddr {
        self.address(GATEWAY)
    }

    /// Allocates the next free address.
    pub(crate) fn take(&mut self) -> Option<IpAddr> {
        let free =
            |from: u128, to: u128| (from..=to).find(|distance| !self.taken.contains(distance));
        let end = self.end();
        let found = free(self.last + 1, end).or_else(|| free(FIRST, self.last.min(end)))?;
        self.taken.insert(found);
        self.last = found;
        Some(self.address(found))
    }

    /// Marks an address as allocated that a pod already has. Addresses outside of the range are
    /// ignored.
    pub(crate) fn reserve(&mut self, address: IpAddr) {
        if let Some(distance) = self.distance(address) {
            self.taken.insert(distance);
            self.last = distance;
        }
    }

    pub(crate) fn release(&mut self, address: IpAddr) {
        if let Some(distance) = self.distance(address) {
            self.taken.remove(&distance);
        }
    }

    /// The offset of the last usable address.
    fn end(&self) -> u128 {
        let host_bits = self.range.max_prefix_len() - self.range.prefix_len();
        let whole = 1_u128
            .checked_shl(host_bits.into())
            .map_or(u128::MAX, |count| count - 1);
        if self.range.addr().is_ipv4() {
            whole - 1
        } else {
            whole
        }
    }

    fn address(&self, distance: u128) -> IpAddr {
        match self.range.addr() {
            IpAddr::V4(first) => {
                let distance =
                    u32::try_from(distance).expect("distances within an IPv4 range have 32 bits");
                Ipv4Addr::from(u32::from(first) + distance).into()
            }
            IpAddr::V6(first) => Ipv6Addr::from(u128::from(first) + distance).into(),
        }
    }

    fn distance(&self, address: IpAddr) -> Option<u128> {
        if !self.range.contains(&address) {
            return None;
        }

        match (self.range.addr(), address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                Some(u128::from(u32::from(address) - u32::from(first)))
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                Some(u128::from(address) - u128::from(first))
            }
            _ => None,
        }
    }
}

const GATEWAY: u128 = 1;
const FIRST: u128 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn network_gateway_and_broadcast_are_never_given_to_pods() {
        let mut pool = pool("10.1.2.0/24");
        let given: Vec<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(given.len(), 253);
        assert_eq!(given.first().unwrap().to_string(), "10.1.2.2");
        assert_eq!(given.last().unwrap().to_string(), "10.1.2.254");
        assert_eq!(pool.gateway().to_string(), "10.1.2.1");
    }

    #[test]
    fn a_released_address_is_reused_last() {
        let mut pool = pool("10.0.0.0/29");
        let first = pool.take().unwrap();
        pool.release(first);
        assert_eq!(pool.take().unwrap().to_string(), "10.0.0.3");
        for _ in 0..3 {
            pool.take().unwrap();
        }
        assert_eq!(pool.take(), Some(first));
        assert_eq!(pool.take(), None);
    }

    #[test]
    fn ranges_of_either_family_have_a_smallest_size() {
        let check = |range: &str, pods: Option<usize>| {
            let found = Pool::new(range.parse().unwrap());
            let count = |mut pool: Pool| std::iter::from_fn(|| pool.take()).take(1000).count();
            assert_eq!(found.map(count), pods, "{range}");
        };

        check("10.0.0.0/32", None);
        check("10.0.0.0/31", None);
        check("10.0.0.0/30", Some(1));
        check("fd00::/127", None);
        check("fd00::/126", Some(2));
        check("fd00::/64", Some(1000));
        check("::/0", Some(1000));
        check("0.0.0.0/0", Some(1000));
    }

    proptest! {
        /// No address is allocated twice or outside of the range, and a free one is always found,
        /// for any sequence of operations and restarts.
        #[test]
        fn no_address_is_given_twice(
            prefix in 24_u8..31,
            operations in prop::collection::vec((0_u8..8, any::<prop::sample::Index>()), 0..400),
        ) {
            let range = IpNet::new("192.168.7.0".parse().unwrap(), prefix).unwrap().trunc();
            let capacity = (1_usize << (32 - prefix)) - 3;
            let mut pool = Pool::new(range).unwrap();
            let mut held: Vec<IpAddr> = Vec::new();

            for (action, which) in operations {
                match action {
                    0..5 => match pool.take() {
                        Some(address) => {
                            prop_assert!(range.contains(&address) && address != pool.gateway());
                            prop_assert!(!held.contains(&address));
                            held.push(address);
                        }
                        None => prop_assert_eq!(held.len(), capacity),
                    },
                    5..7 if !held.is_empty() => pool.release(held.swap_remove(which.index(held.len()))),
                    _ => {
                        pool = Pool::new(range).unwrap();
                        held.iter().for_each(|address| pool.reserve(*address));
                    }
                }
            }
        }
    }

    fn pool(range: &str) -> Pool {
        Pool::new(range.parse().unwrap()).unwrap()
    }
}
