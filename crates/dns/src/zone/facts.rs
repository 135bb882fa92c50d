//! The fields that DNS uses of Services and EndpointSlices. They are saved to disk, so that names
//! resolve without the API server.

use std::net::IpAddr;

use coracle_api::Value;
use serde::{Deserialize, Serialize};

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

/// A Service, as DNS needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    pub key: Key,
    pub form: Form,
    pub ports: Vec<Port>,
}

/// How a Service's name is resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// To its cluster IPs, one per family.
    Addresses(Vec<IpAddr>),
    /// To the IPs of its pods.
    Headless,
    /// To another name.
    Alias(String),
}

/// A port; its name may be empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Port {
    pub name: String,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    pub number: u16,
}

/// An EndpointSlice, as DNS needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    pub key: Key,
    /// The Service that it belongs to.
    pub service: String,
    pub ports: Vec<Port>,
    pub endpoints: Vec<Endpoint>,
}

/// A ready pod of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub address: IpAddr,
    /// Its hostname below the Service, if set.
    pub hostname: Option<String>,
}

/// Label of the Service's name.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

impl Service {
    /// Reads a core/v1 Service. Without a cluster IP it has no names yet.
    pub fn read(tree: &Value) -> Option<Service> {
        let spec = tree.get("spec")?.as_object()?;
        let form = if spec.text("type") == "ExternalName" {
            Form::Alias(
                spec.text("externalName")
                    .trim_end_matches('.')
                    .to_ascii_lowercase(),
            )
        } else if spec.text("clusterIP") == "None" {
            Form::Headless
        } else {
            let given = spec.items("clusterIPs").iter().filter_map(Value::as_str);
            let addresses: Vec<IpAddr> = given.filter_map(|text| text.parse().ok()).collect();
            if addresses.is_empty() {
                return None;
            }
            Form::Addresses(addresses)
        };

        Some(Service {
            key: key(tree),
            form,
            ports: ports(spec.items("ports")),
        })
    }
}

impl Slice {
    /// Reads a discovery.k8s.io/v1 EndpointSlice. Slices of `addressType: FQDN` or without a
    /// Service are ignored.
    pub fn read(tree: &Value) -> Option<Slice> {
        let slice = tree.as_object()?;
        let service = tree.meta().label(SERVICE_NAME)?.to_owned();
        let endpoints = slice
            .items("endpoints")
            .iter()
            .filter_map(endpoint)
            .collect();

        Some(Slice {
            key: key(tree),
            service,
            ports: ports(slice.items("ports")),
            endpoints,
        })
    }
}

fn endpoint(tree: &Value) -> Option<Endpoint> {
    let endpoint = tree.as_object()?;

    // Only the first address counts, as the API specifies.
    let address = endpoint
        .items("addresses")
        .first()?
        .as_str()?
        .parse()
        .ok()?;

    let conditions = endpoint.below("conditions");

    // Unknown means ready. `publishNotReadyAddresses` is included: the EndpointSlice controller
    // sets `ready` accordingly.
    let ready = conditions
        .and_then(|conditions| conditions.get("ready"))
        .and_then(Value::as_bool)
        .unwrap_or(true);

    let hostname =
        Some(endpoint.text("hostname").to_ascii_lowercase()).filter(|name| !name.is_empty());

    ready.then_some(Endpoint { address, hostname })
}

fn ports(items: &[Value]) -> Vec<Port> {
    let read = |item: &Value| {
        let port = item.as_object()?;
        let name = port.text("name").to_ascii_lowercase();
        let protocol = Some(port.text("protocol"))
            .filter(|text| !text.is_empty())
            .unwrap_or("TCP");
        let number = u16::try_from(port.int("port")).ok()?;

        Some(Port {
            name,
            protocol: protocol.to_ascii_lowercase(),
            number,
        })
    };

    items.iter().filter_map(read).collect()
}

fn key(tree: &Value) -> Key {
    let meta = tree.meta();
    Key {
        namespace: meta.namespace().to_owned(),
        name: meta.name().to_owned(),
    }
}
