use std::io;

use coracle_proxy::compile::NodePortAddresses;
use coracle_proxy::{Config, DetectLocal};
use coracle_settings::Request;

use super::program::PROGRAM;

/// The configuration of flags and a file without its head.
fn read(flags: &[&str], file: &str) -> Result<Config, Vec<String>> {
    let head = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";
    let mut arguments: Vec<String> = flags.iter().map(ToString::to_string).collect();
    if !file.is_empty() {
        arguments.push(String::from("--config=c.yaml"));
    }
    arguments.push(String::from("--hostname-override=Node1"));

    let load = |_: &std::path::Path| io::Result::Ok(format!("{head}{file}").into_bytes());
    match PROGRAM
        .read(&arguments, load)
        .map_err(|mistakes| mistakes.0)?
    {
        Request::Run { options, .. } => options.complete().map_err(|mistakes| mistakes.0),
        other => panic!("not {:?}", matches!(other, Request::Help)),
    }
}

fn by_default() -> Config {
    Config {
        node: String::from("node1"),
        ..Config::default()
    }
}

#[test]
fn unset_values_have_defaults() {
    assert_eq!(read(&[], ""), Ok(by_default()));
    assert_eq!(
        read(
            &[],
            "mode: nftables\nnftables: {minSyncPeriod: 0s, syncPeriod: 0s}\n"
        ),
        Ok(by_default())
    );
}

/// What kubeadm 1.36 writes, with its pod subnet.
const KUBEADM: &str = "bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: \"\"
  burst: 0
  contentType: \"\"
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack: {maxPerCore: null, min: null, tcpBeLiberal: false, tcpCloseWaitTimeout: null, tcpEstablishedTimeout: null, udpStreamTimeout: 0s, udpTimeout: 0s}
detectLocal: {bridgeInterface: \"\", interfaceNamePrefix: \"\"}
detectLocalMode: \"\"
enableProfiling: false
healthzBindAddress: \"\"
hostnameOverride: \"\"
iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
ipvs: {excludeCIDRs: null, minSyncPeriod: 0s, scheduler: \"\", strictARP: false, syncPeriod: 0s, tcpFinTimeout: 0s, tcpTimeout: 0s, udpTimeout: 0s}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: \"0\"}, text: {infoBufferSize: \"0\"}}, verbosity: 0}
metricsBindAddress: \"\"
mode: \"\"
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: null
oomScoreAdj: null
portRange: \"\"
showHiddenMetricsForVersion: \"\"
winkernel: {enableDSR: false, forwardHealthCheckVip: false, networkName: \"\", rootHnsEndpointName: \"\", sourceVip: \"\"}
";

#[test]
fn the_file_of_kubeadm_is_accepted() {
    let expected = Config {
        detect_local: DetectLocal::ClusterRanges(vec!["10.244.0.0/16".parse().unwrap()]),
        ..by_default()
    };
    assert_eq!(read(&[], KUBEADM), Ok(expected));
}

#[test]
fn flags_and_keys_set_the_same() {
    let expected = Config {
        node_port_addresses: NodePortAddresses::Ranges(vec!["192.0.2.0/24".parse().unwrap()]),
        detect_local: DetectLocal::Bridge(String::from("cni0")),
        min_sync_period: std::time::Duration::from_secs(5),
        health_timeout: std::time::Duration::from_secs(20),
        masquerade_all: true,
        healthz: Some("127.0.0.1:7".parse().unwrap()),
        ..by_default()
    };

    let flags = [
        "--nodeport-addresses=192.0.2.0/24",
        "--detect-local-mode=BridgeInterface",
        "--pod-bridge-interface=cni0",
        "--iptables-min-sync-period=5s",
        "--iptables-sync-period=10s",
        "--masquerade-all",
        "--healthz-bind-address=127.0.0.1",
        "--healthz-port=7",
    ];
    assert_eq!(read(&flags, ""), Ok(expected.clone()));

    let file = "nodePortAddresses: [192.0.2.0/24]\ndetectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cni0}\n\
                nftables: {minSyncPeriod: 5s, syncPeriod: 10s, masqueradeAll: true}\nhealthzBindAddress: 127.0.0.1:7\n";
    assert_eq!(read(&[], file), Ok(expected.clone()));
    // As upstream, the file wins over flags that it has keys for.
    assert_eq!(read(&["--masquerade-all=false"], file), Ok(expected));
}

#[test]
fn all_errors_are_reported_together() {
    let check = |flags: &[&str], file: &str, expected: &[&str]| {
        let errors = read(flags, file).unwrap_err();
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.contains(expected), "{error} has no {expected}");
        }
    };

    check(
        &[],
        "mode: ipvs\nnodePortAddresses: [primary, 10.0.0.0/8]\n",
        &["only nftables", "can't use both"],
    );
    check(
        &["--detect-local-mode=Guess"],
        "",
        &["Unsupported value: \"Guess\""],
    );
    check(
        &[],
        "detectLocalMode: BridgeInterface\n",
        &["must not be empty"],
    );
    check(
        &[],
        "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: 'a\" b'}\n",
        &["the name of"],
    );
    check(
        &[],
        "nftables: {masqueradeBit: 32, minSyncPeriod: 1h}\n",
        &["not less than", "[0, 31]"],
    );
    check(&["--healthz-bind-address=here"], "", &["must be IP:port"]);
    check(&[], "mode: {}\n", &["c.yaml: mode: expected a string"]);
}

#[test]
fn unknown_keys_are_warnings() {
    assert_eq!(read(&[], "clusterCidr: 10.0.0.0/8\n"), Ok(by_default()));
}
