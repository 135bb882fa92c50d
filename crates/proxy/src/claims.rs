//! Reference-counted rules, and the changes since the last sync.
//!
//! Several Services may own the same item: a chain of a common shape, an endpoint's hairpin rule,
//! or, by mistake, the same external IP. It exists while at least one owns it, with the body of the
//! first owner by key.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coracle_client::ObjectKey;

use crate::rules::{Body, Item, RuleSet};

/// The owner of rules: a Service, or the node with the empty key.
pub type Owner = Arc<ObjectKey>;

/// All rules by owner.
#[derive(Debug, Default)]
pub struct Claims {
    /// Never an empty list; sorted by owner.
    items_by_owner: BTreeMap<Item, Vec<(Owner, Body)>>,
    owned: HashMap<Owner, Vec<Item>>,
    /// The previous bodies of changed items.
    before: BTreeMap<Item, Option<Body>>,
}

/// The changes for the kernel. A modified item is in both.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    pub gone: RuleSet,
    pub new: RuleSet,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.new.is_empty()
    }
}

impl Claims {
    /// Replaces all rules of an owner.
    pub fn replace(&mut self, owner: &Owner, wanted: RuleSet) {
        let items: Vec<Item> = wanted.keys().cloned().collect();

        for item in self.owned.remove(owner).unwrap_or_default() {
            if !wanted.contains_key(&item) {
                self.release(item, owner);
            }
        }

        for (item, body) in wanted {
            self.hold(item, owner, body);
        }

        if !items.is_empty() {
            self.owned.insert(owner.clone(), items);
        }
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        for (item, before) in std::mem::take(&mut self.before) {
            let now = self.items_by_owner.get(&item).map(|owners| &owners[0].1);
            if before.as_ref() == now {
                continue;
            }

            if let Some(now) = now {
                changes.new.insert(item.clone(), now.clone());
            }
            if let Some(before) = before {
                changes.gone.insert(item, before);
            }
        }

        changes
    }

    /// All current rules.
    pub fn whole(&self) -> RuleSet {
        self.items_by_owner
            .iter()
            .map(|(item, owners)| (item.clone(), owners[0].1.clone()))
            .collect()
    }

    fn hold(&mut self, item: Item, owner: &Owner, body: Body) {
        let owners = self.items_by_owner.entry(item.clone()).or_default();
        let first = owners.first().map(|(_, body)| body.clone());
        match owners.binary_search_by(|(other, _)| other.cmp(owner)) {
            Ok(at) if owners[at].1 == body => return,
            Ok(at) => owners[at].1 = body,
            Err(at) => owners.insert(at, (owner.clone(), body)),
        }
        self.before.entry(item).or_insert(first);
    }

    fn release(&mut self, item: Item, owner: &Owner) {
        let Some(owners) = self.items_by_owner.get_mut(&item) else {
            return;
        };
        let first = owners.first().map(|(_, body)| body.clone());
        if let Ok(at) = owners.binary_search_by(|(other, _)| other.cmp(owner)) {
            owners.remove(at);
        }
        if owners.is_empty() {
            self.items_by_owner.remove(&item);
        }
        self.before.entry(item).or_insert(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Refusal;

    #[test]
    fn the_first_owner_decides_and_the_last_one_removes() {
        let (one, two) = (owner("one"), owner("two"));
        let mut claims = Claims::default();
        claims.replace(&two, rules(Refusal::Drop));
        assert_eq!(claims.take_changes().new, rules(Refusal::Drop));

        claims.replace(&one, rules(Refusal::Reject));
        let changes = claims.take_changes();
        assert_eq!(
            (changes.gone, changes.new),
            (rules(Refusal::Drop), rules(Refusal::Reject))
        );

        claims.replace(&two, RuleSet::new());
        assert!(claims.take_changes().is_empty());

        claims.replace(&one, RuleSet::new());
        assert_eq!(claims.take_changes().gone, rules(Refusal::Reject));
        assert!(claims.whole().is_empty());
    }

    #[test]
    fn a_reverted_change_is_no_change() {
        let one = owner("one");
        let mut claims = Claims::default();
        claims.replace(&one, rules(Refusal::Drop));
        claims.take_changes();
        claims.replace(&one, RuleSet::new());
        claims.replace(&one, rules(Refusal::Drop));
        assert!(claims.take_changes().is_empty());
    }

    fn owner(name: &str) -> Owner {
        Arc::new(ObjectKey::new("shop", name))
    }

    fn rules(refusal: Refusal) -> RuleSet {
        let item = Item::ClusterIp("10.96.0.1".parse().unwrap());
        RuleSet::from([(item, Body::Refuse(refusal))])
    }
}
