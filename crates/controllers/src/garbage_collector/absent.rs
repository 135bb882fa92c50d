//! Owners that are known not to exist: a UID is never reused, so this stays true.

use std::collections::{BTreeMap, HashMap};

use super::identity::Identity;

/// The most owners remembered.
const AT_MOST: usize = 500;

/// The owners that were recently found absent. The key is everything in a reference: another object
/// may have the UID that a wrong reference claims.
#[derive(Default)]
pub struct AbsentOwners {
    used: HashMap<Identity, u64>,
    order: BTreeMap<u64, Identity>,
    clock: u64,
}

impl AbsentOwners {
    /// Notes an absent owner.
    pub fn add(&mut self, identity: &Identity) {
        self.touch(identity);
        while self.used.len() > AT_MOST {
            let Some((_, oldest)) = self.order.pop_first() else {
                return;
            };
            self.used.remove(&oldest);
        }
    }

    /// Whether an owner is known to be absent.
    pub fn has(&mut self, identity: &Identity) -> bool {
        let known = self.used.contains_key(identity);
        if known {
            self.touch(identity);
        }
        known
    }

    fn touch(&mut self, identity: &Identity) {
        self.clock += 1;
        if let Some(last) = self.used.insert(identity.clone(), self.clock) {
            self.order.remove(&last);
        }
        self.order.insert(self.clock, identity.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_are_dropped() {
        let one = |n: usize| Identity {
            uid: n.to_string().into(),
            ..Identity::default()
        };

        let mut absent = AbsentOwners::default();
        for n in 0..AT_MOST {
            absent.add(&one(n));
        }

        assert!(absent.has(&one(0)));

        absent.add(&one(AT_MOST));
        assert!(absent.has(&one(0)), "it was requested");
        assert!(!absent.has(&one(1)));
        assert_eq!((absent.used.len(), absent.order.len()), (AT_MOST, AT_MOST));
    }

    #[test]
    fn the_same_uid_elsewhere_is_another() {
        let here = Identity {
            uid: "u".into(),
            namespace: "a".into(),
            ..Identity::default()
        };

        let mut absent = AbsentOwners::default();
        absent.add(&here);
        assert!(!absent.has(&Identity {
            namespace: "b".into(),
            ..here.clone()
        }));

        assert!(!absent.has(&here.of_cluster()));
    }
}
