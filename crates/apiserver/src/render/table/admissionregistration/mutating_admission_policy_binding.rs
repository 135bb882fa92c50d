//! The row of a MutatingAdmissionPolicyBinding.

use coracle_api::time::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingAdmissionPolicyBinding;

use super::params::{Params, param_ref};
use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(binding: &MutatingAdmissionPolicyBinding, now: Timestamp) -> Row {
    let spec = binding.spec.as_ref();
    let reference = spec
        .and_then(|spec| spec.param_ref.as_ref())
        .map(|reference| Params {
            name: reference.name.as_deref(),
            namespace: reference.namespace.as_deref(),
            selector: reference.selector.as_ref(),
        });

    row![
        name(&binding.metadata),
        spec.and_then(|spec| spec.policy_name.as_deref())
            .unwrap_or_default(),
        param_ref(reference.as_ref()),
        age(&binding.metadata, now)
    ]
}
