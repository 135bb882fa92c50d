//! The address ranges of a cluster: one for pods or Services, or one of each IP version.

use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// One address range, or one of each IP version, the primary first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Ranges(Vec<IpNet>);

/// What is wrong with a list of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RangesError {
    #[error("at least one range is needed")]
    None,
    #[error("at most two ranges, one of each IP version")]
    Versions,
    #[error("invalid range")]
    Text,
}

impl Ranges {
    pub(crate) fn of(ranges: &[IpNet]) -> Result<Ranges, RangesError> {
        let ranges: Vec<IpNet> = ranges.iter().map(IpNet::trunc).collect();
        match ranges.as_slice() {
            [] => Err(RangesError::None),
            [_] => Ok(Ranges(ranges)),
            [one, other] if is_four(one) != is_four(other) => Ok(Ranges(ranges)),
            _ => Err(RangesError::Versions),
        }
    }

    pub(crate) fn all(&self) -> &[IpNet] {
        &self.0
    }

    /// The one whose version comes first in the cluster.
    pub(crate) fn primary(&self) -> &IpNet {
        &self.0[0]
    }

    pub(crate) fn has_six(&self) -> bool {
        self.0.iter().any(|range| !is_four(range))
    }

    /// Whether they are of these IP versions only.
    pub(super) fn is_within(&self, others: &Ranges) -> bool {
        let has = |version: bool| others.0.iter().any(|other| is_four(other) == version);
        self.0.iter().all(|range| has(is_four(range)))
    }
}

pub(super) fn is_four(range: &IpNet) -> bool {
    range.addr().is_ipv4()
}

pub(super) fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

impl fmt::Display for Ranges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        out.write_str(&texts.join(","))
    }
}

impl FromStr for Ranges {
    type Err = RangesError;

    fn from_str(text: &str) -> Result<Ranges, RangesError> {
        let ranges: Result<Vec<IpNet>, _> = text.split(',').map(str::parse).collect();
        Ranges::of(&ranges.map_err(|_| RangesError::Text)?)
    }
}

impl TryFrom<String> for Ranges {
    type Error = RangesError;

    fn try_from(text: String) -> Result<Ranges, RangesError> {
        text.parse()
    }
}

impl From<Ranges> for String {
    fn from(ranges: Ranges) -> String {
        ranges.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_range_or_one_of_each_version() {
        let check = |text: &str, expected: Result<&str, RangesError>| {
            let found = text.parse::<Ranges>().map(|ranges| ranges.to_string());
            assert_eq!(found, expected.map(str::to_owned), "{text}");
        };

        check("10.1.2.3/16", Ok("10.1.0.0/16"));
        check("fd00::/48,10.1.0.0/16", Ok("fd00::/48,10.1.0.0/16"));
        check("10.1.0.0/16,10.2.0.0/16", Err(RangesError::Versions));
        check(
            "10.1.0.0/16,fd00::/48,fd01::/48",
            Err(RangesError::Versions),
        );
        check("", Err(RangesError::Text));
        assert_eq!(Ranges::of(&[]), Err(RangesError::None));
    }
}
