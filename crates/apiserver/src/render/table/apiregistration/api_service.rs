//! The row of an APIService.

use coracle_api::time::Timestamp;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{APIService, APIServiceStatus};

use crate::render::table::Row;
use crate::render::table::cells::{age, name};

pub(super) fn row(service: &APIService, now: Timestamp) -> Row {
    let behind = service
        .spec
        .as_ref()
        .and_then(|spec| spec.service.as_ref())
        .map(|to| {
            format!(
                "{}/{}",
                to.namespace.as_deref().unwrap_or_default(),
                to.name.as_deref().unwrap_or_default()
            )
        });

    row![
        name(&service.metadata),
        behind.unwrap_or_else(|| "Local".to_string()),
        available(service.status.as_ref()),
        age(&service.metadata, now)
    ]
}

fn available(status: Option<&APIServiceStatus>) -> String {
    let mut conditions = status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());

    let Some(condition) = conditions.find(|condition| condition.type_ == "Available") else {
        return "Unknown".to_string();
    };
    match (
        condition.status.as_str(),
        condition.reason.as_deref().unwrap_or_default(),
    ) {
        ("True", _) | (_, "") => condition.status.clone(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
