//! Defaulting of built-in kinds, as upstream does when it decodes an object.
//!
//! [`apply`] works on an object in the version it was written in, before conversion. Defaults that
//! depend on nothing else are in the catalogue and are set by the kind's compiled schema
//! (`crate::schema`); defaults that depend on other fields are a small function per kind here, one
//! file per group. The functions run first, as upstream's outer defaults do before its inner ones:
//! what they create is then completed from the catalogue.
//!
//! Absent, null and zero are distinguished as by upstream's structs (`crate::value`'s presence): a
//! pointer to zero is set. Defaulting is idempotent. Allocation, admission and the strategies'
//! resets are not here.

mod apiextensions;
mod apps;
pub(crate) mod autoscaling;
mod batch;
mod core;
mod networking;
mod rbac;
mod resource;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::catalog::{BUILTIN, Kind};
use crate::schema::{self, Schema, TooMuchAdded};
use crate::time::Timestamp;
use crate::{Map, Value};

/// Sets the defaults of an object of a built-in kind. Objects of other kinds have a schema of their
/// own.
///
/// # Errors
/// The defaults would add too much.
pub fn apply(object: &mut Value, kind: &Kind, now: Timestamp) -> Result<(), TooMuchAdded> {
    let Some(defaults) = of_kind(kind) else {
        return Ok(());
    };
    let Some(fields) = object.as_object_mut() else {
        return Ok(());
    };
    if let Some(conditional) = defaults.conditional {
        conditional(fields, now);
    }
    defaults.schema.default(object)
}

/// Defaults that depend on other fields, or on the time.
type Conditional = fn(&mut Map, Timestamp);

struct Defaults {
    conditional: Option<Conditional>,
    schema: Schema,
}

/// The defaults of a kind, compiled on first use.
fn of_kind(kind: &Kind) -> Option<&'static Defaults> {
    static COMPILED: OnceLock<Vec<OnceLock<Defaults>>> = OnceLock::new();
    let kinds = BUILTIN.kinds();
    let index = BUILTIN.kind_index(&kind.group, &kind.version, &kind.name)?;
    let compiled = COMPILED.get_or_init(|| kinds.iter().map(|_| OnceLock::new()).collect());
    Some(compiled[index].get_or_init(|| compile(&kinds[index])))
}

fn name_of(kind: &Kind) -> (&str, &str, &str) {
    (&kind.group, &kind.version, &kind.name)
}

fn compile(kind: &Kind) -> Defaults {
    let resource = BUILTIN.resources().iter().find(|resource| {
        resource.group == kind.group
            && resource.version == kind.version
            && resource.kind == kind.name
    });
    Defaults {
        conditional: conditional(kind),
        schema: schema::for_kind(&BUILTIN, kind, resource),
    }
}

fn conditional(kind: &Kind) -> Option<Conditional> {
    let conditional: Conditional = match name_of(kind) {
        ("", "v1", "LimitRange") => core::limit_range,
        ("", "v1", "Namespace") => core::namespace,
        ("", "v1", "Node") => core::node,
        ("", "v1", "Pod") => core::pod::pod,
        ("", "v1", "PodTemplate") => core::pod_template,
        ("", "v1", "ReplicationController") => core::replication_controller,
        ("", "v1", "Service") => core::service::service,
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition") => apiextensions::v1,
        ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition") => apiextensions::v1beta1,
        ("apps", "v1", "DaemonSet") => apps::daemon_set,
        ("apps", "v1", "Deployment") => apps::deployment,
        ("apps", "v1", "ReplicaSet") => apps::replica_set,
        ("apps", "v1", "StatefulSet") => apps::stateful_set,
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => autoscaling::horizontal_pod_autoscaler,
        ("batch", "v1", "CronJob") => batch::cron_job,
        ("batch", "v1", "Job") => batch::job,
        ("networking.k8s.io", "v1", "NetworkPolicy") => networking::network_policy,
        ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding" | "RoleBinding") => rbac::binding,
        ("resource.k8s.io", "v1" | "v1beta2", "ResourceClaim") => resource::claim,
        ("resource.k8s.io", "v1" | "v1beta2", "ResourceClaimTemplate") => resource::claim_template,
        ("resource.k8s.io", "v1" | "v1beta2", "ResourceSlice") => resource::slice,
        ("resource.k8s.io", "v1beta1", "ResourceClaim") => resource::v1beta1_claim,
        ("resource.k8s.io", "v1beta1", "ResourceClaimTemplate") => resource::v1beta1_claim_template,
        ("resource.k8s.io", "v1beta1", "ResourceSlice") => resource::v1beta1_slice,
        ("resource.k8s.io", _, "DeviceTaintRule") => resource::taint_rule,
        _ => return None,
    };

    Some(conditional)
}
