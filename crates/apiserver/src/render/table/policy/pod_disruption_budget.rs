//! The row of a PodDisruptionBudget.

use coracle_api::time::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(budget: &PodDisruptionBudget, now: Timestamp) -> Row {
    let spec = budget.spec.as_ref();
    let limit = |limit: Option<&IntOrString>| match limit {
        None => "N/A".to_string(),
        Some(IntOrString::Int(number)) => number.to_string(),
        Some(IntOrString::String(text)) => text.clone(),
    };

    row![
        name(&budget.metadata),
        limit(spec.and_then(|spec| spec.min_available.as_ref())),
        limit(spec.and_then(|spec| spec.max_unavailable.as_ref())),
        budget
            .status
            .as_ref()
            .and_then(|status| status.disruptions_allowed)
            .unwrap_or_default(),
        age(&budget.metadata, now)
    ]
}
