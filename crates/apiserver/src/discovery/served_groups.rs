//! The groups, versions and resources that are served: the catalogue's own, those that
//! definitions add, and those of other servers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Text;
use coracle_api::catalog::{Group, Resource, ServedApis};
use coracle_kinds::kube_aware;

use crate::aggregation::discovery::Described;
use crate::aggregation::{Aggregation, Remote};
use crate::bootstrap::api_services::priorities;
use crate::cache::{Custom, Definitions};

pub struct ServedGroups<'a> {
    own: &'a ServedApis,
    groups: Vec<Group>,
    /// Those that discovery shows.
    defined: Vec<&'a Custom>,
    remote: Vec<RemoteVersion>,
}

/// A group and version of another server.
struct RemoteVersion {
    remote: Arc<Remote>,
    described: Option<Arc<Described>>,
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

        let mut groups = definitions.served().groups().to_vec();
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
            let versions = group.versions.to_mut();
            versions.sort_by(|one, other| kube_aware(one, other));
        }

        ServedGroups {
            own: definitions.served(),
            groups,
            defined,
            remote: Vec::new(),
        }
    }

    /// With what other servers serve.
    pub(crate) fn aggregated(
        definitions: &'a Definitions,
        aggregation: &Aggregation,
    ) -> ServedGroups<'a> {
        let mut served = ServedGroups::new(definitions);
        let remotes = aggregation.remotes();
        if remotes.is_empty() {
            return served;
        }

        for remote in remotes {
            served.add(&remote);
            let described = aggregation.described(&remote);
            served.remote.push(RemoteVersion { remote, described });
        }
        served.sort();
        served
    }

    fn add(&mut self, remote: &Remote) {
        let mut groups = self.groups.iter_mut();
        match groups.find(|group| group.name == remote.group) {
            Some(group) if group.versions.contains(&remote.version) => {}
            Some(group) => group.versions.to_mut().push(remote.version.clone()),
            None => self.groups.push(Group {
                name: remote.group.clone(),
                versions: Cow::Owned(vec![remote.version.clone()]),
            }),
        }
    }

    /// By the priorities of APIServices.
    fn sort(&mut self) {
        let priorities = |group: &str, version: &str| {
            let remote = self.remote.iter().find(|known| known.is(group, version));
            remote.map_or_else(
                || priorities(group, version),
                |known| known.remote.priorities,
            )
        };

        for group in &mut self.groups {
            let name = &group.name;
            let versions = group.versions.to_mut();
            versions.sort_by(|one, other| {
                let (one_priority, other_priority) =
                    (priorities(name, one).1, priorities(name, other).1);
                other_priority
                    .cmp(&one_priority)
                    .then_with(|| kube_aware(one, other))
            });
        }

        let of_group = |group: &Group| {
            let of_version = |version: &Text| priorities(&group.name, version).0;
            group.versions.iter().map(of_version).max()
        };
        self.groups.sort_by(|one, other| {
            of_group(other)
                .cmp(&of_group(one))
                .then_with(|| one.name.cmp(&other.name))
        });
    }

    /// What another server says it serves there; `None`: this server serves it. The inner one is
    /// absent where the other server is not available.
    pub(super) fn described(&self, group: &str, version: &str) -> Option<Option<&Described>> {
        let known = self.remote.iter().find(|known| known.is(group, version))?;
        Some(known.described.as_deref())
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
        let own = self.own.resources();
        let own = own.filter(move |own| own.group == group && own.version == version);
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

impl RemoteVersion {
    fn is(&self, group: &str, version: &str) -> bool {
        self.remote.group == group && self.remote.version == version
    }
}
