//! Cluster addresses: each is an IPAddress object, so that no two Services can have the same.
//!
//! The ranges are ServiceCIDR objects. An address that the client did not choose is allocated from
//! the upper part of a range, so that the lower part is left for chosen ones.

use std::net::IpAddr;

use coracle_api::catalog::{BUILTIN, Resource};
use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::ip::{self, Network};
use coracle_api::time::Duration;
use coracle_api::{Map, Value};
use http::StatusCode;
use k8s_openapi::api::core::v1::ServiceSpec;
use tracing::warn;

use super::families::{V4, V6, family_of, is_settled};
use super::spec::{NONE, SpecExt};
use super::validate::list;
use crate::ApiError;
use crate::Cluster;
use crate::cluster::Allocation;
use crate::strategy::{Context, SPEC};

/// The range that a cluster begins with.
const DEFAULT_RANGE: &str = "kubernetes";

/// The ranges that addresses are taken from.
pub(super) struct Ranges(Vec<Network>);

impl Ranges {
    /// Those that are ready, the cluster's first one first.
    pub(super) fn of(cluster: &dyn Cluster) -> Ranges {
        let resource = resource("servicecidrs");
        let mut found: Vec<(bool, Network)> = Vec::new();
        for range in cluster.list(resource, "") {
            let first = range.meta().name() == DEFAULT_RANGE;
            if !first && !is_ready(&range) {
                continue;
            }

            let cidrs = range
                .at(&["spec", "cidrs"])
                .and_then(Value::as_array)
                .unwrap_or_default();

            let networks = cidrs
                .iter()
                .filter_map(Value::as_str)
                .filter_map(Network::parse);
            found.extend(networks.map(|network| (!first, network)));
        }

        found.sort_by_key(|(later, _)| *later);

        Ranges(found.into_iter().map(|(_, network)| network).collect())
    }

    /// The default family.
    pub(super) fn primary(&self) -> &'static str {
        self.families().next().unwrap_or(V4)
    }

    pub(super) fn families(&self) -> impl Iterator<Item = &'static str> {
        let has = |v6: bool| self.0.iter().any(|network| network.address.is_ipv6() == v6);
        let v6_first = self
            .0
            .first()
            .is_some_and(|network| network.address.is_ipv6());

        let (first, second) = if v6_first {
            (true, false)
        } else {
            (false, true)
        };

        [first, second]
            .into_iter()
            .filter(move |v6| has(*v6))
            .map(|v6| if v6 { V6 } else { V4 })
    }

    fn in_family(&self, family: &str) -> impl Iterator<Item = Network> {
        let v6 = family == V6;
        self.0
            .iter()
            .copied()
            .filter(move |network| network.address.is_ipv6() == v6)
    }
}

/// Whether addresses are allocated from a range: unless it is being deleted or has the condition
/// Ready=False.
fn is_ready(range: &Value) -> bool {
    let conditions = range
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    let mut conditions = conditions.iter();
    let ready =
        conditions.find(|condition| condition.get("type").and_then(Value::as_str) == Some("Ready"));
    let says =
        ready.is_none_or(|ready| ready.get("status").and_then(Value::as_str) == Some("True"));
    says && !range.meta().is_being_deleted()
}

/// The Service of an address.
pub(super) struct Owner<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
}

/// Addresses that a pending write allocates and releases.
#[derive(Default)]
pub(super) struct PendingAddresses {
    taken: Vec<String>,
    /// Released if the write succeeds.
    to_release: Vec<String>,
}

impl PendingAddresses {
    pub(super) async fn settle(self, happened: bool, cx: &Context<'_>) {
        if !cx.dry_run {
            release(
                if happened {
                    &self.to_release
                } else {
                    &self.taken
                },
                cx,
            )
            .await;
        }
    }
}

