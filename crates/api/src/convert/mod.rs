//! Conversion of objects between the versions of their kind.
//!
//! [`convert`] does what upstream's decoding into internal types and encoding in the target version
//! do. Between versions of different shape (`autoscaling`, `event`, `definition`, `resource`) fields move;
//! elsewhere only `apiVersion` changes. But upstream's internal form also normalizes an object that
//! stays in its version: aliases agree, write-only fields are merged, annotations that represent
//! fields of other versions are removed (`core`, `apps`, `policy`). So the object of every request
//! is converted to the storage version, and every response from it.
//!
//! Objects are expected with `apiVersion` and `kind`, defaulted in their version. An object in
//! canonical form (`codec::canonical`) stays in canonical form; an object whose version changes
//! always ends up in it.

mod apps;
mod autoscaling;
mod core;
mod definition;
mod event;
mod field_label;
mod policy;
mod resource;
#[cfg(test)]
mod tests;

use crate::catalog::{BUILTIN, Kind};
use crate::codec::canonical;
use crate::go_text::{NumberError, Quoted};
use crate::{Map, Text, Value};

pub use field_label::{FieldLabelError, field_label};

/// Why an object cannot be converted. The texts are upstream's where a client can cause them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    #[error("no kind {} is registered for version {}", Quoted(.kind), Quoted(.api_version))]
    UnknownKind { api_version: Text, kind: Text },
    #[error("{from} is not convertible to {to}")]
    NotConvertible { from: Text, to: Text },
    #[error("strconv.ParseInt: parsing {}: {why}", Quoted(.text))]
    Generation { text: Text, why: NumberError },
    #[error(
        "failed to parse annotation[{}]={text} as int64: strconv.ParseInt: parsing {}: {why}",
        apps::ROLLBACK_TO,
        Quoted(.text)
    )]
    RollbackTo { text: Text, why: NumberError },
}

/// Converts an object of a built-in kind to the version `to`. Objects of other kinds are returned
/// unchanged if they are in that version.
///
/// # Errors
/// The two are not versions of one kind, or an annotation that represents a field is invalid.
pub fn convert(mut object: Value, to: &Kind) -> Result<Value, ConvertError> {
    let Some(fields) = object.as_object_mut() else {
        return Ok(object);
    };

    let is_at_home =
        fields.text("kind") == to.name && is_api_version(fields.text("apiVersion"), to);
    if is_at_home {
        if let Some(normalize) = normalization(to) {
            normalize(fields)?;
        }
        return Ok(object);
    }

    let from = BUILTIN
        .kind_of(fields.text("apiVersion"), fields.text("kind"))
        .ok_or_else(|| ConvertError::UnknownKind {
            api_version: Text::new(fields.text("apiVersion")),
            kind: Text::new(fields.text("kind")),
        })?;

    let moved = field_moves(from, to).ok_or_else(|| ConvertError::NotConvertible {
        from: kind_text(from),
        to: kind_text(to),
    })?;

    canonical::canonicalize(&mut object, BUILTIN.root(from).node());

    if let Some(fields) = object.as_object_mut() {
        moved(fields);
        fields.insert("apiVersion", to.api_version());
    }

    canonical::canonicalize(&mut object, BUILTIN.root(to).node());

    Ok(object)
}

/// Whether objects of one kind can be converted to the other: both are versions of the same kind.
pub fn is_convertible(from: &Kind, to: &Kind) -> bool {
    field_moves(from, to).is_some()
}

/// Whether `api_version` is the kind's, without allocating.
fn is_api_version(api_version: &str, kind: &Kind) -> bool {
    crate::catalog::split_api_version(api_version) == (kind.group.as_str(), kind.version.as_str())
}

fn kind_text(kind: &Kind) -> Text {
    Text::new(format!("{}, Kind={}", kind.api_version(), kind.name))
}

type Normalize = fn(&mut Map) -> Result<(), ConvertError>;

/// The normalization of objects of a kind by decoding and encoding in one version.
fn normalization(kind: &Kind) -> Option<Normalize> {
    let normalize: Normalize = match (
        kind.group.as_str(),
        kind.version.as_str(),
        kind.name.as_str(),
    ) {
        ("", "v1", "Node") => core::node,
        ("", "v1", "Pod") => core::pod,
        ("", "v1", "PodTemplate") => core::pod_template,
        ("", "v1", "ReplicationController") => core::workload,
        ("", "v1", "Secret") => core::secret,
        ("apps", "v1", "DaemonSet") => apps::daemon_set,
        ("apps", "v1", "Deployment") => apps::deployment,
        ("apps", "v1", "ReplicaSet") => core::workload,
        ("apps", "v1", "StatefulSet") => apps::stateful_set,
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => autoscaling::normalize,
        ("batch", "v1", "CronJob") => core::cron_job,
        ("batch", "v1", "Job") => core::workload,
        ("policy", "v1", "PodDisruptionBudget") => policy::disruption_budget,
        _ => return None,
    };

    Some(normalize)
}

/// Moves the fields of one version to those of another; all but `apiVersion`.
fn field_moves(from: &Kind, to: &Kind) -> Option<fn(&mut Map)> {
    let versions = (from.version.as_str(), to.version.as_str());
    let groups = (from.group.as_str(), to.group.as_str());

    if from.name != to.name {
        return None;
    }

    Some(match (groups, versions, from.name.as_str()) {
        (("events.k8s.io", ""), ("v1", "v1"), "Event") => event::to_core,
        (("", "events.k8s.io"), ("v1", "v1"), "Event") => event::from_core,
        (("autoscaling", "autoscaling"), ("v1", "v2"), "HorizontalPodAutoscaler") => {
            autoscaling::v1_to_v2
        }
        (("autoscaling", "autoscaling"), ("v2", "v1"), "HorizontalPodAutoscaler") => {
            autoscaling::v2_to_v1
        }
        (
            ("apiextensions.k8s.io", "apiextensions.k8s.io"),
            versions,
            "CustomResourceDefinition",
        ) => match versions {
            ("v1", "v1beta1") => definition::v1_to_v1beta1,
            ("v1beta1", "v1") => definition::v1beta1_to_v1,
            _ => return None,
        },
        (("resource.k8s.io", "resource.k8s.io"), versions, name)
            if versions.0 == "v1beta1" || versions.1 == "v1beta1" =>
        {
            resource::field_moves(versions.0 == "v1beta1", name)?
        }
        (groups, _, name)
            if groups.0 == groups.1 && is_the_same_in_all_versions(groups.0, name) =>
        {
            |_| {}
        }
        _ => return None,
    })
}

/// Kinds whose versions differ only in name.
fn is_the_same_in_all_versions(group: &str, kind: &str) -> bool {
    const SAME: [(&str, &str); 12] = [
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        (
            "admissionregistration.k8s.io",
            "MutatingAdmissionPolicyBinding",
        ),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("coordination.k8s.io", "LeaseCandidate"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("resource.k8s.io", "ResourceSlice"),
        ("storage.k8s.io", "VolumeAttributesClass"),
    ];
    SAME.contains(&(group, kind))
}

/// Renames a member, if it is present.
fn rename(of: &mut Map, from: &str, to: &'static str) {
    if let Some(value) = of.remove(from) {
        of.insert(Text::const_new(to), value);
    }
}
