//! The fields that the proxy uses of an EndpointSlice.

use std::net::IpAddr;

use coracle_api::{Text, Value};
use coracle_client::ObjectKey;

use crate::rules::{Protocol, protocol};

/// A part of the endpoints of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub key: ObjectKey,
    /// The Service that it belongs to.
    pub service: ObjectKey,
    pub ports: Vec<SlicePort>,
    pub endpoints: Vec<Endpoint>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePort {
    pub name: Text,
    pub protocol: Protocol,
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub address: IpAddr,
    pub node: Text,
    pub ready: bool,
    pub serving: bool,
    pub terminating: bool,
    /// Topology hints; empty: none.
    pub for_zones: Vec<Text>,
    pub for_nodes: Vec<Text>,
}

/// Label of the Service's name.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Label of slices of headless Services.
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";

impl Slice {
    /// Reads a discovery.k8s.io/v1 EndpointSlice; none if it has no Service or is of FQDNs.
    pub fn read(tree: &Value) -> Option<Slice> {
        let slice = tree.as_object()?;
        let meta = tree.meta();
        let service = meta.label(SERVICE_NAME).filter(|name| !name.is_empty())?;

        if slice.text("addressType") == "FQDN" || meta.label(HEADLESS).is_some() {
            return None;
        }

        Some(Slice {
            key: ObjectKey::of(tree),
            service: ObjectKey::new(meta.namespace(), service),
            ports: slice.items("ports").iter().filter_map(read_port).collect(),
            endpoints: slice
                .items("endpoints")
                .iter()
                .filter_map(read_endpoint)
                .collect(),
        })
    }
}

/// A port without a number means all ports, which Services do not support.
fn read_port(item: &Value) -> Option<SlicePort> {
    let port = item.as_object()?;
    Some(SlicePort {
        name: Text::new(port.text("name")),
        protocol: protocol(port.text("protocol"))?,
        port: u16::try_from(port.int("port"))
            .ok()
            .filter(|port| *port != 0)?,
    })
}

fn read_endpoint(item: &Value) -> Option<Endpoint> {
    let endpoint = item.as_object()?;
    let condition = |name, unknown| {
        let conditions = endpoint.below("conditions");
        conditions
            .and_then(|conditions| conditions.get(name))
            .and_then(Value::as_bool)
            .unwrap_or(unknown)
    };

    let hints = |name| {
        let named = endpoint
            .below("hints")
            .map(|hints| hints.items(name))
            .unwrap_or_default();
        let name = |hint: &Value| Some(Text::new(hint.as_object()?.text("name")));
        named.iter().filter_map(name).collect()
    };

    Some(Endpoint {
        // Only the first address counts, as the API specifies.
        address: endpoint
            .items("addresses")
            .first()?
            .as_str()?
            .parse()
            .ok()?,
        node: Text::new(endpoint.text("nodeName")),
        ready: condition("ready", true),
        serving: condition("serving", true),
        terminating: condition("terminating", false),
        for_zones: hints("forZones"),
        for_nodes: hints("forNodes"),
    })
}
