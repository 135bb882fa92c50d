//! RuntimeClass: which runtime a pod runs in. Not validated yet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::node::v1::RuntimeClass;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::{age, name};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

fn print_row(class: &RuntimeClass, now: Timestamp) -> Row {
    row![
        name(&class.metadata),
        class.handler.as_str(),
        age(&class.metadata, now)
    ]
}
