//! ComponentStatus: the health of a control plane component (deprecated).

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::ComponentStatus;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::name;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

fn print_row(status: &ComponentStatus, _: Timestamp) -> Row {
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
