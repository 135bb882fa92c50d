//! Ranges of sizes and costs. Nothing overflows: what would, is [`u64::MAX`].

/// From `min` to `max`, both included: of a size, or of a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub min: u64,
    pub max: u64,
}

impl Range {
    pub const ZERO: Self = Self::exactly(0);
    /// A size of which nothing is known.
    pub const UNKNOWN: Self = Self {
        min: 0,
        max: u64::MAX,
    };
    /// What a first union replaces.
    pub(super) const NOTHING: Self = Self {
        min: u64::MAX,
        max: 0,
    };

    #[must_use]
    pub const fn exactly(n: u64) -> Self {
        Self { min: n, max: n }
    }

    #[must_use]
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    #[must_use]
    pub(super) fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Times a factor, rounded up.
    #[must_use]
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self {
            min: scale(self.min, factor),
            max: scale(self.max, factor),
        }
    }

    /// The smallest range that has both.
    #[must_use]
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// `n` × `factor`, rounded up, as 64-bit floats give it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "upstream's costs are rounded as 64-bit floats round; the cast of a float saturates"
)]
fn scale(n: u64, factor: f64) -> u64 {
    (n as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_saturate_instead_of_overflowing() {
        assert_eq!(
            Range::UNKNOWN.plus(Range::exactly(1)),
            Range {
                min: 1,
                max: u64::MAX
            }
        );
        assert_eq!(Range::UNKNOWN.times(Range::exactly(3)), Range::UNKNOWN);
        assert_eq!(Range::UNKNOWN.scaled(0.1).max, 1_844_674_407_370_955_264);
        assert_eq!(Range::UNKNOWN.scaled(1.0), Range::UNKNOWN);
        assert_eq!(Range::UNKNOWN.scaled(2.0), Range::UNKNOWN);
        assert_eq!(Range::exactly(11).scaled(0.1), Range::exactly(2));
    }
}
