//! `--runtime-config`: which built-in APIs are served.
//!
//! Stable versions are served by default, alpha and beta versions are not. Settings apply from the
//! general to the particular, whatever their order: `api/all`, `api/ga`, `api/beta` and
//! `api/alpha`, then group and version, then single resources. A resource that belongs to a feature
//! is served only while its gate is on. The texts of errors are upstream's.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::catalog::{Resource, ServedApis, groups, is_stable};
use coracle_api::gates;
use coracle_api::go_text::Quoted;

/// What was configured, by name.
#[derive(Clone, Debug, Default)]
pub struct RuntimeConfig(pub BTreeMap<String, String>);

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeConfigError {
    #[error("invalid runtime-config with only {ALL}=false")]
    OnlyAllOff,
    #[error("runtime-config invalid key {0}")]
    Key(String),
    #[error("unknown api groups {0}")]
    Groups(String),
    #[error("group version {0} that has not been registered")]
    Version(String),
    #[error("invalid value {0}={1}")]
    StageValue(&'static str, String),
    #[error("invalid value of {name}: {value}, err: strconv.ParseBool: parsing {}: invalid syntax", Quoted(.value))]
    Value { name: String, value: String },
    #[error("invalid key {name}: group/version/resource and resource is always lowercase plural, not {}", Quoted(.plural))]
    Plural { name: String, plural: String },
}

const ALL: &str = "api/all";

/// Whether a version is of a stage.
type IsOfStage = fn(&str) -> bool;

/// Settings for versions of a stage, in the order in which they apply.
const STAGES: [(&str, IsOfStage); 4] = [
    (ALL, |_| true),
    ("api/ga", is_stable),
    ("api/beta", |version| is_stage(version, "beta")),
    ("api/alpha", |version| is_stage(version, "alpha")),
];

/// Groups and versions that upstream knows and no longer serves: settings for them do nothing. An
/// empty list is a group without versions of its own here.
const NO_LONGER_SERVED: [(&str, &[&str]); 16] = [
    ("admission.k8s.io", &["v1", "v1beta1"]),
    ("apps", &["v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1beta1", "v1alpha1"]),
    ("authorization.k8s.io", &["v1beta1"]),
    ("batch", &["v1beta1"]),
    ("discovery.k8s.io", &["v1beta1"]),
    ("events.k8s.io", &["v1beta1"]),
    ("extensions", &["v1beta1"]),
    (
        "flowcontrol.apiserver.k8s.io",
        &["v1beta1", "v1beta2", "v1beta3"],
    ),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
    ("node.k8s.io", &["v1beta1", "v1alpha1"]),
    ("policy", &["v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1beta1", "v1alpha1"]),
    ("scheduling.k8s.io", &["v1beta1"]),
    ("storage.k8s.io", &["v1alpha1"]),
    ("apiextensions.k8s.io", &["v1beta1"]),
];

/// Groups of the other servers of upstream's chain: their versions are not checked, and settings
/// for them do nothing.
const ALWAYS_SERVED: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// A setting for a version or a resource of it.
struct Setting<'a> {
    group: &'a str,
    version: &'a str,
    /// `None`: all of the version.
    plural: Option<&'a str>,
    is_on: bool,
}

impl RuntimeConfig {
    /// What is served.
    ///
    /// # Errors
    /// A setting is malformed, or names what does not exist.
    pub fn served(&self) -> Result<ServedApis, RuntimeConfigError> {
        let settings = self.settings()?;
        let stages = self.stages()?;
        if self.0.is_empty() {
            return Ok(ServedApis::default());
        }

        Ok(ServedApis::choose(|resource| {
            let has_gate = resource.gate.as_deref().is_none_or(gates::is_on);
            has_gate && is_served(resource, &stages, &settings)
        }))
    }

