//! The groups, versions and resources that are served: the catalogue's own, and those that
//! definitions add.

use std::borrow::Cow;
use std::collections::BTreeMap;

use coracle_api::Text;
use coracle_api::catalog::{self, Group, Resource};
use coracle_kinds::kube_aware;

use crate::cache::{Custom, Definitions};

pub struct ServedGroups<'a> {
    groups: Vec<Group>,
    /// Those that discovery shows.
    defined: Vec<&'a Custom>,
}

/// A resource of a group and version.
pub(super) struct GroupResource<'a> {
    pub(super) resource: &'a Resource,
    is_terminating: bool,
}

impl GroupResource<'_> {
    /// Its verbs: a resource whose definition is being deleted has no create.
    pub(super) fn verbs(&self) -> Vec<Text> {
        let left = |verb: &&Text| {
            !self.is_terminating || !matches!(verb.as_str(), "create" | "patch" | "update")
        };
        self.resource.verbs.iter().filter(left).cloned().collect()
    }
}

impl<'a> ServedGroups<'a> {
    pub fn new(definitions: &'a Definitions) -> ServedGroups<'a> {
        let shown = definitions
            .iter()
            .filter(|custom| custom.is_established)
            .map(AsRef::as_ref);
        let defined: Vec<&Custom> = shown.collect();

        let mut added: BTreeMap<&str, Vec<Text>> = BTreeMap::new();
        for custom in &defined {
            let served = custom.versions.iter().filter(|version| version.is_served);
            let group = custom.storage_version().resource.group.as_str();
            for version in served {
                let versions = added.entry(group).or_default();
                if !versions.contains(&version.name) {
                    versions.push(version.name.clone());
                }
            }
        }

        let mut groups = catalog::groups().to_vec();
        for (name, mut versions) in added {
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => {
                    versions.retain(|version| !group.versions.contains(version));
                    group.versions.to_mut().extend(versions);
                }
                None => groups.push(Group {
                    name: Text::new(name),
                    versions: Cow::Owned(versions),
                }),
            }
        }

        for group in &mut groups {
            if let Cow::Owned(versions) = &mut group.versions {
                versions.sort_by(|one, other| kube_aware(one, other));
            }
        }

        ServedGroups { groups, defined }
    }

    /// In the order in which discovery lists them; in each the preferred version first.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(super) fn resources(
        &self,
        group: &str,
        version: &str,
    ) -> impl Iterator<Item = GroupResource<'a>> {
        let own = catalog::BUILTIN
            .resources()
            .iter()
            .filter(move |own| own.group == group && own.version == version);
        let own = own.map(|resource| GroupResource {
            resource,
            is_terminating: false,
        });

        let defined = self.defined.iter().filter_map(move |custom| {
            let resource = custom.resource(custom.served_version(version)?);
            let is_terminating = custom.is_terminating;
            (resource.group == group).then_some(GroupResource {
                resource,
                is_terminating,
            })
        });

        own.chain(defined)
    }
}
