//! The servers of the cluster at present, as the endpoints of the Service `kubernetes` say.

use std::collections::BTreeSet;

use coracle_base::error_chain;
use coracle_client::transport::Servers;
use coracle_client::{Client, Informer, Informers, Resource, Selection, Tasks, Typed};
use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::known::Known;
use crate::instance::Instance;

/// Follows the endpoints until the tasks end: servers that come are used and remembered, others
/// forgotten.
pub(super) async fn follow(
    client: Client,
    servers: Servers,
    instance: Instance,
    known: Known,
    tasks: Tasks,
) {
    let own = Selection::all(&Resource::of::<EndpointSlice>())
        .namespace("default")
        .labels("kubernetes.io/service-name=kubernetes");
    let slices: Informer<Typed<EndpointSlice>> = Informers::new(client, tasks).of(own);
    let mut changes = slices.subscribe();
    slices.synced().await;

    loop {
        let found = slices.list();
        let found: Vec<_> = found
            .iter()
            .map(|slice| EndpointSlice::clone(slice))
            .collect();
        if servers.replace(of_slices(&found)) {
            let all = servers.all();
            tracing::info!(servers = ?all, "servers of the cluster");
            let known = Known {
                servers: all,
                ..known.clone()
            };
            if let Err(error) = known.write(&instance) {
                tracing::warn!(error = %error_chain(&error), "cannot remember the servers of the cluster");
            }
        }
        changes.next().await;
    }
}

/// The ready addresses of all slices.
fn of_slices(slices: &[EndpointSlice]) -> Vec<(String, u16)> {
    let mut found = BTreeSet::new();
    for slice in slices {
        let ports = slice.ports.iter().flatten();
        let port = ports
            .filter(|port| port.name.as_deref() == Some("https"))
            .find_map(|port| u16::try_from(port.port?).ok());
        let Some(port) = port else {
            continue;
        };
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.as_ref();
            if conditions.and_then(|conditions| conditions.ready) != Some(false) {
                found.extend(endpoint.addresses.iter().map(|host| (host.clone(), port)));
            }
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_are_the_ready_endpoints() {
        let slice = |addresses: &[&str], ready: Option<bool>, port: &str| -> EndpointSlice {
            serde_json::from_value(json!({
                "addressType": "IPv4", "metadata": {"name": "kubernetes"},
                "endpoints": [{"addresses": addresses, "conditions": {"ready": ready}}],
                "ports": [{"name": port, "port": 6443}],
            }))
            .unwrap()
        };

        let check = |slices: &[EndpointSlice], expected: &[&str]| {
            let expected: Vec<_> = expected
                .iter()
                .map(|host| (host.to_string(), 6443))
                .collect();
            assert_eq!(of_slices(slices), expected);
        };
        check(
            &[slice(&["192.0.2.2", "192.0.2.1"], Some(true), "https")],
            &["192.0.2.1", "192.0.2.2"],
        );
        check(&[slice(&["192.0.2.1"], None, "https")], &["192.0.2.1"]);
        check(&[slice(&["192.0.2.1"], Some(false), "https")], &[]);
        check(&[slice(&["192.0.2.1"], Some(true), "other")], &[]);
    }
}
