//! Builds the subsets of an Endpoints object from a Service's pods. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::{Map, Value};
use coracle_client::Cached;

use crate::endpointslice::desired::{is_endpoint, target};
use crate::views::{Pod, Service};

/// The most addresses in Endpoints; slices have all.
pub const CAPACITY: usize = 1000;

/// Addresses with the same ports.
#[derive(Clone, Debug, Default, PartialEq)]
struct Subset {
    ports: Vec<Value>,
    ready: Vec<Value>,
    not_ready: Vec<Value>,
}

/// The subsets, and whether addresses were omitted.
pub fn subsets(
    service: &Service,
    pods: &[Arc<Cached<Pod>>],
    capacity: usize,
) -> (Vec<Value>, bool) {
    let mut subsets: BTreeMap<Vec<(String, i64, String)>, Subset> = BTreeMap::new();
    let family = service.families().first().copied().unwrap_or("IPv4");
    let mut pods: Vec<_> = pods
        .iter()
        .filter_map(|pod| Some((address_of(pod, family)?, pod)))
        .collect();
    pods.sort_by(|one, other| (one.0, &one.1.uid).cmp(&(other.0, &other.1.uid)));

    for (ip, pod) in pods {
        if !is_endpoint(pod) || (pod.is_being_deleted && !service.publishes_not_ready()) {
            continue;
        }

        let mut ports: Vec<_> = service
            .ports()
            .filter_map(|port| port_of(port, pod))
            .collect();

        if ports.is_empty() && service.ports().next().is_some() {
            continue;
        }

        ports.sort_by(|one, other| one.0.cmp(&other.0));
        let (names, ports): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
        let subset = subsets.entry(names).or_insert_with(|| Subset {
            ports,
            ..Subset::default()
        });

        let ready = service.publishes_not_ready() || pod.is_ready();
        let addresses = if ready {
            &mut subset.ready
        } else {
            &mut subset.not_ready
        };
        addresses.push(address(service, pod, ip));
    }

    let mut subsets: Vec<Subset> = subsets.into_values().collect();
    let truncated = truncate(&mut subsets, capacity);
    let shown = subsets
        .into_iter()
        .filter(|subset| !subset.ready.is_empty() || !subset.not_ready.is_empty());

    (shown.map(value).collect(), truncated)
}

fn address_of(pod: &Pod, family: &str) -> Option<IpAddr> {
    pod.ips
        .iter()
        .filter_map(|ip| ip.parse::<IpAddr>().ok())
        .find(|ip| ip.is_ipv4() == (family == "IPv4"))
}

type Named = ((String, i64, String), Value);

fn port_of(port: &Map, pod: &Pod) -> Option<Named> {
    let number = Service::target_port(port, pod)?;
    let mut found = Map::new();
    if !port.text("name").is_empty() {
        found.insert("name", port.text("name"));
    }

    found.insert("port", number);
    found.insert("protocol", port.text("protocol"));

    if let Some(spoken) = port.get("appProtocol").filter(|spoken| !spoken.is_null()) {
        found.insert("appProtocol", spoken.clone());
    }

    Some((
        (
            port.text("name").to_string(),
            number,
            port.text("protocol").to_string(),
        ),
        Value::Object(found),
    ))
}

fn address(service: &Service, pod: &Cached<Pod>, ip: IpAddr) -> Value {
    let mut address = Map::new();
    address.insert("ip", ip.to_string());
    if let Some(hostname) = service.hostname_of(pod) {
        address.insert("hostname", hostname.clone());
    }
    if !pod.node.is_empty() {
        address.insert("nodeName", pod.node.clone());
    }
    address.insert("targetRef", target(pod));
    Value::Object(address)
}

/// Omits addresses until the capacity is met: unready ones first, from each subset its share.
fn truncate(subsets: &mut [Subset], capacity: usize) -> bool {
    let ready: usize = subsets.iter().map(|subset| subset.ready.len()).sum();
    let not_ready: usize = subsets.iter().map(|subset| subset.not_ready.len()).sum();
    if ready + not_ready <= capacity {
        return false;
    }

    let (most, total) = if ready > capacity {
        (capacity, ready)
    } else {
        (capacity - ready, not_ready)
    };

    let mut left = most;
    for subset in subsets {
        let addresses = if ready > capacity {
            &mut subset.ready
        } else {
            &mut subset.not_ready
        };
        let share = (addresses.len() * most).div_ceil(total).min(left);
        addresses.truncate(share);
        left -= addresses.len();

        if ready > capacity {
            subset.not_ready.clear();
        }
    }

    true
}