    /// Settings for stages that are given, in the order in which they apply.
    fn stages(&self) -> Result<Vec<(IsOfStage, bool)>, RuntimeConfigError> {
        let mut stages = Vec::new();
        for (name, matches) in STAGES {
            match self.0.get(name).map(String::as_str) {
                None => {}
                Some("true") => stages.push((matches, true)),
                Some("false") => stages.push((matches, false)),
                Some(other) => {
                    return Err(RuntimeConfigError::StageValue(name, other.to_owned()));
                }
            }
        }
        Ok(stages)
    }

    fn settings(&self) -> Result<Vec<Setting<'_>>, RuntimeConfigError> {
        if self.0.len() == 1 && self.0.get(ALL).is_some_and(|value| value == "false") {
            return Err(RuntimeConfigError::OnlyAllOff);
        }

        let named = || {
            let mut pairs = self.0.iter();
            std::iter::from_fn(move || {
                pairs.find(|(name, _)| STAGES.iter().all(|(stage, _)| stage != name))
            })
        };
        let mut unknown = BTreeSet::new();
        for (name, _) in named() {
            let (group, version, _) = parts(name)?;
            if !is_known_group(group) {
                unknown.insert(format!("{group}/{version}"));
            }
        }
        if !unknown.is_empty() {
            let unknown: Vec<String> = unknown.into_iter().collect();
            return Err(RuntimeConfigError::Groups(unknown.join(",")));
        }

        named()
            .map(|(name, value)| {
                let (group, version, plural) = parts(name)?;
                if !is_known_version(group, version) {
                    let name = coracle_api::catalog::api_version(group, version);
                    return Err(RuntimeConfigError::Version(name.to_string()));
                }
                let is_on = boolean(name, value)?;
                if let Some(plural) = plural.filter(|plural| **plural != plural.to_lowercase()) {
                    return Err(RuntimeConfigError::Plural {
                        name: name.clone(),
                        plural: plural.to_owned(),
                    });
                }

                Ok(Setting {
                    group,
                    version,
                    plural,
                    is_on,
                })
            })
            .collect()
    }
}

/// The last setting that applies decides.
fn is_served(resource: &Resource, stages: &[(IsOfStage, bool)], settings: &[Setting<'_>]) -> bool {
    if ALWAYS_SERVED.contains(&resource.group.as_str()) {
        return true;
    }

    let of_version = |setting: &&Setting<'_>| {
        setting.group == resource.group && setting.version == resource.version
    };
    let mut own = settings.iter().filter(of_version);
    let (mut of_resource, mut of_all) = (None, None);
    for setting in own.by_ref() {
        match setting.plural {
            None => of_all = Some(setting.is_on),
            Some(plural) if plural == resource.plural => of_resource = Some(setting.is_on),
            Some(_) => {}
        }
    }

    let by_stage = || {
        let mut matching = stages.iter().rev();
        matching
            .find(|(matches, _)| matches(&resource.version))
            .map(|(_, is_on)| *is_on)
    };
    of_resource
        .or(of_all)
        .or_else(by_stage)
        .unwrap_or_else(|| is_stable(&resource.version))
}

/// Group, version and resource of a setting's name. The core group is written `v1`, or `api/v1`.
fn parts(name: &str) -> Result<(&str, &str, Option<&str>), RuntimeConfigError> {
    let wrong = || RuntimeConfigError::Key(name.to_owned());
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [group, version] => Ok((group, version, None)),
        [group, version, plural] => Ok((group, version, Some(plural))),
        _ => Err(wrong()),
    }
}

fn is_known_group(group: &str) -> bool {
    let mut own = groups().iter();
    own.any(|known| known.name == group)
        || NO_LONGER_SERVED.iter().any(|(known, _)| *known == group)
}

fn is_known_version(group: &str, version: &str) -> bool {
    let mut own = groups().iter();
    let mut old = NO_LONGER_SERVED.iter();
    ALWAYS_SERVED.contains(&group)
        || own.any(|known| known.name == group && known.versions.iter().any(|of| of == version))
        || old.any(|(known, versions)| *known == group && versions.contains(&version))
}

