//! The Service `kubernetes` in `default`, through which pods reach the API server, with its
//! Endpoints and EndpointSlice.
//!
//! The Service is created if it is missing and otherwise not changed; the addresses are kept to be
//! those of the running servers.

use std::net::IpAddr;

use coracle_api::catalog::Resource;
use coracle_api::{Value, typed};
use coracle_kinds::Part;
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Service, ServicePort, ServiceSpec,
};
use k8s_openapi::api::discovery::v1::{
    Endpoint, EndpointConditions, EndpointPort as SlicePort, EndpointSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::master_leases::RENEWED_EVERY;
use super::{EndpointReconciler, Facts, MANAGER, keep};
use crate::ApiError;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};
use crate::registry::store_error;

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
const KEY: &str = "default/kubernetes";

/// Under which name and number the server is found.
#[derive(Clone, Debug)]
pub struct Advertised {
    pub address: IpAddr,
    pub port: u16,
    /// Where Services get their addresses from; the first decides the family of this one.
    pub service_cidrs: Vec<IpNet>,
    /// The node port of the Service; 0: none.
    pub node_port: u16,
}

impl Advertised {
    /// The first address of the first range is the API server's.
    fn service_address(&self) -> Option<IpAddr> {
        self.service_cidrs.first()?.hosts().next()
    }
}

pub(super) async fn run(loopback: &Loopback, facts: &Facts, addresses: &Hook, hook: &Hook) {
    // Addresses are allocated from the ServiceCIDR.
    addresses.finished().await;
    let listening = [services(), endpoints(), slices()]
        .map(|resource| loopback.cache(resource).notifier_of(KEY));
    let notifiers = [
        &*listening[0].notifier,
        &*listening[1].notifier,
        &*listening[2].notifier,
    ];
    let kept = || keep(hook, &notifiers, async || ensure(loopback, facts).await);
    match &facts.reconciler {
        EndpointReconciler::None | EndpointReconciler::Own => kept().await,
        // Begun again, it looks at the leases of the others too.
        EndpointReconciler::Leases(_) => loop {
            drop(tokio::time::timeout(RENEWED_EVERY, kept()).await);
        },
    }
}

/// Takes the address of this server out of the endpoints, if it shares them with others.
pub(super) async fn withdraw(loopback: &Loopback, facts: &Facts) -> Result<(), ApiError> {
    match &facts.reconciler {
        EndpointReconciler::Leases(leases) if !facts.advertised.address.is_loopback() => {
            leases.end().await.map_err(|error| store_error(&error))?;
            ensure(loopback, facts).await
        }
        _ => Ok(()),
    }
}

async fn ensure(loopback: &Loopback, facts: &Facts) -> Result<(), ApiError> {
    let advertised = &facts.advertised;
    if loopback.cache(services()).get(KEY).is_none() {
        loopback
            .ensure(services(), NAMESPACE, MANAGER, &service(advertised))
            .await?;
    }

    // An address that others cannot reach is not published.
    if advertised.address.is_loopback() {
        return Ok(());
    }

    let addresses = match &facts.reconciler {
        EndpointReconciler::None => return Ok(()),
        EndpointReconciler::Own => vec![advertised.address],
        EndpointReconciler::Leases(leases) => {
            let renewed = leases.renewed().await;
            renewed.map_err(|error| store_error(&error))?
        }
    };

    put(
        loopback,
        endpoints(),
        &wanted_endpoints(advertised, &addresses),
        &["subsets"],
    )
    .await?;

    put(
        loopback,
        slices(),
        &wanted_slice(advertised, &addresses),
        &["endpoints", "ports"],
    )
    .await
}

