//! The row of an Endpoints: the first few addresses, with each port they are reached at.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::{EndpointSubset, Endpoints};

use crate::render::table::Row;
use crate::render::table::cells::{NONE, age, few, name};

pub(super) fn row(endpoints: &Endpoints, now: Timestamp) -> Row {
    let subsets = endpoints.subsets.as_deref().unwrap_or_default();
    let shown = match subsets {
        [] => NONE.to_string(),
        _ => few(
            &subsets.iter().flat_map(reached_at).collect::<Vec<_>>(),
            ",",
            3,
        ),
    };

    row![
        name(&endpoints.metadata),
        shown,
        age(&endpoints.metadata, now)
    ]
}

fn reached_at(subset: &EndpointSubset) -> Vec<String> {
    let addresses = subset.addresses.as_deref().unwrap_or_default();
    match subset.ports.as_deref().unwrap_or_default() {
        // A headless service may do without ports.
        [] => addresses.iter().map(|address| address.ip.clone()).collect(),
        ports => ports
            .iter()
            .flat_map(|port| {
                addresses
                    .iter()
                    .map(|address| host_and_port(&address.ip, port.port))
            })
            .collect(),
    }
}

fn host_and_port(host: &str, port: i32) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
