//! The context in which the parts of a spec are validated.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSpec, Volume};

use crate::core::pod::options::Options;
use crate::validate::{items, text};

pub(super) struct Frame<'a> {
    pub(super) spec: &'a PodSpec,
    pub(super) options: &'a Options,
    /// The valid ones, by name.
    pub(super) volumes: BTreeMap<&'a str, &'a Volume>,
    /// The names of `resourceClaims`.
    pub(super) claims: BTreeSet<&'a str>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(
        spec: &'a PodSpec,
        options: &'a Options,
        volumes: BTreeMap<&'a str, &'a Volume>,
    ) -> Frame<'a> {
        let names = items(&spec.resource_claims)
            .iter()
            .map(|claim| claim.name.as_str());
        Frame {
            spec,
            options,
            volumes,
            claims: names.filter(|name| !name.is_empty()).collect(),
        }
    }

    /// Whether the pod uses the node's user namespace.
    pub(super) fn host_users(&self) -> bool {
        self.spec.host_users != Some(false)
    }

    pub(super) fn restart_policy(&self) -> &str {
        text(&self.spec.restart_policy)
    }

    /// The operating system that the pod is for, if it names one.
    pub(super) fn os(&self) -> Option<&str> {
        self.spec.os.as_ref().map(|os| os.name.as_str())
    }
}
