//! The row of an EndpointSlice.

use coracle_api::time::Timestamp;
use k8s_openapi::api::discovery::v1::{EndpointPort, EndpointSlice};

use crate::render::table::Row;
use crate::render::table::cells::{UNSET, age, few, name, or};

/// So many ports and addresses are shown.
const FEW: usize = 3;

pub(super) fn row(slice: &EndpointSlice, now: Timestamp) -> Row {
    let ports: Vec<String> = slice.ports.iter().flatten().map(port).collect();
    let addresses: Vec<&str> = slice
        .endpoints
        .iter()
        .flatten()
        .flat_map(|endpoint| &endpoint.addresses)
        .map(String::as_str)
        .collect();

    row![
        name(&slice.metadata),
        slice.address_type.as_str(),
        or(Some(&few(&ports, ",", FEW)), UNSET),
        or(Some(&few(&addresses, ",", FEW)), UNSET),
        age(&slice.metadata, now)
    ]
}

/// Its number, else its name; without both, all ports.
fn port(port: &EndpointPort) -> String {
    match (port.port, &port.name) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.clone(),
        (None, None) => "*".to_string(),
    }
}
