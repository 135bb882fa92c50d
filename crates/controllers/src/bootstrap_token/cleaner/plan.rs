//! When a token is deleted. Pure.

use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;

use crate::bootstrap_token::secret::Expiration;

/// All that was observed of a token.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub uid: Text,
    pub expiration: Expiration,
}

/// What to do with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing, until an event arrives.
    Keep,
    /// Nothing, for this time.
    Wait(Duration),
    /// Delete it.
    Delete,
}

/// Decides what happens to a token.
pub fn plan(expiration: Expiration, now: Timestamp) -> Plan {
    match expiration {
        _ if expiration.is_over(now) => Plan::Delete,
        Expiration::At(at) => Plan::Wait(at.since(now).to_std().unwrap_or_default()),
        Expiration::Never | Expiration::Unreadable => Plan::Keep,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_deleted_when_its_time_has_come() {
        let now = Timestamp::from_unix(1000, 0);
        let at = |seconds| Expiration::At(Timestamp::from_unix(seconds, 0));
        assert_eq!(plan(Expiration::Never, now), Plan::Keep);
        assert_eq!(plan(at(1060), now), Plan::Wait(Duration::from_secs(60)));
        assert_eq!(plan(at(1000), now), Plan::Delete);
        assert_eq!(plan(at(999), now), Plan::Delete);
        assert_eq!(plan(Expiration::Unreadable, now), Plan::Delete);
    }
}