/// Reserves the addresses that a Service needs and lacks, and notes those that it gives up.
pub(super) async fn reserve(
    new: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
    ranges: &Ranges,
    owner: &Owner<'_>,
    cx: &Context<'_>,
) -> Result<PendingAddresses, ApiError> {
    let mut held = PendingAddresses::default();
    if is_settled(new, old) {
        return Ok(held);
    }

    let from = match old {
        None => 0,
        Some(old) if !old.needs_cluster_ip() => 0,
        Some(old) if old.cluster_ips().first().is_some_and(|first| first == NONE) => {
            return Ok(held);
        }
        Some(old) if !new.needs_cluster_ip() => {
            held.to_release = old.addresses().to_vec();
            return Ok(held);
        }
        Some(old) if old.families().len() == 2 && new.families().len() == 1 => {
            held.to_release = old.cluster_ips().iter().skip(1).cloned().collect();
            return Ok(held);
        }
        Some(old) if old.families().len() == 1 && new.families().len() == 2 => 1,
        Some(_) => return Ok(held),
    };

    if !new.needs_cluster_ip() || new.cluster_ips().first().is_some_and(|first| first == NONE) {
        return Ok(held);
    }

    let families = new.families().to_vec();
    let mut addresses = new.cluster_ips().to_vec();
    addresses.resize(addresses.len().max(families.len()), String::new());

    for (place, family) in families.iter().enumerate().skip(from) {
        let asked = std::mem::take(&mut addresses[place]);
        match take(&asked, family, new, ranges, owner, cx).await {
            Ok(address) => {
                held.taken.push(address.clone());
                addresses[place] = address;
            }
            Err(refused) => {
                held.settle(false, cx).await;
                return Err(refused);
            }
        }
    }

    new.cluster_ip = addresses.first().cloned();
    new.cluster_ips = Some(addresses);

    Ok(held)
}

/// Why an address cannot be allocated.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the provided IP ({0}) is not in the valid range. The range of valid IPs is {1}")]
    NotInRange(IpAddr, Network),
    #[error("the provided network does not match the current range")]
    NoRange,
    #[error("provided IP is already allocated")]
    Taken,
    #[error("range is full")]
    Full,
    #[error("{}", .0.message)]
    Failed(Box<ApiError>),
}

async fn take(
    asked: &str,
    family: &str,
    service: &ServiceSpec,
    ranges: &Ranges,
    owner: &Owner<'_>,
    cx: &Context<'_>,
) -> Result<String, ApiError> {
    let refuse = |why: String| {
        let error =
            FieldError::invalid(&SPEC.field("clusterIPs"), list(service.cluster_ips()), why);
        ApiError::invalid(cx.kind, owner.name, &FieldErrors::from(error))
    };

    if asked.is_empty() {
        return match take_any(family, ranges, owner, cx).await {
            Ok(address) => Ok(address.to_string()),
            Err(Refused::Full) => Err(ApiError::internal(format!(
                "failed to allocate a serviceIP for Service \"{}\": range is full",
                owner.name
            ))),
            Err(other) => Err(refuse(format!("failed to allocate IP: {other}"))),
        };
    }

    let taken = match ip::parse(asked) {
        Some(address) => take_this(address, family, ranges, owner, cx).await,
        None => Err(Refused::NoRange),
    };

    match taken {
        Ok(()) => Ok(asked.to_string()),
        Err(why) => Err(refuse(format!("failed to allocate IP {asked}: {why}"))),
    }
}

async fn take_this(
    address: IpAddr,
    family: &str,
    ranges: &Ranges,
    owner: &Owner<'_>,
    cx: &Context<'_>,
) -> Result<(), Refused> {
    let mut networks = ranges.in_family(family);
    let Some(network) = ranges
        .in_family(family)
        .find(|network| network.contains(address))
    else {
        return Err(networks.next().map_or(Refused::NoRange, |first| {
            Refused::NotInRange(address, first)
        }));
    };

    let result = match usable(network).contains(&address) {
        true => match record(address, owner, cx).await {
            Err(Refused::Taken) if is_left_behind(address, owner, cx) => Ok(()),
            recorded => recorded,
        },
        false => Err(Refused::NotInRange(address, network)),
    };
    count_allocation(network, true, result.is_ok(), cx);

    result
}

fn count_allocation(range: Network, chosen: bool, succeeded: bool, cx: &Context<'_>) {
    if !cx.dry_run {
        cx.cluster.count_allocation(Allocation {
            range: Some(range),
            chosen,
            succeeded,
        });
    }
}

/// The age from which an address counts as left behind: as in upstream's repair loop.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(60);

/// Whether an address was allocated for this very Service, by a write that the server did not
/// finish. No other code would release it.
fn is_left_behind(address: IpAddr, owner: &Owner<'_>, cx: &Context<'_>) -> bool {
    let Some(found) = cx
        .cluster
        .get(resource("ipaddresses"), &address.to_string())
    else {
        return false;
    };

    let parent = |name: &str| {
        found
            .at(&["spec", "parentRef", name])
            .and_then(Value::as_str)
    };

    let is_own = parent("resource") == Some("services")
        && parent("namespace") == Some(owner.namespace)
        && parent("name") == Some(owner.name);
    let is_old = found
        .meta()
        .creation_timestamp()
        .is_some_and(|taken| cx.now.since(taken) > LEFT_BEHIND_AFTER);

    is_own && is_old
}

