//! What quotas count, and the usage of an object: shared by admission and the quota controller.

pub mod amounts;
mod scope;
mod usage;

pub use amounts::Amounts;

use crate::time::Timestamp;
use crate::{Value, resource_name};
use usage::BY_CLASS;

/// Resources of pod quotas, besides huge pages and extended resources.
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

/// Resources of claim quotas; also per storage class.
const OF_CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// How objects are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By the requests and limits of their containers.
    Pods,
    /// By their node ports and load balancers.
    Services,
    /// By their storage requests.
    Claims,
    /// By number.
    Objects,
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
            _ => Kind::Objects,
        }
    }

    /// Whether they are never counted: events, and what is not stored.
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
            Kind::Objects => {
                name == self.object_count_name() || (self.has_bare_name() && name == self.plural)
            }
        }
    }

    /// What an object does not specify although a quota on these resources requires it.
    pub fn missing(self, counted: &[&str], object: &Value) -> Option<String> {
        (self.kind() == Kind::Pods)
            .then(|| usage::missing(counted, object))
            .flatten()
    }

    /// The usage of an object, by quota resource names.
    pub fn usage(self, object: &Value, now: Timestamp) -> Amounts {
        let mut amounts = Amounts::from([(self.object_count_name(), usage::number(1))]);
        match self.kind() {
            Kind::Pods => amounts.extend(usage::of_pod(object, now)),
            Kind::Services => amounts.extend(usage::of_service(object)),
            Kind::Claims => amounts.extend(usage::of_claim(object)),
            Kind::Objects if self.has_bare_name() => {
                amounts.insert(self.plural.to_string(), usage::number(1));
            }
            Kind::Objects => {}
        }
        amounts
    }

    /// Whether an object is in all scopes of a quota.
    pub fn is_in_scope(self, quota: &Value, object: &Value) -> bool {
        scope::holds(quota, object, self.kind())
    }

    /// The name under which objects are counted: `count/deployments.apps`.
    fn object_count_name(self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    /// Whether the objects are also counted under their plain name.
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
