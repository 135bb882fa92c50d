//! Where a Service is, as the server sees it on its machine. Texts are upstream's.

use coracle_api::catalog::BUILTIN;
use coracle_api::go_text::Quoted;
use coracle_api::{Map, Value};

use super::ServiceRef;
use crate::cache::Caches;

/// How the server reaches the pods behind a Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// By its cluster address, which the service proxy of the machine forwards.
    #[default]
    ClusterIp,
    /// By the address of an endpoint (`--enable-aggregator-routing`).
    Endpoints,
}

/// The host and port to connect to.
///
/// # Errors
/// There is none now, with a text for users.
pub fn resolve(
    caches: &Caches,
    route: Route,
    random: fn() -> u64,
    service: &ServiceRef,
) -> Result<(String, u16), String> {
    let found = self::service(caches, service);
    let found = found.ok_or_else(|| format!("service {} not found", Quoted(&service.name)))?;
    let spec = found.get("spec").and_then(Value::as_object);
    let empty = Map::new();
    let spec = spec.unwrap_or(&empty);

    match route {
        Route::ClusterIp => cluster_ip(spec, service),
        Route::Endpoints => {
            let slices = slices(caches, service);
            let start = usize::try_from(random() >> 33).unwrap_or_default();
            endpoint(spec, service, &slices, start)
        }
    }
}

fn cluster_ip(spec: &Map, service: &ServiceRef) -> Result<(String, u16), String> {
    match spec.text("type") {
        "ClusterIP" if spec.text("clusterIP") == "None" => {
            Err("cannot route to service with ClusterIP \"None\"".to_owned())
        }
        "ClusterIP" | "LoadBalancer" | "NodePort" => {
            port_name(spec, service)?;
            Ok((spec.text("clusterIP").to_owned(), service.port))
        }
        "ExternalName" => Ok((spec.text("externalName").to_owned(), service.port)),
        other => Err(format!("unsupported service type {}", Quoted(other))),
    }
}

/// A ready endpoint, looked for from `start` on; those of the Service's first family come first.
fn endpoint(
    spec: &Map,
    service: &ServiceRef,
    slices: &[Value],
    start: usize,
) -> Result<(String, u16), String> {
    let kind = spec.text("type");
    if !matches!(kind, "ClusterIP" | "LoadBalancer" | "NodePort") {
        return Err(format!("unsupported service type {}", Quoted(kind)));
    }

    let port = port_name(spec, service)?;
    let family = spec
        .items("ipFamilies")
        .first()
        .and_then(Value::as_str)
        .unwrap_or_default();

    let mut ordered: Vec<&Map> = slices.iter().filter_map(Value::as_object).collect();
    if !ordered.is_empty() {
        let rotated = start % ordered.len();
        ordered.rotate_left(rotated);
    }
    ordered.sort_by_key(|slice| slice.text("addressType") != family);

    for slice in ordered {
        let mut ports = slice.items("ports").iter().filter_map(Value::as_object);
        let number = ports
            .find(|candidate| candidate.text("name") == port)
            .and_then(|port| u16::try_from(port.int("port")).ok());
        let Some(number) = number.filter(|number| *number != 0) else {
            continue;
        };

        let endpoints = slice.items("endpoints");
        let ready = |place: usize| {
            let endpoint = endpoints[place % endpoints.len()].as_object()?;
            let conditions = endpoint.below("conditions");
            let is_ready = conditions
                .and_then(|conditions| conditions.get("ready"))
                .is_none_or(|ready| ready.as_bool() != Some(false));
            let address = endpoint.items("addresses").first()?.as_str()?;
            is_ready.then(|| address.to_owned())
        };

        let found = (0..endpoints.len()).find_map(|offset| ready(start % endpoints.len() + offset));
        if let Some(address) = found {
            return Ok((address, number));
        }
    }

    Err(format!(
        "no endpoints available for service {}",
        Quoted(&service.name)
    ))
}

fn port_name<'s>(spec: &'s Map, service: &ServiceRef) -> Result<&'s str, String> {
    let mut ports = spec.items("ports").iter().filter_map(Value::as_object);
    ports
        .find(|port| port.int("port") == i64::from(service.port))
        .map(|port| port.text("name"))
        .ok_or_else(|| {
            let name = Quoted(&service.name);
            format!("no service port {} found for service {name}", service.port)
        })
}