/// First and last address that a Service may have: neither the network address nor the IPv4
/// broadcast address.
fn usable(network: Network) -> std::ops::RangeInclusive<IpAddr> {
    let last = network.size() - if network.address.is_ipv4() { 2 } else { 1 };
    network.nth(1)..=network.nth(last.max(1))
}

/// How many addresses at the beginning of a range are left for static allocation.
fn left_for_named(network: Network) -> u64 {
    match network.size() {
        size if size <= 16 => 0,
        size => (size / 16).clamp(16, 256),
    }
}

async fn take_any(
    family: &str,
    ranges: &Ranges,
    owner: &Owner<'_>,
    cx: &Context<'_>,
) -> Result<IpAddr, Refused> {
    for network in ranges.in_family(family) {
        if cx.dry_run {
            return Ok(network.first());
        }

        let count = network.size() - if network.address.is_ipv4() { 2 } else { 1 };
        let named = left_for_named(network);
        for (from, len) in [(named, count.saturating_sub(named)), (0, named.min(count))] {
            if len == 0 {
                continue;
            }

            let start = cx.cluster.random() % len;
            for step in 0..len {
                let address = network.nth(1 + from + (start + step) % len);
                if cx
                    .cluster
                    .exists(resource("ipaddresses"), &address.to_string())
                {
                    continue;
                }

                match record(address, owner, cx).await {
                    Err(Refused::Taken) => {}
                    result => {
                        count_allocation(network, false, result.is_ok(), cx);
                        return result.map(|()| address);
                    }
                }
            }
        }
        count_allocation(network, false, false, cx);
    }

    Err(Refused::Full)
}

/// Creates the IPAddress object that records the owner of an address.
async fn record(address: IpAddr, owner: &Owner<'_>, cx: &Context<'_>) -> Result<(), Refused> {
    let text = address.to_string();

    if cx.dry_run {
        return Ok(());
    }

    let mut parent = Map::new();
    parent.insert("resource", "services");
    parent.insert("namespace", owner.namespace);
    parent.insert("name", owner.name);

    let mut spec = Map::new();
    spec.insert("parentRef", parent);
    let mut object = Value::object();
    object
        .as_object_mut()
        .expect("just made")
        .insert("spec", spec);

    object.meta_mut().set_name(&text);
    object
        .meta_mut()
        .set_label("ipaddress.kubernetes.io/ip-family", Some(family_of(&text)));
    object.meta_mut().set_label(
        "ipaddress.kubernetes.io/managed-by",
        Some("ipallocator.k8s.io"),
    );

    match cx.cluster.create(resource("ipaddresses"), object).await {
        Ok(()) => Ok(()),
        Err(error) if error.code == StatusCode::CONFLICT => Err(Refused::Taken),
        Err(error) => Err(Refused::Failed(Box::new(error))),
    }
}

/// Releases addresses.
pub(super) async fn release(addresses: &[String], cx: &Context<'_>) {
    for address in addresses.iter().filter_map(|address| ip::parse(address)) {
        let name = address.to_string();
        let deleted = cx.cluster.delete(resource("ipaddresses"), &name).await;

        if let Err(error) = deleted
            && error.code != StatusCode::NOT_FOUND
        {
            warn!(%address, error = error.message, "cannot release Service address");
        }
    }
}

fn resource(plural: &str) -> &'static Resource {
    BUILTIN
        .resource("networking.k8s.io", "v1", plural)
        .expect("it is built in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_a_range_are_unused_and_its_beginning_is_for_static_addresses() {
        let check = |text: &str, first: &str, last: &str, named: u64| {
            let network = Network::parse(text).unwrap();
            let usable = usable(network);
            assert_eq!(
                (usable.start().to_string(), usable.end().to_string()),
                (first.into(), last.into())
            );
            assert_eq!(left_for_named(network), named, "{text}");
        };

        check("10.0.0.0/28", "10.0.0.1", "10.0.0.14", 0);
        check("10.0.0.0/24", "10.0.0.1", "10.0.0.254", 16);
        check("10.0.0.0/16", "10.0.0.1", "10.0.255.254", 256);
        check("2001:db8::/112", "2001:db8::1", "2001:db8::ffff", 256);
    }
}
