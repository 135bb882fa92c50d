//! What the parts of a spec are validated by, besides themselves.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSpec, Volume};

use crate::core::pod::options::Options;
use crate::validate::{items, text};

pub(super) struct Frame<'a> {
    pub(super) spec: &'a PodSpec,
    pub(super) options: &'a Options,
    /// Those with which nothing is wrong, by name.
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

    /// Whether the pod's users are those of its node.
    pub(super) fn host_users(&self) -> bool {
        self.spec.host_users != Some(false)
    }

    pub(super) fn restart_policy(&self) -> &str {
        text(&self.spec.restart_policy)
    }

    /// The operating system that the pod asks for, if it asks for one.
    pub(super) fn os(&self) -> Option<&str> {
        self.spec.os.as_ref().map(|os| os.name.as_str())
    }
}