/// A truth value as upstream reads it; empty is true.
fn boolean(name: &str, value: &str) -> Result<bool, RuntimeConfigError> {
    match value {
        "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(RuntimeConfigError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
        }),
    }
}

/// Whether a version is of a stage: `v1beta2`.
fn is_stage(version: &str, stage: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = version
        .strip_prefix('v')
        .and_then(|rest| rest.split_once(stage));
    parts.is_some_and(|(major, minor)| digits(major) && digits(minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> RuntimeConfig {
        let pairs = text.split(',').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        };
        RuntimeConfig(pairs.map(pair).collect())
    }

    #[test]
    fn settings_apply_from_the_general_to_the_particular() {
        let check = |text: &str, served: &[&str], not: &[&str]| {
            let apis = config(text).served().unwrap();
            let has = |name: &str| {
                let parts: Vec<&str> = name.split('/').collect();
                apis.resource(parts[0], parts[1], parts[2]).is_some()
            };
            served
                .iter()
                .for_each(|name| assert!(has(name), "{text}: {name}"));
            not.iter()
                .for_each(|name| assert!(!has(name), "{text}: {name}"));
        };

        let (deployments, addresses) = (
            "apps/v1/deployments",
            "networking.k8s.io/v1beta1/ipaddresses",
        );
        let candidates = "coordination.k8s.io/v1alpha2/leasecandidates";
        check("", &[deployments], &[addresses, candidates]);
        check("api/all=true", &[deployments, addresses, candidates], &[]);
        check("api/beta=true", &[deployments, addresses], &[candidates]);
        check("api/alpha=true", &[deployments, candidates], &[addresses]);
        check(
            "api/all=true,networking.k8s.io/v1beta1=false",
            &[deployments, candidates],
            &[addresses],
        );
        check(
            "apps/v1/deployments=false",
            &["apps/v1/daemonsets"],
            &[deployments],
        );
        check(
            "api/ga=false,apps/v1/deployments,api/beta=true",
            &[
                deployments,
                addresses,
                "apiregistration.k8s.io/v1/apiservices",
            ],
            &["apps/v1/daemonsets"],
        );
        check(
            "networking.k8s.io/v1beta1/ipaddresses=true,networking.k8s.io/v1beta1=false",
            &[addresses],
            &["networking.k8s.io/v1beta1/servicecidrs"],
        );
        // Its gate is off.
        check(
            "storagemigration.k8s.io/v1beta1=true,batch/v1beta1=true",
            &[deployments],
            &["storagemigration.k8s.io/v1beta1/storageversionmigrations"],
        );
    }

    #[test]
    fn mistakes_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = config(text).served().unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        };

        check(
            "api/all=false",
            "invalid runtime-config with only api/all=false",
        );
        check("foo.example/v1=true", "unknown api groups foo.example/v1");
        check("apps=true", "runtime-config invalid key apps");
        check("a/b/c/d=true", "runtime-config invalid key a/b/c/d");
        check(
            "apps/v7=true",
            "group version apps/v7 that has not been registered",
        );
        check("api/all=yes", "invalid value api/all=yes");
        check("api/beta", "invalid value api/beta=");
        check(
            "apps/v1=yes",
            "invalid value of apps/v1: yes, err: strconv.ParseBool: parsing \"yes\": invalid syntax",
        );
        check(
            "apps/v1/Deployments=false",
            "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not \"Deployments\"",
        );
    }

    #[test]
    fn a_version_that_is_served_is_not_listed_as_old() {
        for (group, versions) in NO_LONGER_SERVED {
            let own = groups().iter().filter(|known| known.name == group);
            for known in own.flat_map(|known| known.versions.iter()) {
                assert!(!versions.contains(&known.as_str()), "{group}/{known}");
            }
        }
    }
}
