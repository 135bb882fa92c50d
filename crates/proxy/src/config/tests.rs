use super::*;

const HEAD: &str = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

fn read(rest: &str) -> Result<Config, Vec<String>> {
    Config::from_file(format!("{HEAD}{rest}").as_bytes())
        .map(|file| file.config)
        .map_err(|error| error.0)
}

#[test]
fn unset_fields_have_defaults() {
    assert_eq!(read(""), Ok(Config::default()));
    assert_eq!(
        read("mode: nftables\nnftables: {minSyncPeriod: 0s, syncPeriod: 0s}\n"),
        Ok(Config::default())
    );
}

#[test]
fn set_fields_are_used() {
    let value = read(
        "clusterCIDR: 10.244.0.0/16,fd00::/56\nnodePortAddresses: [192.0.2.0/24]\nhostnameOverride: Node1\n\
         healthzBindAddress: 127.0.0.1:7\nnftables: {masqueradeBit: 3, masqueradeAll: true, minSyncPeriod: 5s}\n",
    );

    let net = |text: &str| text.parse().unwrap();
    let expected = Config {
        node: "node1".to_owned(),
        node_port_addresses: NodePortAddresses::Ranges(vec![net("192.0.2.0/24")]),
        detect_local: DetectLocal::ClusterRanges(vec![net("10.244.0.0/16"), net("fd00::/56")]),
        min_sync_period: Duration::from_secs(5),
        masquerade_bit: 3,
        masquerade_all: true,
        healthz: Some("127.0.0.1:7".parse().unwrap()),
        ..Config::default()
    };
    assert_eq!(value, Ok(expected));
}

#[test]
fn all_errors_are_reported_together() {
    let check = |rest: &str, expected: &[&str]| {
        let errors = read(rest).unwrap_err();
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
        for (mistake, expected) in errors.iter().zip(expected) {
            assert!(mistake.contains(expected), "{mistake} has no {expected}");
        }
    };
    check("clusterCidr: 10.0.0.0/8\n", &["clusterCidr"]);

    check("nftables: {bits: 1}\n", &["bits"]);
    check(
        "mode: ipvs\nnodePortAddresses: [primary, 10.0.0.0/8]\n",
        &["only nftables", "can't use both"],
    );

    check(
        "detectLocalMode: Guess\n",
        &["Unsupported value: \"Guess\""],
    );

    check("detectLocalMode: BridgeInterface\n", &["must not be empty"]);
    check(
        "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: 'a\" b'}\n",
        &["the name of"],
    );

    check(
        "nftables: {masqueradeBit: 32, minSyncPeriod: 1h}\n",
        &["greater than or equal", "[0, 31]"],
    );

    check("healthzBindAddress: here\n", &["must be IP:port"]);
}
