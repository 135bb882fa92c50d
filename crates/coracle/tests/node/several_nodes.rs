//! Clusters of several machines: a server and agents, each in a network namespace of its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::json;

use crate::machine::{Machine, eventually};
use crate::segment::Segment;

/// A server with its address.
struct Cluster {
    segment: Segment,
    server: Machine,
    url: String,
}

impl Cluster {
    fn start(flags: &[&str]) -> Cluster {
        let segment = Segment::new();
        let (server, address) = segment.machine();
        server.begin_with(flags);
        assert!(server.is_ready_within(crate::machine::PATIENCE));
        Cluster {
            segment,
            server,
            url: format!("https://{address}:6443"),
        }
    }

    fn token(&self, more: &[&str]) -> String {
        let output = self
            .server
            .coracle(&[&["token", "create"], more].concat())
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        assert!(output.status.success(), "{}", text(output.stderr));
        text(output.stdout).trim().to_owned()
    }

    /// A machine that has joined.
    fn node(&self, name: &str, token: &str) -> Machine {
        let (machine, _) = self.segment.machine();
        machine.start_agent(name, &["--server", &self.url, "--token", token]);
        machine
    }

    /// Starts an agent that must refuse to run; returns what it logged.
    fn refused(&self, name: &str, token: &str) -> String {
        let (machine, _) = self.segment.machine();
        machine.begin_agent(name, &["--server", &self.url, "--token", token]);
        assert!(!machine.server_ended().success());
        fs::read_to_string(machine.log()).unwrap()
    }

    fn pod_on(&self, node: &str) -> String {
        let name = format!("on-{node}");
        self.server.apply(&[json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "coracle.local/echo"}]},
        })]);
        let wait = format!("wait --for=condition=Ready pod/{name} --timeout=300s");
        self.server.kubectl(&wait);
        name
    }

    fn container_of(&self, pod: &str) -> String {
        let path = "-o=jsonpath={.status.containerStatuses[0].containerID}/{.status.containerStatuses[0].restartCount}";
        self.server.kubectl(&format!("get pod {pod} {path}"))
    }
}

/// A `kubectl port-forward` that runs; ended when dropped. It would end itself if nobody could read
/// what it prints.
struct Forward {
    process: Child,
    _output: BufReader<ChildStdout>,
}

impl Drop for Forward {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What a pod answers through a forwarded port.
fn forwarded(server: &Machine, pod: &str) -> String {
    let target = format!("pod/{pod}");
    let mut command = server.kubectl_command(&["port-forward", &target, ":8080"]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let _forward = Forward {
        process,
        _output: output,
    };

    let address = line.split_whitespace().nth(2).unwrap().to_owned();
    server.types(&format!("curl --fail --silent http://{address}/"))
}

#[test]
fn nodes_join_and_run_pods() {
    let cluster = Cluster::start(&[]);
    let token = cluster.token(&[]);
    let nodes = ["node-2", "node-3"].map(|name| cluster.node(name, &token));
    let server = &cluster.server;

    for name in ["node-2", "node-3"] {
        let pod = cluster.pod_on(name);
        // By the serving certificate that the node has requested.
        eventually("the API server reaches the kubelet", || {
            let output = server.try_kubectl(&["exec", &pod, "--", "/echo", "resolve", "localhost"]);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            match text.contains("127.0.0.1") {
                true => Ok(()),
                false => Err(output),
            }
        });
        assert!(server.kubectl(&format!("logs {pod}")).contains("8080"));
        assert!(forwarded(server, &pod).contains(&pod));
    }

    // Each node has a range of its own.
    let ranges = server.kubectl("get nodes -o=jsonpath={.items[*].spec.podCIDR}");
    let ranges: Vec<&str> = ranges.split(' ').collect();
    assert_eq!(ranges.len(), 3);
    assert!(ranges[0] != ranges[1] && ranges[1] != ranges[2]);

    drained_and_removed(&cluster, "node-3");
    for node in nodes {
        node.stop_and_reset();
    }
    server.stop_and_reset();
}

/// `coracle node drain` and `remove`.
fn drained_and_removed(cluster: &Cluster, node: &str) {
    let drain = |more: &[&str]| {
        let arguments = [&["node", "drain", node, "--grace-period=0"], more].concat();
        let output = cluster.server.coracle(&arguments).output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (done, error) = drain(&[]);
    assert!(!done && error.contains("without a controller"), "{error}");
    let (done, error) = drain(&["--force"]);
    assert!(done, "{error}");

    let pods = cluster.server.kubectl(&format!(
        "get pods --field-selector=spec.nodeName={node} -o=name"
    ));
    assert_eq!(pods, "");
    let mut remove = cluster.server.coracle(&["node", "remove", node]);
    assert!(remove.status().unwrap().success());
    let nodes = cluster.server.kubectl("get nodes -o=name");
    assert!(!nodes.contains(node), "{nodes}");
}

#[test]
fn who_may_not_join_is_refused() {
    let cluster = Cluster::start(&[]);
    let token = cluster.token(&[]);
    let node = cluster.node("node-2", &token);

    let (id, rest) = token.split_once('.').unwrap();
    let hash = rest.split_once('@').unwrap().1;
    let wrong = format!("{id}.aaaaaaaaaaaaaaaa@{hash}");
    let said = cluster.refused("node-3", &wrong);
    assert!(said.contains("does not accept the token"), "{said}");

    let other = format!(
        "{}@sha256:{}",
        token.split('@').next().unwrap(),
        "0".repeat(64)
    );
    let said = cluster.refused("node-3", &other);
    assert!(said.contains("is not that of the token"), "{said}");

    let said = cluster.refused("node-3", token.split('@').next().unwrap());
    assert!(said.contains("no hash of the cluster's CA"), "{said}");

    let said = cluster.refused("node-2", &token);
    assert!(said.contains("has a node named node-2"), "{said}");

    let brief = cluster.token(&["--ttl=1s"]);
    eventually("the token expires", || {
        let list = cluster.server.coracle(&["token", "list"]).output();
        let list = String::from_utf8(list.unwrap().stdout).unwrap();
        match list.contains(brief.split('@').next().unwrap()) && !list.contains("<expired>") {
            true => Err(list),
            false => Ok(()),
        }
    });
    let said = cluster.refused("node-3", &brief);
    assert!(said.contains("does not accept the token"), "{said}");

    stolen_token(&cluster, token.split('@').next().unwrap());
    let deleted = cluster
        .server
        .coracle(&["token", "delete"])
        .arg(id)
        .status();
    assert!(deleted.unwrap().success());
    let said = cluster.refused("node-3", &token);
    assert!(said.contains("does not accept the token"), "{said}");

    node.stop_and_reset();
    cluster.server.stop_and_reset();
}

/// A token requests the certificate of a node that exists: nobody approves it.
fn stolen_token(cluster: &Cluster, token: &str) {
    let request = |node: &str| {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "system:nodes");
        params
            .distinguished_name
            .push(DnType::CommonName, format!("system:node:{node}"));
        let pem = params
            .serialize_request(&KeyPair::generate().unwrap())
            .unwrap()
            .pem()
            .unwrap();
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": format!("for-{node}")},
            "spec": {
                "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                "usages": ["digital signature", "client auth"],
            },
        })
    };

