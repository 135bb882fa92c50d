//! The row of a ComponentStatus.

use k8s_openapi::api::core::v1::ComponentStatus;

use crate::render::table::Row;
use crate::render::table::cells::name;

pub(super) fn row(status: &ComponentStatus) -> Row {
    let healthy = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "Healthy");

    let health = match healthy.map(|condition| condition.status.as_str()) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };

    let message = healthy
        .and_then(|condition| condition.message.as_deref())
        .unwrap_or_default();
    let error = healthy
        .and_then(|condition| condition.error.as_deref())
        .unwrap_or_default();

    row![name(&status.metadata), health, message, error]
}