fn value(subset: Subset) -> Value {
    let mut value = Map::new();
    for (name, items) in [
        ("addresses", subset.ready),
        ("notReadyAddresses", subset.not_ready),
        ("ports", subset.ports),
    ] {
        if !items.is_empty() {
            value.insert(name, items);
        }
    }
    Value::Object(value)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn service(spec: &str) -> Arc<Cached<Service>> {
        let text = format!("{{metadata: {{name: web, namespace: d}}, spec: {{{spec}}}}}");
        Arc::new(Cached::of(yaml::decode(text.as_bytes()).unwrap()).unwrap())
    }

    fn pod(ip: u8, ready: &str, port: i64, more: &str) -> Arc<Cached<Pod>> {
        let text = format!(
            "{{metadata: {{name: p{ip}, namespace: d, uid: u{ip}{more}}}, spec: {{containers: [{{name: c, \
             ports: [{{name: http, containerPort: {port}, protocol: TCP}}]}}]}}, status: {{phase: Running, \
             podIPs: [{{ip: 10.0.0.{ip}}}], conditions: [{{type: Ready, status: '{ready}'}}]}}}}"
        );
        Arc::new(Cached::of(yaml::decode(text.as_bytes()).unwrap()).unwrap())
    }

    /// `ready|not ready:port` of each subset.
    fn rendered(service: &Service, pods: &[Arc<Cached<Pod>>], capacity: usize) -> Vec<String> {
        let list = |subset: &Value, name: &str| {
            let items = subset
                .get(name)
                .and_then(Value::as_array)
                .unwrap_or_default();
            let ips = items
                .iter()
                .filter_map(|item| item.get("ip")?.as_str()?.rsplit('.').next());
            ips.map(str::to_string).collect::<Vec<_>>().join(",")
        };

        let port = |subset: &Value| {
            let ports = subset
                .get("ports")
                .and_then(Value::as_array)
                .unwrap_or_default();
            ports
                .first()
                .and_then(|port| port.get("port")?.as_int())
                .unwrap_or_default()
        };

        let (subsets, _) = subsets(service, pods, capacity);

        let show = |subset: &Value| {
            format!(
                "{}|{}:{}",
                list(subset, "addresses"),
                list(subset, "notReadyAddresses"),
                port(subset)
            )
        };

        subsets.iter().map(show).collect()
    }

    const NAMED: &str = "ports: [{name: w, port: 80, targetPort: http, protocol: TCP}]";

    #[test]
    fn addresses_with_the_same_ports_stand_together() {
        let going = ", deletionTimestamp: '2026-03-01T12:00:00Z'";
        let pods = [
            pod(3, "True", 1, ""),
            pod(2, "False", 1, ""),
            pod(1, "True", 2, ""),
            pod(4, "True", 1, going),
        ];

        let check = |spec: &str, expected: &[&str]| {
            assert_eq!(rendered(&service(spec), &pods, 10), expected, "{spec}")
        };
        check(NAMED, &["3|2:1", "1|:2"]);
        check(
            "ports: [{port: 80, targetPort: 9, protocol: TCP}]",
            &["1,3|2:9"],
        );

        check("ports: [{port: 80, targetPort: none, protocol: TCP}]", &[]);
        check("clusterIP: None", &["1,3|2:0"]);
        check(
            &format!("{NAMED}, publishNotReadyAddresses: true"),
            &["2,3,4|:1", "1|:2"],
        );
    }

    #[test]
    fn too_many_addresses_are_left_out_the_unready_first() {
        let pods: Vec<_> = (1..=4).map(|ip| pod(ip, "True", 1, "")).collect();
        let mixed: Vec<_> = (1..=4)
            .map(|ip| pod(ip, if ip < 3 { "True" } else { "False" }, 1, ""))
            .collect();
        assert_eq!(rendered(&service(NAMED), &pods, 3), ["1,2,3|:1"]);
        assert_eq!(rendered(&service(NAMED), &mixed, 3), ["1,2|3:1"]);
        assert_eq!(rendered(&service(NAMED), &mixed, 1), ["1|:1"]);
        assert!(subsets(&service(NAMED), &mixed, 3).1);
        assert!(!subsets(&service(NAMED), &mixed, 4).1);
    }
}
