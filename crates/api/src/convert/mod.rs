//! Conversion: the same object in another version of its kind.
//!
//! [`convert`] gives what upstream would: it reads an object in its own version into its internal
//! form and writes that in the wanted one. Between versions of different shape (`autoscaling`,
//! `event`, `definition`) fields move; where only the name of the version differs, only that
//! changes. But also an object that stays in its version comes out of upstream's internal form
//! settled: aliases agree, what is only for writing is folded in, annotations that stand for fields
//! of other versions are gone (`core`, `apps`, `policy`). So every object that a request brings is
//! converted to the version that is kept, and every answer from it.
//!
//! Objects are expected with `apiVersion` and `kind`, defaulted in their version. An object that
//! was in the form upstream writes (`codec::canonical`) is in that form afterwards; so is every one
//! whose version changed.

mod apps;
mod autoscaling;
mod core;
mod definition;
mod event;
mod field_label;
mod policy;
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

/// Brings an object of a built-in kind into the version `to`. Objects of kinds that are not built
/// in come back as they are if they are in that version.
///
/// # Errors
/// The two kinds are not versions of one, or an annotation that stands for a field cannot be read.
pub fn convert(mut object: Value, to: &Kind) -> Result<Value, ConvertError> {
    let Some(fields) = object.as_object_mut() else {
        return Ok(object);
    };

    let is_at_home =
        fields.text("kind") == to.name && is_api_version(fields.text("apiVersion"), to);
    if is_at_home {
        if let Some(settle) = settled(to) {
            settle(fields)?;
        }
        return Ok(object);
    }

    let from = BUILTIN
        .kind_of(fields.text("apiVersion"), fields.text("kind"))
        .ok_or_else(|| ConvertError::UnknownKind {
            api_version: Text::new(fields.text("apiVersion")),
            kind: Text::new(fields.text("kind")),
        })?;

    let moved = between(from, to).ok_or_else(|| ConvertError::NotConvertible {
        from: shown(from),
        to: shown(to),
    })?;

    canonical::canonicalize(&mut object, BUILTIN.root(from).node());

    if let Some(fields) = object.as_object_mut() {
        moved(fields);
        fields.insert("apiVersion", to.api_version());
    }

    canonical::canonicalize(&mut object, BUILTIN.root(to).node());

    Ok(object)
}

/// Whether objects of one kind can be had as the other: they are versions of the same.
pub fn is_convertible(from: &Kind, to: &Kind) -> bool {
    between(from, to).is_some()
}

/// Whether `api_version` is the kind's, without making its text.
fn is_api_version(api_version: &str, kind: &Kind) -> bool {
    crate::catalog::split_api_version(api_version) == (kind.group.as_str(), kind.version.as_str())
}

fn shown(kind: &Kind) -> Text {
    Text::new(format!("{}, Kind={}", kind.api_version(), kind.name))
}

type Settle = fn(&mut Map) -> Result<(), ConvertError>;

/// What an object of a kind becomes by being read and written in one version.
fn settled(kind: &Kind) -> Option<Settle> {
    let settle: Settle = match (
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
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => autoscaling::settle,
        ("batch", "v1", "CronJob") => core::cron_job,
        ("batch", "v1", "Job") => core::workload,
        ("policy", "v1", "PodDisruptionBudget") => policy::disruption_budget,
        _ => return None,
    };

    Some(settle)
}

/// How the fields of one version become those of another. Everything but `apiVersion`.
fn between(from: &Kind, to: &Kind) -> Option<fn(&mut Map)> {
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
        (groups, _, name)
            if groups.0 == groups.1 && is_the_same_in_all_versions(groups.0, name) =>
        {
            |_| {}
        }
        _ => return None,
    })
}

/// Kinds whose versions differ in nothing but their name.
fn is_the_same_in_all_versions(group: &str, kind: &str) -> bool {
    const SAME: [(&str, &str); 2] = [
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        (
            "admissionregistration.k8s.io",
            "MutatingAdmissionPolicyBinding",
        ),
    ];
    SAME.contains(&(group, kind))
}

/// Moves a member to another name, if it is there.
fn rename(of: &mut Map, from: &str, to: &'static str) {
    if let Some(value) = of.remove(from) {
        of.insert(Text::const_new(to), value);
    }
}
