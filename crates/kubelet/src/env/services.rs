//! Environment variables of Services, in the format that predates cluster DNS.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::typed::{self, TypedError};
use coracle_client::Projection;
use k8s_openapi::api::core::v1::Service;

/// The Service of the API server, visible to every pod.
const API_SERVER: (&str, &str) = ("default", "kubernetes");

/// The fields used of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceLink {
    namespace: String,
    name: String,
    /// Empty or `None`: there is no cluster IP.
    address: String,
    ports: Vec<Port>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Port {
    name: Option<String>,
    number: i32,
    protocol: String,
}

impl Projection for ServiceLink {
    fn project(object: &Arc<Value>) -> Result<ServiceLink, TypedError> {
        typed::from_tree::<Service>(object).map(|service| ServiceLink::of(&service))
    }
}

impl ServiceLink {
    pub(super) fn of(service: &Service) -> ServiceLink {
        let spec = service.spec.clone().unwrap_or_default();
        let port = |port: k8s_openapi::api::core::v1::ServicePort| Port {
            name: port.name.filter(|name| !name.is_empty()),
            number: port.port,
            protocol: port
                .protocol
                .filter(|protocol| !protocol.is_empty())
                .unwrap_or("TCP".to_owned()),
        };

        ServiceLink {
            namespace: service.metadata.namespace.clone().unwrap_or_default(),
            name: service.metadata.name.clone().unwrap_or_default(),
            address: spec.cluster_ip.unwrap_or_default(),
            ports: spec
                .ports
                .unwrap_or_default()
                .into_iter()
                .map(port)
                .collect(),
        }
    }

    fn has_address(&self) -> bool {
        !matches!(self.address.as_str(), "" | "None") && !self.ports.is_empty()
    }

    fn is_the_api_server(&self) -> bool {
        (self.namespace.as_str(), self.name.as_str()) == API_SERVER
    }
}

/// The variables for pods of a namespace: of its own Services if `enableServiceLinks` is set, and
/// always of the API server, unless a Service of the namespace has the same name.
pub(super) fn service_variables<'a>(
    services: impl IntoIterator<Item = &'a ServiceLink>,
    namespace: &str,
    links: bool,
) -> BTreeMap<String, String> {
    let mut by_name: BTreeMap<&str, &ServiceLink> = BTreeMap::new();
    for service in services.into_iter().filter(|service| service.has_address()) {
        if service.is_the_api_server() {
            by_name.entry(&service.name).or_insert(service);
        } else if links && service.namespace == namespace {
            by_name.insert(&service.name, service);
        }
    }
    by_name
        .values()
        .flat_map(|service| variables(service))
        .collect()
}

fn variables(service: &ServiceLink) -> Vec<(String, String)> {
    let prefix = variable_name(&service.name);
    let address = &service.address;

    let mut all = vec![(format!("{prefix}_SERVICE_HOST"), address.clone())];
    for (index, port) in service.ports.iter().enumerate() {
        let number = port.number.to_string();
        if index == 0 {
            all.push((format!("{prefix}_SERVICE_PORT"), number.clone()));
        }

        if let Some(name) = &port.name {
            all.push((
                format!("{prefix}_SERVICE_PORT_{}", variable_name(name)),
                number.clone(),
            ));
        }
    }

    // Compatible with Docker's container links.
    for (index, port) in service.ports.iter().enumerate() {
        let (number, protocol) = (port.number.to_string(), port.protocol.to_lowercase());
        let host = if address.contains(':') {
            format!("[{address}]")
        } else {
            address.clone()
        };

        let url = format!("{protocol}://{host}:{number}");
        if index == 0 {
            all.push((format!("{prefix}_PORT"), url.clone()));
        }

        let prefix = format!("{prefix}_PORT_{number}_{}", port.protocol.to_uppercase());
        all.push((prefix.clone(), url));
        all.push((format!("{prefix}_PROTO"), protocol));
        all.push((format!("{prefix}_PORT"), number));
        all.push((format!("{prefix}_ADDR"), address.clone()));
    }

    all
}

fn variable_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(namespace: &str, name: &str, address: &str, ports: &str) -> ServiceLink {
        let service = format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}"}},"spec":{{"clusterIP":"{address}","ports":{ports}}}}}"#
        );
        ServiceLink::of(&serde_json::from_str(&service).unwrap())
    }

    fn all() -> Vec<ServiceLink> {
        vec![
            service(
                "default",
                "kubernetes",
                "10.0.0.1",
                r#"[{"name":"https","port":443,"protocol":"TCP"}]"#,
            ),
            service(
                "shop",
                "web-shop",
                "10.0.0.9",
                r#"[{"port":80},{"name":"dns-udp","port":53,"protocol":"UDP"}]"#,
            ),
            service("shop", "six", "fd00::9", r#"[{"port":80}]"#),
            service("shop", "headless", "None", r#"[{"port":80}]"#),
            service("shop", "external", "", "[]"),
            service("other", "far", "10.0.0.8", r#"[{"port":80}]"#),
        ]
    }

    #[test]
    fn the_api_server_always_has_variables() {
        let variables = service_variables(&all(), "shop", false);
        let expected = [
            ("KUBERNETES_PORT", "tcp://10.0.0.1:443"),
            ("KUBERNETES_PORT_443_TCP", "tcp://10.0.0.1:443"),
            ("KUBERNETES_PORT_443_TCP_ADDR", "10.0.0.1"),
            ("KUBERNETES_PORT_443_TCP_PORT", "443"),
            ("KUBERNETES_PORT_443_TCP_PROTO", "tcp"),
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
            ("KUBERNETES_SERVICE_PORT", "443"),
            ("KUBERNETES_SERVICE_PORT_HTTPS", "443"),
        ];

        let variables: Vec<_> = variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(variables, expected);
    }

    #[test]
    fn services_of_the_namespace_have_variables_if_links_are_enabled() {
        let variables = service_variables(&all(), "shop", true);
        let check = |name: &str, value: Option<&str>| {
            assert_eq!(variables.get(name).map(String::as_str), value, "{name}")
        };
        check("WEB_SHOP_SERVICE_HOST", Some("10.0.0.9"));
        check("WEB_SHOP_SERVICE_PORT", Some("80"));
        check("WEB_SHOP_SERVICE_PORT_DNS_UDP", Some("53"));
        check("WEB_SHOP_PORT", Some("tcp://10.0.0.9:80"));
        check("WEB_SHOP_PORT_53_UDP", Some("udp://10.0.0.9:53"));

        check("WEB_SHOP_PORT_53_UDP_PROTO", Some("udp"));
        check("SIX_PORT_80_TCP", Some("tcp://[fd00::9]:80"));
        check("SIX_PORT_80_TCP_ADDR", Some("fd00::9"));
        check("HEADLESS_SERVICE_HOST", None);
        check("FAR_SERVICE_HOST", None);
        check("KUBERNETES_SERVICE_HOST", Some("10.0.0.1"));
    }

    #[test]
    fn a_service_of_the_namespace_may_take_the_api_servers_name() {
        let mut services = all();
        services.push(service("shop", "kubernetes", "10.0.0.7", r#"[{"port":1}]"#));
        assert_eq!(
            service_variables(&services, "shop", true)["KUBERNETES_SERVICE_HOST"],
            "10.0.0.7"
        );
        services.reverse();
        assert_eq!(
            service_variables(&services, "shop", true)["KUBERNETES_SERVICE_HOST"],
            "10.0.0.7"
        );
    }
}
