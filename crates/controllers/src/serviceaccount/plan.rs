//! Which accounts a namespace lacks. Pure.

/// Every namespace has this one: pods that name none run as it.
pub const DEFAULT: &str = "default";

/// All that is known of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Whether it is going: nothing is made in it any more.
    pub is_going: bool,
    /// Whether it has the account.
    pub has_default: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// The account is made.
    Create,
}

/// What the namespace needs.
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
