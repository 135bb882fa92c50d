//! ResourceSlice: the devices of a driver. Not validated yet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::resource::v1::ResourceSlice;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::{age, name};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

fn print_row(slice: &ResourceSlice, now: Timestamp) -> Row {
    let spec = &slice.spec;
    row![
        name(&slice.metadata),
        spec.node_name.as_deref().unwrap_or_default(),
        spec.driver.as_str(),
        spec.pool.name.as_str(),
        age(&slice.metadata, now)
    ]
}
