//! Allocates subnets of a CIDR, each once. No I/O.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// A CIDR is split into at most two to the power of this many subnets.
const LARGEST_SPLIT: u8 = 16;

/// A CIDR, and which of its subnets are taken.
#[derive(Clone, Debug)]
pub struct Ranges {
    whole: IpNet,
    mask: u8,
    taken: BTreeSet<u32>,
    /// Where the search starts: released subnets are not reused at once.
    next: u32,
}

/// What is wrong with a CIDR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error("invalid node CIDR mask size: /{mask} is larger than the cluster CIDR {whole}")]
    TooLarge { whole: IpNet, mask: u8 },
    #[error(
        "cluster CIDR {whole} has too many subnets of /{mask}: the mask sizes may differ by at most {LARGEST_SPLIT} bits"
    )]
    TooMany { whole: IpNet, mask: u8 },
}

impl Ranges {
    /// Splits `whole` into subnets with this mask size; all are free.
    pub fn new(whole: IpNet, mask: u8) -> Result<Ranges, RangeError> {
        let whole = whole.trunc();
        let Some(bits) = mask
            .checked_sub(whole.prefix_len())
            .filter(|_| mask <= whole.max_prefix_len())
        else {
            return Err(RangeError::TooLarge { whole, mask });
        };

        if bits > LARGEST_SPLIT {
            return Err(RangeError::TooMany { whole, mask });
        }

        Ok(Ranges {
            whole,
            mask,
            taken: BTreeSet::new(),
            next: 0,
        })
    }

    fn count(&self) -> u32 {
        1 << (self.mask - self.whole.prefix_len())
    }

    /// The next free subnet; `None` if all are taken.
    pub fn take(&mut self) -> Option<IpNet> {
        let count = self.count();
        let index = (0..count)
            .map(|step| (self.next + step) % count)
            .find(|index| !self.taken.contains(index))?;
        self.taken.insert(index);
        self.next = (index + 1) % count;
        Some(self.subnet(index))
    }

    /// Takes all subnets that overlap a range; `false` if there are none.
    pub fn occupy(&mut self, range: &IpNet) -> bool {
        self.indexes(range)
            .map(|indexes| self.taken.extend(indexes))
            .is_some()
    }

    /// Releases a subnet.
    pub fn release(&mut self, range: &IpNet) {
        for index in self.indexes(range).into_iter().flatten() {
            self.taken.remove(&index);
        }
    }

    fn subnet(&self, index: u32) -> IpNet {
        match self.whole {
            IpNet::V4(whole) => {
                let first =
                    u32::from(whole.network()) + index.wrapping_shl(u32::from(32 - self.mask));
                Ipv4Net::new(Ipv4Addr::from(first), self.mask)
                    .expect("the mask was checked")
                    .into()
            }
            IpNet::V6(whole) => {
                let first = u128::from(whole.network()) + (u128::from(index) << (128 - self.mask));
                Ipv6Net::new(Ipv6Addr::from(first), self.mask)
                    .expect("the mask was checked")
                    .into()
            }
        }
    }

    /// The indexes of the subnets that a range overlaps.
    fn indexes(&self, range: &IpNet) -> Option<std::ops::RangeInclusive<u32>> {
        let range = range.trunc();
        if range.contains(&self.whole) {
            return Some(0..=self.count() - 1);
        }
        self.whole
            .contains(&range)
            .then(|| self.index(range.network())..=self.index(range.broadcast()))
    }

    fn index(&self, address: IpAddr) -> u32 {
        match (self.whole, address) {
            (IpNet::V4(whole), IpAddr::V4(address)) => {
                let offset = u32::from(address) - u32::from(whole.network());
                offset.checked_shr(u32::from(32 - self.mask)).unwrap_or(0)
            }
            (IpNet::V6(whole), IpAddr::V6(address)) => {
                let offset = u128::from(address) - u128::from(whole.network());
                let index = offset.checked_shr(u32::from(128 - self.mask)).unwrap_or(0);
                u32::try_from(index).unwrap_or(u32::MAX)
            }
            _ => u32::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn subnets_are_allocated_in_order_and_once() {
        let mut ranges = Ranges::new(net("10.244.0.0/22"), 24).unwrap();
        assert!(ranges.occupy(&net("10.244.1.0/24")));
        let taken: Vec<String> = std::iter::from_fn(|| ranges.take())
            .map(|range| range.to_string())
            .collect();
        assert_eq!(taken, ["10.244.0.0/24", "10.244.2.0/24", "10.244.3.0/24"]);
        ranges.release(&net("10.244.2.0/24"));
        assert_eq!(ranges.take(), Some(net("10.244.2.0/24")));
        assert_eq!(ranges.take(), None);
    }

    #[test]
    fn a_released_subnet_is_reused_last() {
        let mut ranges = Ranges::new(net("fd00:1::/62"), 64).unwrap();
        let first = ranges.take().unwrap();
        assert_eq!(first, net("fd00:1::/64"));
        ranges.release(&first);
        assert_eq!(ranges.take(), Some(net("fd00:1:0:1::/64")));
    }

    #[test]
    fn overlapping_ranges_take_a_subnet() {
        let check = |range: &str, occupied: bool, next: Option<&str>| {
            let mut ranges = Ranges::new(net("10.0.0.0/22"), 24).unwrap();
            assert_eq!(ranges.occupy(&net(range)), occupied, "{range}");
            assert_eq!(ranges.take(), next.map(net), "{range}");
        };
        check("10.0.0.128/25", true, Some("10.0.1.0/24"));
        check("10.0.0.0/23", true, Some("10.0.2.0/24"));
        check("10.0.0.0/8", true, None);
        check("192.168.0.0/24", false, Some("10.0.0.0/24"));
        check("fd00::/64", false, Some("10.0.0.0/24"));
    }

    #[test]
    fn invalid_masks_are_rejected() {
        assert!(matches!(
            Ranges::new(net("10.0.0.0/24"), 16),
            Err(RangeError::TooLarge { .. })
        ));

        assert!(matches!(
            Ranges::new(net("10.0.0.0/24"), 33),
            Err(RangeError::TooLarge { .. })
        ));

        assert!(matches!(
            Ranges::new(net("10.0.0.0/8"), 25),
            Err(RangeError::TooMany { .. })
        ));

        assert!(matches!(
            Ranges::new(net("fd00::/40"), 64),
            Err(RangeError::TooMany { .. })
        ));
    }
}
