//! The missing accounts of a namespace. Pure.

/// The account of pods that name none.
pub const DEFAULT: &str = "default";

/// All that was observed of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Whether it is being deleted: nothing can be created in it.
    pub is_going: bool,
    /// Whether it has the account.
    pub has_default: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Create the account.
    Create,
}

/// Decides what the namespace needs.
pub fn plan(observed: &Observed) -> Plan {
    if observed.is_going || observed.has_default {
        Plan::Keep
    } else {
        Plan::Create
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_made_where_it_is_missing_and_the_namespace_stays() {
        let check = |is_going, has_default, expected| {
            assert_eq!(
                plan(&Observed {
                    is_going,
                    has_default
                }),
                expected,
                "{is_going} {has_default}"
            );
        };

        check(false, false, Plan::Create);
        check(false, true, Plan::Keep);
        check(true, false, Plan::Keep);
        check(true, true, Plan::Keep);
    }
}
