//! Resolves where a request is forwarded to: which container, which node, which pod behind which
//! service. Pure: lookups are passed in. Texts are upstream's.

use std::net::IpAddr;

use coracle_base::net::authority;
use k8s_openapi::api::core::v1::{Node, Pod};

use crate::ApiError;

/// A backend to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Backend {
    /// Whether it is a kubelet: then the client certificate is sent.
    pub(super) is_kubelet: bool,
    pub(super) tls: bool,
    /// An address or a name.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Backend {
    /// `host:port`, as URLs have it.
    pub(super) fn authority(&self) -> String {
        authority(&self.host, self.port)
    }
}

/// The container that is meant, where a request names none or one.
pub(super) fn container(pod: &Pod, name: &str, wanted: &str) -> Result<String, ApiError> {
    let names = container_names(pod);
    if !wanted.is_empty() {
        return match names.contains(&wanted) {
            true => Ok(wanted.to_owned()),
            false => Err(ApiError::bad_request(format!(
                "container {wanted} is not valid for pod {name}"
            ))),
        };
    }

    match pod
        .spec
        .as_ref()
        .map(|spec| spec.containers.as_slice())
        .unwrap_or_default()
    {
        [one] => Ok(one.name.clone()),
        [] => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}"
        ))),
        _ => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            names.join(" ")
        ))),
    }
}

/// Init containers first, then main ones, then ephemeral ones.
fn container_names(pod: &Pod) -> Vec<&str> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };
    let init = spec
        .init_containers
        .iter()
        .flatten()
        .map(|container| container.name.as_str());

    let main = spec
        .containers
        .iter()
        .map(|container| container.name.as_str());

    let ephemeral = spec
        .ephemeral_containers
        .iter()
        .flatten()
        .map(|container| container.name.as_str());

    init.chain(main).chain(ephemeral).collect()
}

/// The kubelet of a node.
pub(super) fn kubelet(
    node: &Node,
    preferred: &[String],
    default_port: u16,
) -> Result<Backend, ApiError> {
    let status = node.status.as_ref();
    let addresses = status
        .and_then(|status| status.addresses.as_deref())
        .unwrap_or_default();

    let found = preferred
        .iter()
        .find_map(|kind| addresses.iter().find(|address| address.type_ == *kind));
    let Some(found) = found else {
        let known: Vec<String> = addresses
            .iter()
            .map(|address| format!("{{{} {}}}", address.type_, address.address))
            .collect();

        let text = format!(
            "no preferred addresses found; known addresses: [{}]",
            known.join(" ")
        );

        return Err(ApiError::unexplained(text));
    };

    let endpoint =
        status.and_then(|status| status.daemon_endpoints.as_ref()?.kubelet_endpoint.as_ref());
    let port = endpoint
        .and_then(|endpoint| u16::try_from(endpoint.port).ok())
        .filter(|port| *port > 0);

    Ok(Backend {
        is_kubelet: true,
        tls: true,
        host: found.address.clone(),
        port: port.unwrap_or(default_port),
    })
}

/// The name in a path to a proxy: `name`, `name:port` or `scheme:name:port`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyName<'a> {
    pub(super) tls: bool,
    pub(super) name: &'a str,
    /// A number or a name; empty: not given.
    pub(super) port: &'a str,
}

impl<'a> ProxyName<'a> {
    /// `what`: a pod, a service, a node.
    pub(super) fn parse(text: &'a str, what: &str) -> Result<ProxyName<'a>, ApiError> {
        let parts: Vec<&str> = text.split(':').collect();
        let named = match parts[..] {
            [name] => Some(ProxyName {
                tls: false,
                name,
                port: "",
            }),
            [name, port] => Some(ProxyName {
                tls: false,
                name,
                port,
            }),
            ["http", name, port] => Some(ProxyName {
                tls: false,
                name,
                port,
            }),
            ["https", name, port] => Some(ProxyName {
                tls: true,
                name,
                port,
            }),
            _ => None,
        };

        let named = named.filter(|named| !named.name.is_empty());
        named.ok_or_else(|| ApiError::bad_request(format!("invalid {what} request {text:?}")))
    }

    pub(super) fn port_number(&self) -> Option<u16> {
        self.port.parse().ok()
    }
}

/// The port of a pod that a proxy is for.
pub(super) fn pod(pod: &Pod, named: &ProxyName<'_>) -> Result<Backend, ApiError> {
    let ips = pod
        .status
        .as_ref()
        .and_then(|status| status.pod_ips.as_deref())
        .unwrap_or_default();

    let address = ips.first().map(|ip| ip.ip.as_str()).unwrap_or_default();
    if !address.parse().is_ok_and(is_global_unicast) {
        return Err(ApiError::bad_request("address not allowed"));
    }

    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut declared = containers.filter_map(|container| container.ports.as_ref()?.first());

    let port = match named.port {
        "" => declared
            .next()
            .and_then(|port| u16::try_from(port.container_port).ok()),
        _ => Some(named.port_number().ok_or_else(|| {
            // A port name cannot be connected to.
            ApiError::service_unavailable(format!(
                "error trying to reach service: dial tcp: lookup tcp/{}: unknown port",
                named.port
            ))
        })?),
    };
    let port = port.unwrap_or(if named.tls { 443 } else { 80 });

    Ok(Backend {
        is_kubelet: false,
        tls: named.tls,
        host: address.to_owned(),
        port,
    })
}

/// Whether an address may be proxied to at all: nothing that is the server's own.
pub(super) fn check_proxyable(host: &str) -> Result<(), ApiError> {
    match host.parse::<IpAddr>() {
        Ok(address) if !is_global_unicast(address) => {
            Err(ApiError::bad_request("address not allowed"))
        }
        // Host names are checked by their addresses when they are resolved.
        _ => Ok(()),
    }
}

pub(super) fn is_global_unicast(address: IpAddr) -> bool {
    // The kernel connects an IPv4 address that is written as one of IPv6 to the IPv4 address.
    let address = address.to_canonical();
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_broadcast
        || is_link_local(address))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;
    use coracle_api::typed;

