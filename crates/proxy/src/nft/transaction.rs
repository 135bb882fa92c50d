//! Renders one transaction, in an order that is valid step by step.
//!
//! Sets and chains are created first, so that rules and elements can refer to them; elements are
//! deleted before others are added, because a modified one is both. An unused chain is flushed, and
//! deleted by a later transaction: kernels before 6.2 release references from elements with a
//! delay.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::elements::{Element, element};
use super::skeleton::skeleton;
use super::{Dialect, address, chains, word};
use crate::claims::Changes;
use crate::rules::{Entrance, Family, Item, RuleSet};

/// Renders transactions, and tracks what is to be deleted.
#[derive(Debug)]
pub struct Writer {
    dialect: Dialect,
    /// Flushed; deleted by the next transaction.
    emptied: BTreeSet<Item>,
}

/// Elements per command.
const BATCH: usize = 500;

impl Writer {
    pub fn new(dialect: Dialect) -> Writer {
        Writer {
            dialect,
            emptied: BTreeSet::new(),
        }
    }

    /// Replaces the whole tables.
    pub fn whole(&mut self, rules: RuleSet) -> String {
        self.emptied.clear();
        let mut script = self.clean();
        for family in &self.dialect.families {
            script.push_str(&skeleton(&self.dialect, *family));
        }
        script
            + &self.changes(&Changes {
                gone: RuleSet::new(),
                new: rules,
            })
    }

    /// Deletes the tables, if they exist.
    pub fn clean(&self) -> String {
        let table = &self.dialect.table;
        let clean = |family: &Family| {
            let family = word(*family);
            // Added first, so that the deletion does not fail if it does not exist.
            format!("add table {family} {table}\ndelete table {family} {table}\n")
        };
        self.dialect.families.iter().map(clean).collect()
    }

    /// Applies changes to the existing tables.
    pub fn changes(&mut self, changes: &Changes) -> String {
        let mut script = String::new();
        let emptied = std::mem::take(&mut self.emptied);
        let unwanted = |item: &&Item| !changes.new.contains_key(item);

        // Chains before the sets that they refer to.
        emptied
            .iter()
            .filter(unwanted)
            .for_each(|item| self.write(&mut script, "delete", item, ""));

        self.make(&mut script, &changes.new);
        let stays = |item: &Item| changes.new.contains_key(item);
        for (item, _) in changes.gone.iter().filter(|(item, _)| !stays(item)) {
            if matches!(item, Item::Chain(_)) {
                self.write(&mut script, "flush", item, "");
            }
        }

        self.elements(&mut script, "delete", &changes.gone);
        self.elements(&mut script, "add", &changes.new);

        let idle = changes.gone.keys().filter(|item| !stays(item));
        self.emptied = idle
            .filter(|item| {
                matches!(
                    item,
                    Item::Chain(_) | Item::Endpoints(_) | Item::Clients { .. }
                )
            })
            .cloned()
            .collect();

        script
    }

    /// Creates sets and chains, then the rules.
    fn make(&self, script: &mut String, new: &RuleSet) {
        for item in new.keys() {
            match item {
                Item::Clients { .. } | Item::Endpoints(_) => {
                    self.write(script, "add", item, &form(item))
                }
                Item::Chain(_) => {
                    self.write(script, "add", item, "");
                    self.write(script, "flush", item, "");
                }
                _ => {}
            }
        }

        for (item, body) in new {
            if let Item::Chain(chain) = item
                && self.has_family(item.family())
            {
                let (family, table, name) = (
                    word(item.family()),
                    &self.dialect.table,
                    chains::name(chain),
                );

                for rule in chains::rules(&self.dialect, chain, body) {
                    line(
                        script,
                        format_args!("add rule {family} {table} {name} {rule}"),
                    );
                }
            }
        }
    }

    fn write(&self, script: &mut String, verb: &str, item: &Item, rest: &str) {
        let (kind, name) = match item {
            Item::Chain(chain) => ("chain", chains::name(chain)),
            Item::Endpoints(numbered) => ("map", chains::endpoints(numbered)),
            Item::Clients { of, backend } => ("set", chains::clients(of, *backend)),
            _ => return,
        };

        if self.has_family(item.family()) {
            let (family, table) = (word(item.family()), &self.dialect.table);
            line(
                script,
                format_args!("{verb} {kind} {family} {table} {name}{rest}"),
            );
        }
    }

    fn elements(&self, script: &mut String, verb: &str, rules: &RuleSet) {
        let mut by_set: BTreeMap<(Family, String), Vec<String>> = BTreeMap::new();
        for (item, body) in rules
            .iter()
            .filter(|(item, _)| self.has_family(item.family()))
        {
            if let Some(Element { set, key, value }) = element(item, body) {
                let text = value.map_or(key.clone(), |value| format!("{key} : {value}"));
                by_set.entry((item.family(), set)).or_default().push(text);
            }
        }

        let table = &self.dialect.table;
        for ((family, set), elements) in by_set {
            for some in elements.chunks(BATCH) {
                let (family, some) = (word(family), some.join(", "));
                line(
                    script,
                    format_args!("{verb} element {family} {table} {set} {{ {some} }}"),
                );
            }
        }
    }

    fn has_family(&self, family: Family) -> bool {
        self.dialect.families.contains(&family)
    }
}

/// The declaration of a set or map.
fn form(item: &Item) -> String {
    let address = address(item.family());
    match item {
        Item::Clients { of, .. } => {
            let seconds = of.seconds;
            format!(" {{ type {address}; flags dynamic,timeout; timeout {seconds}s; }}")
        }
        Item::Endpoints(numbered) => {
            let key = match numbered.entrance {
                Entrance::Address => format!("{address} . inet_proto . inet_service"),
                Entrance::NodePort => "inet_proto . inet_service".to_owned(),
            };
            format!(" {{ type {key} : {address} . inet_service; }}")
        }
        _ => String::new(),
    }
}

fn line(script: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(script, "{text}").expect("writing to a string works");
}
