//! Which groups, versions and resources of the catalogue a server serves.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use super::{BUILTIN, Group, Resource, groups};

/// The built-in resources that are served. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ServedApis(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// In the order of discovery, with the versions that have resources.
    groups: Vec<Group>,
    resources: Vec<&'static Resource>,
}

impl Default for ServedApis {
    /// What is served unless a configuration says otherwise: stable versions.
    fn default() -> ServedApis {
        static DEFAULT: LazyLock<ServedApis> = LazyLock::new(|| {
            ServedApis::choose(|resource| is_stable(&resource.version) && resource.gate.is_none())
        });
        DEFAULT.clone()
    }
}

impl ServedApis {
    /// Those that `is_served` chooses.
    pub fn choose(is_served: impl Fn(&Resource) -> bool) -> ServedApis {
        let resources: Vec<&'static Resource> = BUILTIN
            .resources()
            .iter()
            .filter(|resource| is_served(resource))
            .collect();

        let has = |group: &str, version: &str| {
            let mut all = resources.iter();
            all.any(|resource| resource.group == group && resource.version == version)
        };
        let groups = groups().iter().filter_map(|group| {
            let versions = group.versions.iter();
            let versions: Vec<_> = versions
                .filter(|version| has(&group.name, version))
                .cloned()
                .collect();
            (!versions.is_empty()).then(|| Group {
                name: group.name.clone(),
                versions: Cow::Owned(versions),
            })
        });

        ServedApis(Arc::new(Inner {
            groups: groups.collect(),
            resources,
        }))
    }

    /// In the order of discovery; in each group the preferred version first.
    pub fn groups(&self) -> &[Group] {
        &self.0.groups
    }

    pub fn has_group(&self, name: &str) -> bool {
        self.0.groups.iter().any(|group| group.name == name)
    }

    pub fn has_version(&self, group: &str, version: &str) -> bool {
        let mut groups = self.0.groups.iter();
        groups.any(|known| known.name == group && known.versions.iter().any(|of| of == version))
    }

    /// In order of group, version and plural name.
    pub fn resources(&self) -> impl Iterator<Item = &'static Resource> {
        self.0.resources.iter().copied()
    }

    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
        let name = [group, version, plural];
        let found = self
            .0
            .resources
            .binary_search_by(|resource| resource.full_name().cmp(&name));
        found.ok().map(|index| self.0.resources[index])
    }

    pub fn serves(&self, resource: &Resource) -> bool {
        let [group, version, plural] = resource.full_name();
        self.resource(group, version, plural).is_some()
    }
}

/// Whether a version is neither alpha nor beta.
pub fn is_stable(version: &str) -> bool {
    version
        .strip_prefix('v')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}
