use std::io;
use std::path::Path;

use coracle_kubelet::Shown;
use coracle_settings::Request;

use super::options::{Complete, Options, Serving};
use super::program::PROGRAM;

fn options(flags: &[&str], file: &str) -> Result<Options, Vec<String>> {
    let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    let mut arguments: Vec<String> = flags.iter().map(ToString::to_string).collect();
    arguments.push(String::from("--kubeconfig=/k"));
    if !file.is_empty() {
        arguments.push(String::from("--config=c.yaml"));
    }

    let load = |path: &Path| -> io::Result<Vec<u8>> {
        match path.to_str() {
            Some("c.yaml") => Ok(format!("{head}{file}").into_bytes()),
            _ => std::fs::read(path),
        }
    };
    match PROGRAM
        .read(&arguments, load)
        .map_err(|mistakes| mistakes.0)?
    {
        Request::Run { options, .. } => Ok(options),
        _ => panic!("help"),
    }
}

fn read(flags: &[&str], file: &str) -> Result<Complete, Vec<String>> {
    let flags = [flags, &["--hostname-override=Node1"]].concat();
    let options = options(&flags, file)?;
    options
        .complete(Shown::Flags(Vec::new()))
        .map_err(|mistakes| mistakes.0)
}

/// What kubeadm 1.36 writes to /var/lib/kubelet/config.yaml, but its files.
const KUBEADM: &str = "authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 0s, enabled: true}
authorization:
  mode: Webhook
  webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: \"\"
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
healthzBindAddress: 127.0.0.1
healthzPort: 10248
httpCheckFrequency: 0s
imageMaximumGCAge: 0s
imageMinimumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: \"0\"}, text: {infoBufferSize: \"0\"}}, verbosity: 0}
memorySwap: {}
nodeStatusReportFrequency: 0s
nodeStatusUpdateFrequency: 0s
rotateCertificates: true
runtimeRequestTimeout: 0s
shutdownGracePeriod: 0s
shutdownGracePeriodCriticalPods: 0s
staticPodPath: /etc/kubernetes/manifests
streamingConnectionIdleTimeout: 0s
syncFrequency: 0s
volumeStatsAggPeriod: 0s
";

#[test]
fn the_file_of_kubeadm_is_accepted() {
    let complete = read(&[], KUBEADM).map_err(|why| why.join("\n")).unwrap();
    let config = complete.config;
    assert_eq!(config.node_name, "node1");
    assert_eq!(
        config.cluster_dns,
        ["10.96.0.10".parse::<std::net::IpAddr>().unwrap()]
    );
    assert_eq!(config.healthz, Some("127.0.0.1:10248".parse().unwrap()));
    assert_eq!(
        config.manifests.as_deref(),
        Some(Path::new("/etc/kubernetes/manifests"))
    );
    assert_eq!((config.max_pods, config.logs.max_size), (110, 10 << 20));
    assert!(complete.access.permissions && complete.access.tokens && !complete.access.anonymous);
    assert_eq!(complete.serving, Serving::SelfSigned);
    assert!(options(&[], KUBEADM).unwrap().rotate_certificates);
}

#[test]
fn defaults_are_wider_without_a_file() {
    let check = |flags: &[&str], file: &str, expected: (bool, bool, bool)| {
        let access = read(flags, file)
            .map_err(|why| why.join("\n"))
            .unwrap()
            .access;
        let found = (access.anonymous, access.tokens, access.permissions);
        assert_eq!(found, expected, "{flags:?} {file}");
    };
    check(&[], "", (true, false, false));
    check(&[], "maxPods: 5\n", (false, true, true));
    check(
        &[],
        "authorization: {mode: AlwaysAllow}\n",
        (false, true, false),
    );
    check(&["--anonymous-auth=false"], "", (false, false, false));
    check(&["--anonymous-auth"], "maxPods: 5\n", (true, true, true));
}

#[test]
fn flags_win_over_the_file_and_drop_ins_over_both_before_them() {
    let folder = tempfile::tempdir().unwrap();
    let head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
    for (name, text) in [
        ("10-a.conf", "maxPods: 20\nport: 20\n"),
        (
            "20-b.conf",
            "port: 30\nauthentication: {webhook: {enabled: false}}\n",
        ),
        ("30-c.yaml", "port: 40\n"),
    ] {
        std::fs::write(folder.path().join(name), format!("{head}{text}")).unwrap();
    }

    let dir = format!("--config-dir={}", folder.path().display());
    let file = "maxPods: 10\nport: 10\ncontainerLogMaxFiles: 7\nauthentication: {anonymous: {enabled: true}}\n";
    let options = options(&[&dir, "--max-pods=5"], file).unwrap();
    assert_eq!(
        (options.max_pods, options.port, options.log_files),
        (5, 30, 7)
    );
    assert!(options.anonymous && !options.token_webhook);
}

#[test]
fn all_errors_are_reported_together() {
    let check = |flags: &[&str], file: &str, expected: &[&str]| {
        let Err(errors) = read(flags, file) else {
            panic!("accepted: {flags:?} {file}");
        };
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.contains(expected), "{error} has no {expected}");
        }
    };

    check(
        &["--node-ip=127.0.0.1", "--node-labels=kubernetes.io/x=y"],
        "containerLogMaxFiles: 1\ntlsCertFile: /a\n",
        &[
            "not the address of a node",
            "must not set labels",
            "together",
            "greater than 1",
        ],
    );
    check(&["--read-only-port=10255"], "", &["accepts only \"0\""]);
    check(&["--register-with-taints=a:b"], "", &["invalid taint spec"]);
    check(
        &["--container-runtime-endpoint=tcp://x"],
        "",
        &["must be unix:///PATH"],
    );
    check(
        &["--network-plugin=cni"],
        "",
        &["unknown flag: --network-plugin"],
    );
}
