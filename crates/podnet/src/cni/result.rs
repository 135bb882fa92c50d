//! Parses plugin results of all versions.

use std::net::IpAddr;

use serde_json::Value;

/// The pod's addresses in a result: those of the interface with this name in the pod, or without an
/// interface.
pub(super) fn addresses(result: &Value, interface: &str) -> Vec<IpAddr> {
    // Up to version 0.2.0: one address per family.
    let old = ["ip4", "ip6"]
        .iter()
        .filter_map(|family| result.get(family)?.get("ip")?.as_str());
    let interfaces = result
        .get("interfaces")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);

    let is_the_pods = |address: &&Value| {
        let at = address
            .get("interface")
            .and_then(Value::as_u64)
            .and_then(|at| usize::try_from(at).ok());

        let Some(found) = at.and_then(|at| interfaces.get(at)) else {
            return true;
        };
        let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
        text("name") == interface && !text("sandbox").is_empty()
    };

    let new = result
        .get("ips")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);

    let new = new
        .iter()
        .filter(is_the_pods)
        .filter_map(|address| address.get("address")?.as_str());

    old.chain(new)
        .filter_map(|text| text.split('/').next()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_of_every_version_are_found() {
        let check = |result: Value, expected: &[&str]| {
            let found: Vec<String> = addresses(&result, "eth0")
                .iter()
                .map(IpAddr::to_string)
                .collect();
            assert_eq!(found, expected, "{result}");
        };

        check(
            json!({"ip4": {"ip": "10.0.0.2/24"}, "ip6": {"ip": "fd00::2/64"}}),
            &["10.0.0.2", "fd00::2"],
        );

        check(
            json!({"ips": [{"version": "4", "address": "10.0.0.2/24"}]}),
            &["10.0.0.2"],
        );

        let interfaces = json!([{"name": "cni0"}, {"name": "eth0", "sandbox": "/ns"}, {"name": "eth1", "sandbox": "/ns"}]);
        let ips = json!([
            {"address": "fd00::2/64", "interface": 1},
            {"address": "10.0.0.2/24", "interface": 1},
            {"address": "10.9.0.2/24", "interface": 2},
            {"address": "10.0.0.1/24", "interface": 0},
        ]);

        check(
            json!({"interfaces": interfaces, "ips": ips}),
            &["fd00::2", "10.0.0.2"],
        );

        check(json!({}), &[]);
        check(json!({"ips": "x"}), &[]);
    }
}
