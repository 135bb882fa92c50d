//! The row of a ValidatingAdmissionPolicyBinding.

use coracle_api::time::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::params::{Params, param_ref};
use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(binding: &ValidatingAdmissionPolicyBinding, now: Timestamp) -> Row {
    let spec = &binding.spec;
    let reference = spec.param_ref.as_ref().map(|reference| Params {
        name: reference.name.as_deref(),
        namespace: reference.namespace.as_deref(),
        selector: reference.selector.as_ref(),
    });

    row![
        name(&binding.metadata),
        spec.policy_name.as_str(),
        param_ref(reference.as_ref()),
        age(&binding.metadata, now)
    ]
}