/// Creates an object, or reconciles these of its members and its labels.
async fn put(
    loopback: &Loopback,
    resource: &'static Resource,
    wanted: &Value,
    members: &[&str],
) -> Result<(), ApiError> {
    let Some(found) = loopback.get(resource, KEY) else {
        return loopback.ensure(resource, NAMESPACE, MANAGER, wanted).await;
    };
    let mut updated = found.clone();

    let object = updated
        .as_object_mut()
        .expect("a stored value is an object");
    for name in members {
        match wanted.get(name) {
            Some(value) => object.insert(*name, value.clone()),
            None => object.remove(name),
        };
    }

    for (name, value) in wanted
        .meta()
        .labels()
        .into_iter()
        .flat_map(|labels| labels.iter())
    {
        updated.meta_mut().set_label(name, value.as_str());
    }

    if updated == found {
        return Ok(());
    }

    loopback
        .update(resource, NAMESPACE, Part::Main, MANAGER, &updated)
        .await
        .map(drop)
}

fn service(advertised: &Advertised) -> Value {
    let node_port = (advertised.node_port > 0).then(|| i32::from(advertised.node_port));
    let port = ServicePort {
        name: Some("https".to_string()),
        node_port,
        port: 443,
        protocol: Some("TCP".to_string()),
        target_port: Some(IntOrString::Int(i32::from(advertised.port))),
        ..ServicePort::default()
    };

    let labels = [("component", "apiserver"), ("provider", "kubernetes")];
    tree(&Service {
        metadata: metadata(&labels),
        spec: Some(ServiceSpec {
            cluster_ip: advertised
                .service_address()
                .map(|address| address.to_string()),
            ip_family_policy: Some("SingleStack".to_string()),
            ports: Some(vec![port]),
            session_affinity: Some("None".to_string()),
            type_: Some(
                if node_port.is_some() {
                    "NodePort"
                } else {
                    "ClusterIP"
                }
                .to_string(),
            ),
            ..ServiceSpec::default()
        }),
        status: None,
    })
}

/// The label keeps controllers that mirror Endpoints from mirroring these.
fn wanted_endpoints(advertised: &Advertised, addresses: &[IpAddr]) -> Value {
    let port = EndpointPort {
        name: Some("https".to_string()),
        port: i32::from(advertised.port),
        protocol: Some("TCP".to_string()),
        app_protocol: None,
    };

    let addresses: Vec<_> = addresses
        .iter()
        .map(|address| EndpointAddress {
            ip: address.to_string(),
            ..EndpointAddress::default()
        })
        .collect();
    let subset = EndpointSubset {
        addresses: Some(addresses.clone()),
        not_ready_addresses: None,
        ports: Some(vec![port]),
    };

    tree(&Endpoints {
        metadata: metadata(&[("endpointslice.kubernetes.io/skip-mirror", "true")]),
        subsets: (!addresses.is_empty()).then(|| vec![subset]),
    })
}

fn wanted_slice(advertised: &Advertised, addresses: &[IpAddr]) -> Value {
    let port = SlicePort {
        name: Some("https".to_string()),
        port: Some(i32::from(advertised.port)),
        protocol: Some("TCP".to_string()),
        app_protocol: None,
    };

    let endpoint = |address: &IpAddr| Endpoint {
        addresses: vec![address.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(true),
            ..EndpointConditions::default()
        }),
        ..Endpoint::default()
    };

    tree(&EndpointSlice {
        address_type: if advertised.address.is_ipv6() {
            "IPv6"
        } else {
            "IPv4"
        }
        .to_string(),
        endpoints: Some(addresses.iter().map(endpoint).collect()),
        metadata: metadata(&[("kubernetes.io/service-name", NAME)]),
        ports: Some(vec![port]),
    })
}

fn metadata(labels: &[(&str, &str)]) -> ObjectMeta {
    ObjectMeta {
        name: Some(NAME.to_string()),
        namespace: Some(NAMESPACE.to_string()),
        labels: Some(
            labels
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        ),
        ..ObjectMeta::default()
    }
}

fn tree<T: serde::Serialize>(object: &T) -> Value {
    typed::to_tree(object).expect("a typed object has a tree")
}

fn services() -> &'static Resource {
    resource("", "v1", "services")
}

fn endpoints() -> &'static Resource {
    resource("", "v1", "endpoints")
}

fn slices() -> &'static Resource {
    resource("discovery.k8s.io", "v1", "endpointslices")
}
