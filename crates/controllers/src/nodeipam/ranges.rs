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
        let place = (0..count)
            .map(|step| (self.next + step) % count)
            .find(|place| !self.taken.contains(place))?;
        self.taken.insert(place);
        self.next = (place + 1) % count;
        Some(self.part(place))
    }

    /// Takes all subnets that overlap a range; `false` if there are none.
    pub fn occupy(&mut self, range: &IpNet) -> bool {
        self.places(range)
            .map(|places| self.taken.extend(places))
            .is_some()
    }

    /// Releases a subnet.
    pub fn release(&mut self, range: &IpNet) {
        for place in self.places(range).into_iter().flatten() {
            self.taken.remove(&place);
        }
    }

    fn part(&self, place: u32) -> IpNet {
        match self.whole {
            IpNet::V4(whole) => {
                let first =
                    u32::from(whole.network()) + place.wrapping_shl(u32::from(32 - self.mask));
                Ipv4Net::new(Ipv4Addr::from(first), self.mask)
                    .expect("the mask was checked")
                    .into()
            }
            IpNet::V6(whole) => {
                let first = u128::from(whole.network()) + (u128::from(place) << (128 - self.mask));
                Ipv6Net::new(Ipv6Addr::from(first), self.mask)
                    .expect("the mask was checked")
                    .into()
            }
        }
    }

    /// The indexes of the subnets that a range overlaps.
    fn places(&self, range: &IpNet) -> Option<std::ops::RangeInclusive<u32>> {
        let range = range.trunc();
        if range.contains(&self.whole) {
            return Some(0..=self.count() - 1);
        }
        self.whole
            .contains(&range)
            .then(|| self.place(range.network())..=self.place(range.broadcast()))
    }

    fn place(&self, address: IpAddr) -> u32 {
        match (self.whole, address) {
            (IpNet::V4(whole), IpAddr::V4(address)) => {
                let offset = u32::from(address) - u32::from(whole.network());
                offset.checked_shr(u32::from(32 - self.mask)).unwrap_or(0)
            }
            (IpNet::V6(whole), IpAddr::V6(address)) => {
                let offset = u128::from(address) - u128::from(whole.network());
                let place = offset.checked_shr(u32::from(128 - self.mask)).unwrap_or(0);
                u32::try_from(place).unwrap_or(u32::MAX)
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
    fn parts_are_given_away_in_order_and_once() {
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
    fn what_was_given_back_rests_until_the_others_have_been_given() {
        let mut ranges = Ranges::new(net("fd00:1::/62"), 64).unwrap();
        let first = ranges.take().unwrap();
        assert_eq!(first, net("fd00:1::/64"));
        ranges.release(&first);
        assert_eq!(ranges.take(), Some(net("fd00:1:0:1::/64")));
    }

    #[test]
    fn whatever_touches_a_part_takes_it() {
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
    fn masks_that_make_no_sense_are_refused() {
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
