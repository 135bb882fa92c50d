//! What DNS needs to know of a Service and of an EndpointSlice, and nothing else: it is kept on
//! disk too, so that names resolve while the API server is away.

use std::net::IpAddr;

use coracle_api::Value;
use serde::{Deserialize, Serialize};

/// Where an object lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

/// What a Service is to DNS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    pub key: Key,
    pub form: Form,
    pub ports: Vec<Port>,
}

/// How a Service's name is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// By its own addresses, one of each family.
    Addresses(Vec<IpAddr>),
    /// By those of its pods.
    Headless,
    /// By another name.
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

/// What an EndpointSlice is to DNS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    pub key: Key,
    /// The Service it belongs to.
    pub service: String,
    pub ports: Vec<Port>,
    pub endpoints: Vec<Endpoint>,
}

/// One pod behind a Service. Those that are not ready have no names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    pub address: IpAddr,
    /// Its own name below the Service's, where it asked for one.
    pub hostname: Option<String>,
}

/// The label by which a slice names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

impl Service {
    /// Reads a core/v1 Service. One whose cluster address is not given yet has no names.
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
    /// Reads a discovery.k8s.io/v1 EndpointSlice. Slices of names (`addressType: FQDN`) and of no
    /// Service are not ours.
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

    // Only the first address of an endpoint counts: consumers are told to expect one.
    let address = endpoint
        .items("addresses")
        .first()?
        .as_str()?
        .parse()
        .ok()?;

    let conditions = endpoint.below("conditions");

    // Unknown is to be taken as ready. `publishNotReadyAddresses` shows here too: whoever writes
    // slices heeds it.
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
