//! What quotas count, and how much of it an object is: the same for who admits objects and for who
//! sums them up.

pub mod amounts;
mod scope;
mod usage;

pub use amounts::Amounts;

use crate::time::Timestamp;
use crate::{Value, resource_name};
use usage::BY_CLASS;

/// Of what the quotas of pods speak, besides huge pages and what is not Kubernetes' own.
const OF_PODS: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// Of what the quotas of claims speak; also of one class of storage at a time.
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// How objects are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By what their containers want.
    Pods,
    /// By the ports and balancers that they take.
    Services,
    /// By the storage that they want.
    Claims,
    /// By the piece.
    Pieces,
}

/// Counts the objects of one resource.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'a> {
    group: &'a str,
    plural: &'a str,
}

impl<'a> Counter<'a> {
    /// Counts the objects of a resource.
    pub fn of(group: &'a str, plural: &'a str) -> Counter<'a> {
        Counter { group, plural }
    }

    /// How they are counted.
    pub fn kind(self) -> Kind {
        match (self.group, self.plural) {
            ("", "pods") => Kind::Pods,
            ("", "services") => Kind::Services,
            ("", "persistentvolumeclaims") => Kind::Claims,
            _ => Kind::Pieces,
        }
    }

    /// Whether they are never counted: events, and what is not kept.
    pub fn is_ignored(self) -> bool {
        matches!(
            (self.group, self.plural),
            ("" | "events.k8s.io", "events") | ("", "bindings")
        )
    }

    /// Whether they count as a quota's resource.
    pub fn counts(self, name: &str) -> bool {
        match self.kind() {
            Kind::Pods => {
                let foreign = !resource_name::is_native(name) && name.starts_with("requests.");
                OF_PODS.contains(&name)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || foreign
            }
            Kind::Services => {
                matches!(
                    name,
                    "count/services" | "services" | "services.nodeports" | "services.loadbalancers"
                )
            }
            Kind::Claims => {
                let of_class = name
                    .split_once(BY_CLASS)
                    .is_some_and(|(_, rest)| OF_CLAIMS.contains(&rest));
                name == "count/persistentvolumeclaims" || OF_CLAIMS.contains(&name) || of_class
            }
            Kind::Pieces => name == self.piece() || (self.has_bare_name() && name == self.plural),
        }
    }

    /// What an object does not say though a quota that counts these names wants to know.
    pub fn missing(self, counted: &[&str], object: &Value) -> Option<String> {
        (self.kind() == Kind::Pods)
            .then(|| usage::missing(counted, object))
            .flatten()
    }

    /// How much an object needs, by the names that quotas have for it.
    pub fn usage(self, object: &Value, now: Timestamp) -> Amounts {
        let mut amounts = Amounts::from([(self.piece(), usage::number(1))]);
        match self.kind() {
            Kind::Pods => amounts.extend(usage::of_pod(object, now)),
            Kind::Services => amounts.extend(usage::of_service(object)),
            Kind::Claims => amounts.extend(usage::of_claim(object)),
            Kind::Pieces if self.has_bare_name() => {
                amounts.insert(self.plural.to_string(), usage::number(1));
            }
            Kind::Pieces => {}
        }
        amounts
    }

    /// Whether an object is in all scopes of a quota.
    pub fn is_in_scope(self, quota: &Value, object: &Value) -> bool {
        scope::holds(quota, object, self.kind())
    }

    /// What pieces are counted by: `count/deployments.apps`.
    fn piece(self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    /// Pieces that were counted by their bare name first.
    fn has_bare_name(self) -> bool {
        let bare = [
            "configmaps",
            "resourcequotas",
            "replicationcontrollers",
            "secrets",
        ];
        self.group.is_empty() && bare.contains(&self.plural)
    }
}
