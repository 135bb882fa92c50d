//! Makes one transaction, in an order that is valid step by step.
//!
//! Sets and chains are created first, so that rules and elements can refer to them; elements are
//! deleted before others are added, because a modified one is both. An unused chain is flushed, and
//! deleted by a later transaction: kernels before 6.2 release references from elements with a
//! delay.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coracle_netlink::nftables::{Batch, Command, Element, Rule, Set, SetKind, Type};

use super::elements::element;
use super::skeleton::skeleton;
use super::{Dialect, NODE_PORT_TYPES, chains, frontend_types};
use crate::claims::Changes;
use crate::rules::{Entrance, Family, Item, RuleSet};

/// Makes transactions, and tracks what is to be deleted.
#[derive(Debug)]
pub struct Writer {
    dialect: Dialect,
    /// Flushed; deleted by the next transaction.
    emptied: BTreeSet<Item>,
}

impl Writer {
    pub fn new(dialect: Dialect) -> Writer {
        Writer {
            dialect,
            emptied: BTreeSet::new(),
        }
    }

    /// Replaces the whole tables.
    pub fn whole(&mut self, rules: RuleSet) -> Batch {
        self.emptied.clear();
        let mut batch = Batch::new();
        for family in &self.dialect.families {
            batch.delete_table(&self.dialect.table(*family));
            skeleton(&mut batch, &self.dialect, *family);
        }

        let changes = Changes {
            gone: RuleSet::new(),
            new: rules,
        };
        self.write_changes(&mut batch, &changes);

        batch
    }

    /// Applies changes to the existing tables.
    pub fn changes(&mut self, changes: &Changes) -> Batch {
        let mut batch = Batch::new();
        self.write_changes(&mut batch, changes);
        batch
    }

    fn write_changes(&mut self, batch: &mut Batch, changes: &Changes) {
        let emptied = std::mem::take(&mut self.emptied);
        let unwanted = |item: &&Item| !changes.new.contains_key(item);

        // Chains before the sets that they refer to.
        for item in emptied.iter().filter(unwanted) {
            match item {
                Item::Chain(chain) => {
                    let name = chains::name(chain);
                    self.push(batch, item.family(), Command::DeleteChain { name });
                }
                set => {
                    if let Some(Set { name, .. }) = set_of(set) {
                        self.push(batch, item.family(), Command::DeleteSet { name });
                    }
                }
            }
        }

        self.create(batch, &changes.new);
        let stays = |item: &Item| changes.new.contains_key(item);
        for item in changes.gone.keys().filter(|item| !stays(item)) {
            if let Item::Chain(chain) = item {
                let name = chains::name(chain);
                self.push(batch, item.family(), Command::FlushChain { name });
            }
        }

        for ((family, set), elements) in self.elements(&changes.gone) {
            self.push(batch, family, Command::DeleteElements { set, elements });
        }
        for ((family, set), elements) in self.elements(&changes.new) {
            self.push(batch, family, Command::AddElements { set, elements });
        }

        let idle = changes.gone.keys().filter(|item| !stays(item));
        self.emptied = idle
            .filter(|item| matches!(item, Item::Chain(_)) || set_of(item).is_some())
            .cloned()
            .collect();
    }

    /// Creates sets and chains, then the rules.
    fn create(&self, batch: &mut Batch, new: &RuleSet) {
        for item in new.keys() {
            let family = item.family();
            if let Item::Chain(chain) = item {
                let name = chains::name(chain);
                let add = Command::AddChain {
                    name: name.clone(),
                    hook: None,
                };
                self.push(batch, family, add);
                self.push(batch, family, Command::FlushChain { name });
            } else if let Some(set) = set_of(item) {
                self.push(batch, family, Command::AddSet(set));
            }
        }

        for (item, body) in new {
            if let Item::Chain(chain) = item {
                for statements in chains::rules(&self.dialect, chain, body) {
                    let add = Command::AddRule {
                        chain: chains::name(chain),
                        rule: Rule::new(statements),
                    };
                    self.push(batch, item.family(), add);
                }
            }
        }
    }

    fn elements(&self, rules: &RuleSet) -> BTreeMap<(Family, String), Vec<Element>> {
        let mut by_set: BTreeMap<(Family, String), Vec<Element>> = BTreeMap::new();
        for (item, body) in rules {
            if let Some((set, element)) = element(item, body) {
                by_set
                    .entry((item.family(), set))
                    .or_default()
                    .push(element);
            }
        }
        by_set
    }

    /// Nothing, if the kernel does not have the family.
    fn push(&self, batch: &mut Batch, family: Family, command: Command) {
        if self.dialect.families.contains(&family) {
            batch.push(&self.dialect.table(family), command);
        }
    }
}

/// The set or map that an item is; none if it is anything else.
fn set_of(item: &Item) -> Option<Set> {
    let address = Type::Address(item.family());
    match item {
        Item::Clients { of, backend } => Some(Set {
            name: chains::clients(of, *backend),
            key: vec![address],
            kind: SetKind::Recent(Duration::from_secs(of.seconds.into())),
        }),
        Item::Endpoints(numbered) => Some(Set {
            name: chains::endpoints(numbered),
            key: match numbered.entrance {
                Entrance::Address => frontend_types(numbered.family),
                Entrance::NodePort => NODE_PORT_TYPES.to_vec(),
            },
            kind: SetKind::Map(vec![address, Type::Port]),
        }),
        _ => None,
    }
}