/// The Service itself, if there is one.
pub(crate) fn service(caches: &Caches, service: &ServiceRef) -> Option<Value> {
    object(caches, "", "services", &service.namespace, &service.name)
}

/// Its EndpointSlices.
pub(crate) fn slices(caches: &Caches, service: &ServiceRef) -> Vec<Value> {
    let Some(cache) = cache(caches, "discovery.k8s.io", "endpointslices") else {
        return Vec::new();
    };
    let prefix = format!("{}/", service.namespace);
    let snapshot = cache.snapshot();
    let all = snapshot.entries.below(&prefix, &prefix);
    all.map(|entry| entry.value(cache.storage_version().of))
        .filter(|slice| {
            let labels = slice.meta().labels();
            let of = labels.and_then(|labels| labels.get("kubernetes.io/service-name"));
            of.and_then(Value::as_str) == Some(&service.name)
        })
        .collect()
}

fn object(
    caches: &Caches,
    group: &str,
    plural: &str,
    namespace: &str,
    name: &str,
) -> Option<Value> {
    let cache = cache(caches, group, plural)?;
    let entry = cache.get(&format!("{namespace}/{name}"))?;
    Some(entry.value(cache.storage_version().of))
}

fn cache<'c>(
    caches: &'c Caches,
    group: &str,
    plural: &str,
) -> Option<&'c std::sync::Arc<crate::cache::Cache>> {
    let resource = BUILTIN.resource(group, "v1", plural)?;
    caches.get(&resource.storage.as_ref()?.prefix)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn service(port: u16) -> ServiceRef {
        ServiceRef {
            namespace: "ns".to_owned(),
            name: "hook".to_owned(),
            path: String::new(),
            port,
        }
    }

    fn tree(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_service_is_reached_at_its_cluster_address() {
        let check = |spec: &str, expected: Result<(&str, u16), &str>| {
            let spec = tree(spec);
            let found = cluster_ip(spec.as_object().unwrap(), &service(443));
            let expected = expected
                .map(|(host, port)| (host.to_owned(), port))
                .map_err(str::to_owned);
            assert_eq!(found, expected);
        };
        let ports = r#""ports":[{"port":443}]"#;

        check(
            &format!(r#"{{"type":"ClusterIP","clusterIP":"10.0.0.7",{ports}}}"#),
            Ok(("10.0.0.7", 443)),
        );
        check(
            &format!(r#"{{"type":"ClusterIP","clusterIP":"None",{ports}}}"#),
            Err("cannot route to service with ClusterIP \"None\""),
        );
        check(
            r#"{"type":"NodePort","clusterIP":"10.0.0.7","ports":[{"port":80}]}"#,
            Err("no service port 443 found for service \"hook\""),
        );
        check(
            r#"{"type":"ExternalName","externalName":"a.example"}"#,
            Ok(("a.example", 443)),
        );
        check(r#"{"type":"X"}"#, Err("unsupported service type \"X\""));
    }

    #[test]
    fn an_endpoint_is_ready_has_the_port_and_is_of_the_first_family() {
        let spec = tree(
            r#"{"type":"ClusterIP","ipFamilies":["IPv4"],"ports":[{"port":443,"name":"https"}]}"#,
        );
        let slices = [
            tree(
                r#"{"addressType":"IPv6","ports":[{"name":"https","port":8443}],
                "endpoints":[{"addresses":["fd00::1"]}]}"#,
            ),
            tree(
                r#"{"addressType":"IPv4","ports":[{"name":"other","port":1}],
                "endpoints":[{"addresses":["10.1.0.9"]}]}"#,
            ),
            tree(
                r#"{"addressType":"IPv4","ports":[{"name":"https","port":8443}],
                "endpoints":[{"addresses":["10.1.0.1"],"conditions":{"ready":false}},
                {"addresses":["10.1.0.2"],"conditions":{"ready":true}}]}"#,
            ),
        ];
        let find = |slices: &[Value], start| {
            endpoint(spec.as_object().unwrap(), &service(443), slices, start)
        };

        for start in 0..4 {
            assert_eq!(find(&slices, start), Ok(("10.1.0.2".to_owned(), 8443)));
        }
        assert_eq!(find(&slices[..2], 0), Ok(("fd00::1".to_owned(), 8443)));
        let none = "no endpoints available for service \"hook\"".to_owned();
        assert_eq!(find(&slices[1..2], 0), Err(none.clone()));
        assert_eq!(find(&[], 3), Err(none));
    }
}
