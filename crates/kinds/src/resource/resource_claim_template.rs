//! ResourceClaimTemplate: the claims of a workload's pods. Not validated yet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::{age, name};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

fn print_row(template: &ResourceClaimTemplate, now: Timestamp) -> Row {
    row![name(&template.metadata), age(&template.metadata, now)]
}
