//! Sets of kinds of tokens.

use std::fmt;

use crate::lex::Kind;

/// Kinds of tokens, and perhaps the end of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Set(u64);

impl Set {
    pub(super) const EMPTY: Self = Self(0);
    /// The rule can end here.
    pub(super) const END: Self = Self(1 << 63);

    pub(super) const fn of(kinds: &[Kind]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < kinds.len() {
            bits |= 1 << kinds[index] as u8;
            index += 1;
        }
        Self(bits)
    }

    pub(super) fn one(kind: Kind) -> Self {
        Self::of(&[kind])
    }

    pub(super) fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub(super) fn can_end(self) -> bool {
        self.0 & Self::END.0 != 0
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without_end(self) -> Self {
        Self(self.0 & !Self::END.0)
    }

    pub(super) fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL
            .into_iter()
            .filter(move |kind| self.contains(*kind))
    }
}

/// As messages show what is expected.
impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.kinds().map(Kind::name).collect();
        match names.as_slice() {
            [name] => f.write_str(name),
            names => write!(f, "{{{}}}", names.join(", ")),
        }
    }
}