    use super::*;

    fn read<T: serde::de::DeserializeOwned>(text: &str) -> T {
        typed::from_tree(&json::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_container_is_chosen_where_there_is_no_choice() {
        let check = |spec: &str, wanted, expected: Result<&str, &str>| {
            let found = container(&read(spec), "p", wanted).map_err(|error| error.message);
            assert_eq!(
                found,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{spec}"
            );
        };

        let one = r#"{"spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}]}}"#;
        let two = r#"{"spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}}"#;
        check(one, "", Ok("a"));

        check(one, "i", Ok("i"));
        check(one, "x", Err("container x is not valid for pod p"));
        check(
            two,
            "",
            Err("a container name must be specified for pod p, choose one of: [i a b]"),
        );

        check(two, "b", Ok("b"));
    }

    #[test]
    fn a_kubelet_is_found_by_the_preferred_address() {
        let preferred = ["Hostname", "InternalIP"].map(str::to_owned);
        let check = |status: &str, expected: Result<(&str, u16), &str>| {
            let node = read(&format!(r#"{{"status": {status}}}"#));
            let found = kubelet(&node, &preferred, 10250);
            let found = found
                .map(|backend| (backend.host, backend.port))
                .map_err(|error| error.message);
            let expected = expected
                .map(|(host, port)| (host.to_owned(), port))
                .map_err(str::to_owned);
            assert_eq!(found, expected, "{status}");
        };

        let addresses = r#""addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n"}]"#;
        check(&format!("{{{addresses}}}"), Ok(("n", 10250)));
        check(
            &format!(
                r#"{{{addresses}, "daemonEndpoints": {{"kubeletEndpoint": {{"Port": 1250}}}}}}"#
            ),
            Ok(("n", 1250)),
        );

        check(
            r#"{"addresses": [{"type": "ExternalIP", "address": "1.2.3.4"}]}"#,
            Err("no preferred addresses found; known addresses: [{ExternalIP 1.2.3.4}]"),
        );

        check(
            "{}",
            Err("no preferred addresses found; known addresses: []"),
        );
    }

    #[test]
    fn names_in_paths_may_have_scheme_and_port() {
        let check = |text, expected: Option<(bool, &str, &str)>| {
            let found = ProxyName::parse(text, "pod")
                .ok()
                .map(|named| (named.tls, named.name, named.port));
            assert_eq!(found, expected, "{text}");
        };

        check("a", Some((false, "a", "")));
        check("a:80", Some((false, "a", "80")));
        check("https:a:", Some((true, "a", "")));
        check("http:a:web", Some((false, "a", "web")));
        check("ftp:a:80", None);
        check(":80", None);
        check("a:b:c:d", None);
    }

    #[test]
    fn pods_are_reached_at_addresses_that_are_theirs() {
        let check = |pod_text: &str, name: &'static str, expected: Result<&str, &str>| {
            let found = pod(&read(pod_text), &ProxyName::parse(name, "pod").unwrap());
            let found = found
                .map(|backend| backend.authority())
                .map_err(|error| error.message);
            assert_eq!(
                found,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{pod_text} {name}"
            );
        };

        let with = |ip: &str| {
            format!(
                r#"{{"spec": {{"containers": [{{"name": "a"}}, {{"name": "b", "ports": [{{"containerPort": 8080}}]}}]}},
                    "status": {{"podIPs": [{{"ip": "{ip}"}}]}}}}"#
            )
        };

        check(&with("10.0.0.7"), "p", Ok("10.0.0.7:8080"));
        check(&with("10.0.0.7"), "p:90", Ok("10.0.0.7:90"));
        check(&with("fd00::7"), "p:90", Ok("[fd00::7]:90"));
        check(&with("127.0.0.1"), "p", Err("address not allowed"));
        check(&with("169.254.169.254"), "p", Err("address not allowed"));
        check(
            r#"{"spec": {"containers": []}}"#,
            "p",
            Err("address not allowed"),
        );
    }

    #[test]
    fn an_address_of_the_server_itself_is_refused_however_it_is_written() {
        let check = |address: &str, expected: bool| {
            assert_eq!(
                is_global_unicast(address.parse().unwrap()),
                expected,
                "{address}"
            );
            assert_eq!(check_proxyable(address).is_ok(), expected, "{address}");
        };

        for inner in [
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
        ] {
            check(inner, false);
            check(&format!("::ffff:{inner}"), false);
        }

        for own in ["::1", "::", "fe80::1", "ff02::1"] {
            check(own, false);
        }

        for other in ["10.0.0.7", "::ffff:10.0.0.7", "fd00::7", "2001:db8::1"] {
            check(other, true);
        }
    }
}
