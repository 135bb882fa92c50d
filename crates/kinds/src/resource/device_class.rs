//! DeviceClass: which devices a claim may request. Not validated yet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::resource::v1::DeviceClass;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::{age, name};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

fn print_row(class: &DeviceClass, now: Timestamp) -> Row {
    row![name(&class.metadata), age(&class.metadata, now)]
}
