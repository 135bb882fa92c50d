//! The contents of a document: its paths with their operations, and every type that they refer to.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use coracle_api::Value;
use coracle_api::catalog::{Catalog, Node};

use super::named::{Named, Version};
use super::names;
use super::operation::{KindName, Operation};
use super::section::{Section, group_versions};

pub(super) struct Contents<'c> {
    pub(super) paths: BTreeMap<String, Vec<Operation<'c>>>,
    /// By their names in documents.
    types: BTreeMap<String, Named<'c>>,
    /// The groups and versions whose objects the kinds are that every group has.
    everywhere: BTreeSet<(String, String)>,
}

impl<'c> Contents<'c> {
    /// Of one part of the API.
    pub(super) fn of_section(catalog: &'c Catalog, section: &Section) -> Contents<'c> {
        let mut everywhere = BTreeSet::from([(String::new(), "v1".to_string())]);
        if let Section::GroupVersion { group, version } = section {
            everywhere.insert((group.clone(), version.clone()));
        }
        Contents::new(section.operations(catalog), everywhere)
    }

    /// Of the whole.
    pub(super) fn of_all(catalog: &'c Catalog) -> Contents<'c> {
        let sections = Section::all(catalog);
        let operations = sections
            .iter()
            .flat_map(|section| section.operations(catalog));
        Contents::new(operations.collect(), group_versions(catalog))
    }

    fn new(operations: Vec<Operation<'c>>, everywhere: BTreeSet<(String, String)>) -> Contents<'c> {
        let mut contents = Contents {
            paths: BTreeMap::new(),
            types: BTreeMap::new(),
            everywhere,
        };

        for operation in operations {
            for of in operation.types() {
                contents.reach(of.node());
            }
            contents
                .paths
                .entry(operation.path.clone())
                .or_default()
                .push(operation);
        }

        contents
    }

    /// Notes the type at a node, and those below it that are not noted yet.
    fn reach(&mut self, node: Node<'c>) {
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            let Some(named) = Named::at(node) else {
                waiting.extend(node.item());
                continue;
            };

            if let Entry::Vacant(place) = self.types.entry(named.name()) {
                place.insert(named);
                if let Named::Struct(of) = named {
                    waiting.extend(of.iter().map(|field| field.node()));
                }
            }
        }
    }

    pub(super) fn has_definitions(&self) -> bool {
        !self.types.is_empty()
    }

    /// Names and definitions of the types, in order of the names.
    pub(super) fn definitions(&self, version: Version) -> impl Iterator<Item = (&str, Value)> {
        self.types
            .iter()
            .map(move |(name, named)| (name.as_str(), self.definition(*named, version)))
    }

    fn definition(&self, named: Named<'c>, version: Version) -> Value {
        let Named::Struct(of) = named else {
            return named.definition(version, &[]);
        };

        let own = of.page.kinds_of(of.id);
        let kinds: Vec<KindName<'_>> = if names::is_everywhere(of) {
            let everywhere = self.everywhere.iter();
            everywhere
                .map(|(group, version)| KindName::new(group, version, of.short_name()))
                .collect()
        } else {
            own.map(|kind| KindName::new(&kind.group, &kind.version, &kind.name))
                .collect()
        };

        named.definition(version, &kinds)
    }
}
