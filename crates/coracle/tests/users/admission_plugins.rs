//! An API server of its own, with the admission plugins that are off by default.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::{fs, str};

use coracle_api::Value;
use coracle_api::codec::json;

use crate::cluster::kubectl;
use crate::simulated_nodes::until;

const SIGNING_KEY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../apiserver/src/authn/token/testdata/rsa.pem"
);

const CONFIGURATION: &str = r#"apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration: {kind: Configuration, limits: [{type: Namespace, qps: 1, burst: 1}]}
- name: PodNodeSelector
  configuration: {podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: pool=a}}
- name: PodTolerationRestriction
  configuration: {kind: Configuration, default: [{key: dedicated, operator: Exists}]}
"#;

const PLUGINS: &str = "--enable-admission-plugins=AlwaysPullImages,DenyServiceExternalIPs,EventRateLimit,\
    ExtendedResourceToleration,LimitPodHardAntiAffinityTopology,NamespaceAutoProvision,NamespaceExists,\
    OwnerReferencesPermissionEnforcement,PodNodeSelector,PodTolerationRestriction";

fn command(folder: &Path, port: u16, more: &[&str]) -> Command {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
    command
        .arg("kube-apiserver")
        .args(["--bind-address=127.0.0.1", &format!("--secure-port={port}")])
        .args([
            "--service-cluster-ip-range=10.0.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--disable-admission-plugins=ServiceAccount",
        ])
        .arg(format!("--service-account-signing-key-file={SIGNING_KEY}"))
        .arg(format!("--data-dir={}", file("data")))
        .arg(format!("--token-auth-file={}", file("tokens")))
        .args(more);
    command
}

/// A server; ended when dropped.
struct Running {
    child: Child,
    port: u16,
}

impl Running {
    fn start(folder: &Path, more: &[&str]) -> Running {
        fs::write(folder.join("tokens"), "secret,admin,1,system:masters\n").unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);

        let mut command = command(folder, port, more);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        assert!(line.starts_with("kube-apiserver is ready"), "{line}");
        Running { child, port }
    }

    fn kubectl(&self, arguments: &[&str]) -> Output {
        Command::new(kubectl())
            .args(["--kubeconfig=/dev/null", "--token=secret"])
            .arg(format!("--server=https://127.0.0.1:{}", self.port))
            .arg("--insecure-skip-tls-verify")
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Creates an object, which is sent as it is; what was answered, or the refusal.
    fn create(&self, folder: &Path, namespace: &str, yaml: &str) -> Result<Value, String> {
        let file = folder.join("object.yaml");
        fs::write(&file, yaml).unwrap();
        let file = file.display().to_string();
        let (namespace, file) = (
            format!("--namespace={namespace}"),
            format!("--filename={file}"),
        );
        let output = self.kubectl(&["create", &namespace, &file, "--validate=false", "-o=json"]);
        match output.status.success() {
            true => Ok(json::parse(&output.stdout).unwrap()),
            false => Err(str::from_utf8(&output.stderr).unwrap().to_owned()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn plugins_that_are_enabled_change_and_refuse_objects() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let configuration = folder.join("admission.yaml");
    fs::write(&configuration, CONFIGURATION).unwrap();
    let configuration = format!(
        "--admission-control-config-file={}",
        configuration.display()
    );
    let server = Running::start(folder, &[PLUGINS, &configuration]);

    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i:1, \
        resources: {limits: {example.com/gpu: 1}, requests: {example.com/gpu: 1}}}]}}";
    let pod = server.create(folder, "made", pod).unwrap();
    let spec = pod.get("spec").unwrap();
    let container = &spec.get("containers").unwrap().as_array().unwrap()[0];
    assert_eq!(
        container.get("imagePullPolicy").unwrap().as_str(),
        Some("Always")
    );
    assert_eq!(
        spec.at(&["nodeSelector", "pool"]).unwrap().as_str(),
        Some("a")
    );
    let tolerations = json::to_string(spec.get("tolerations").unwrap());
    for key in ["dedicated", "example.com/gpu"] {
        assert!(
            tolerations.contains(&format!("\"key\":\"{key}\"")),
            "{tolerations}"
        );
    }

    let refused = |yaml: &str, why: &str| {
        let text = server.create(folder, "made", yaml).unwrap_err();
        assert!(text.contains(why), "{text}");
    };
    refused(
        "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 1}], externalIPs: [1.2.3.4]}}",
        "services \"s\" is forbidden: Use of external IPs is denied by admission control",
    );
    refused(
        "{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {nodeSelector: {pool: b}, containers: [{name: c, image: i}]}}",
        "pod node label selector conflicts with its namespace node label selector",
    );
    refused(
        "{apiVersion: v1, kind: Pod, metadata: {name: r}, spec: {containers: [{name: c, image: i}], affinity: \
         {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {}}]}}}}",
        "has TopologyKey zone but only key kubernetes.io/hostname is allowed",
    );

    let event = |name: &str| {
        format!(
            "{{apiVersion: v1, kind: Event, metadata: {{name: {name}}}, involvedObject: {{namespace: made}}}}"
        )
    };
    // All by one client, which takes less than the second after which there is another.
    let events: Vec<String> = (0..9).map(|number| event(&format!("e{number}"))).collect();
    refused(
        &events.join("\n---\n"),
        "limit reached on type Namespace for key made",
    );

    until("the server has a Lease and tracks tokens", || {
        let arguments = ["get", "leases,configmaps", "-n=kube-system", "-o=name"];
        let output = server.kubectl(&arguments).stdout;
        let names = str::from_utf8(&output).unwrap();
        names.contains("lease.coordination.k8s.io/apiserver-")
            && names.contains("configmap/kube-apiserver-legacy-service-account-token-tracking")
    });
}

#[test]
fn feature_gates_and_plugins_are_checked_before_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tokens"), "").unwrap();
    let check = |flag: &str, why: &str| {
        let output = command(folder.path(), 0, &[flag]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(why), "{text}");
    };

    check(
        "--feature-gates=Nope=true",
        "unrecognized feature gate: Nope",
    );
    check(
        "--feature-gates=InPlacePodVerticalScaling=false",
        "cannot set feature gate InPlacePodVerticalScaling to false, feature is locked to true",
    );
    check(
        "--feature-gates=other:X=true",
        "component not registered: other",
    );
    check(
        "--enable-admission-plugins=ImagePolicyWebhook",
        "couldn't init admission plugin \"ImagePolicyWebhook\": no config specified",
    );
}