    let authority = cluster.server.data_dir().join("pki/ca.crt");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [request("node-2"), request("node-9")]});
    let file = cluster.server.folder().join("requests.json");
    fs::write(&file, list.to_string()).unwrap();
    let kubeconfig = cluster.server.folder().join("none");
    fs::write(&kubeconfig, "").unwrap();
    let line = format!(
        "kubectl --kubeconfig {} --server {} --certificate-authority {} --token {token} create -f {}",
        kubeconfig.display(),
        cluster.url,
        authority.display(),
        file.display()
    );
    cluster.server.types(&line);

    // The one for a new node is approved, and was requested after the other.
    cluster.server.until(
        "get csr for-node-9 -o=jsonpath={.status.conditions[*].type}",
        |text| text == "Approved",
    );
    let conditions = cluster
        .server
        .kubectl("get csr for-node-2 -o=jsonpath={.status.conditions[*].type}");
    assert_eq!(conditions, "");
}

#[test]
fn nodes_outlive_their_server_and_their_agent() {
    let cluster = Cluster::start(&[]);
    let token = cluster.token(&[]);
    let node = cluster.node("node-2", &token);
    let pod = cluster.pod_on("node-2");
    let container = cluster.container_of(&pod);

    // Without the token, and while the server is away.
    cluster.server.kill_server();
    node.kill_server();
    node.begin_agent("node-2", &[]);
    eventually("the agent asks for its server", || {
        match node.logged("cannot register node") {
            0 => Err(()),
            _ => Ok(()),
        }
    });
    assert!(node.server_runs());

    cluster.server.start();
    assert!(node.is_ready_within(crate::machine::PATIENCE));
    cluster
        .server
        .kubectl("wait --for=condition=Ready node/node-2 --timeout=300s");
    cluster
        .server
        .until(&format!("logs {pod}"), |text| text.contains("8080"));
    assert_eq!(cluster.container_of(&pod), container);

    // Another name would be another node.
    node.kill_server();
    node.begin_agent("node-3", &[]);
    assert!(!node.server_ended().success());
    node.start_agent("node-2", &[]);

    node.stop_and_reset();
    cluster.server.stop_and_reset();
}

/// The file that a link of certificates points to.
fn certificate(node: &Machine, purpose: &str) -> Option<PathBuf> {
    let link = format!("pki/kubelet-{purpose}-current.pem");
    fs::read_link(node.data_dir().join(link)).ok()
}

#[test]
fn certificates_are_replaced_before_they_expire() {
    let cluster = Cluster::start(&["--cluster-signing-duration=30s"]);
    let token = cluster.token(&[]);
    let node = cluster.node("node-2", &token);

    for purpose in ["client", "server"] {
        let mut first = None;
        eventually("there is a certificate", || {
            first = certificate(&node, purpose);
            first.as_ref().map(drop).ok_or(())
        });
        eventually("there is another certificate", || {
            let now = certificate(&node, purpose);
            if now != first { Ok(()) } else { Err(now) }
        });
    }

    // The first certificate has expired: what works uses another.
    let pod = cluster.pod_on("node-2");
    cluster
        .server
        .until(&format!("logs {pod}"), |text| text.contains("8080"));
    node.stop_and_reset();
    cluster.server.stop_and_reset();
}
