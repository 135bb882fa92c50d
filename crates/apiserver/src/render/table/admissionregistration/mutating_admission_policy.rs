//! The row of a MutatingAdmissionPolicy.

use coracle_api::time::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicy;

use super::params::param_kind;
use crate::render::table::Row;
use crate::render::table::cells::{age, count, name};

pub(super) fn row(policy: &MutatingAdmissionPolicy, now: Timestamp) -> Row {
    let spec = policy.spec.as_ref();
    let mutations = spec
        .and_then(|spec| spec.mutations.as_deref())
        .unwrap_or_default();
    let kind = spec.and_then(|spec| spec.param_kind.as_ref());
    let kind = kind.map(|kind| (kind.api_version.as_deref(), kind.kind.as_deref()));

    row![
        name(&policy.metadata),
        count(mutations.len()),
        param_kind(kind),
        age(&policy.metadata, now)
    ]
}
