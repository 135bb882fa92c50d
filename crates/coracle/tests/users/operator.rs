//! Operators written with controller-runtime (`tests/clients/operator`). One runs twice with leader
//! election and minimal permissions; the other instance takes over when the leader is killed. The
//! other operator reconciles a custom resource, as kubebuilder generates them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use crate::cluster::{Server, kubectl, tool};
use crate::simulated_nodes::{apply, start, until};

/// A process of it; killed when dropped.
struct Operator {
    identity: &'static str,
    child: Child,
    lines: Receiver<String>,
    leads: bool,
}

impl Operator {
    fn start(folder: &Path, kubeconfig: &Path, identity: &'static str) -> Operator {
        let log = File::create(folder.join(format!("{identity}.log"))).unwrap();
        let mut command = Command::new(tool("operator"));
        command
            .arg(kubeconfig)
            .arg(identity)
            .stdout(Stdio::piped())
            .stderr(log);

        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });

        Operator {
            identity,
            child,
            lines,
            leads: false,
        }
    }

    /// The lines that it has printed since it was last asked.
    fn printed(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    fn leads(&mut self) -> bool {
        self.leads |= self.lines.try_recv().is_ok();
        self.leads
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const RIGHTS: &str = r#"apiVersion: v1
kind: ServiceAccount
metadata: {name: operator}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: operator}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create, update, patch]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, update]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: operator}
subjects: [{kind: ServiceAccount, name: operator, namespace: default}]
"#;

/// How the operator reaches the server: as an account of the cluster, with what it was given and
/// nothing else.
fn kubeconfig(server: &Server, folder: &Path) -> PathBuf {
    apply(server, folder, "rights.yaml", RIGHTS);
    let token = server.kubectl(&["create", "token", "operator"]);
    let file = folder.join("operator.kubeconfig");
    std::fs::copy(&server.kubeconfig, &file).unwrap();

    let token = format!("--token={}", token.trim());
    for arguments in [
        ["config", "set-credentials", "operator", &token],
        ["config", "set-context", "--current", "--user=operator"],
    ] {
        let status = Command::new(kubectl())
            .arg("--kubeconfig")
            .arg(&file)
            .args(arguments)
            .output()
            .unwrap();
        assert!(status.status.success(), "{status:?}");
    }

    file
}

fn desired(image: &str, replicas: u32) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, labels: {{operator: serve}}}}\n\
         data: {{image: '{image}', replicas: '{replicas}'}}\n"
    )
}

/// The annotations that the operator writes: available replicas and its identity.
fn reported(server: &Server) -> String {
    let path = r"jsonpath={.metadata.annotations.operator\.example/available} {.metadata.annotations.operator\.example/told-by}";
    server.kubectl(&["get", "configmap", "web", "-o", path])
}

#[test]
fn one_of_two_operators_leads_and_the_other_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "3", &[]);
    let kubeconfig = kubeconfig(&server, folder.path());
    let begin = |identity| Operator::start(folder.path(), &kubeconfig, identity);
    let mut operators = [begin("first"), begin("second")];
    until("one of them leads", || {
        operators.iter_mut().any(Operator::leads)
    });

    operators.sort_by_key(|operator| !operator.leads);
    let [leader, mut other] = operators;

    apply(&server, folder.path(), "desired.yaml", &desired("web:1", 3));
    until("the desired objects exist", || {
        reported(&server) == format!("3 {}", leader.identity)
    });
    let owner = "jsonpath={.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].name} {.spec.replicas}";
    assert_eq!(
        server.kubectl(&["get", "deployment", "web", "-o", owner]),
        "ConfigMap/web 3"
    );

    let finalizers = [
        "get",
        "configmap",
        "web",
        "-o",
        "jsonpath={.metadata.finalizers}",
    ];

    assert_eq!(
        server.kubectl(&finalizers),
        r#"["operator.example/farewell"]"#
    );

    let lease = |path: &str| {
        server.kubectl(&[
            "get",
            "lease",
            "operator",
            "-o",
            &format!("jsonpath={{.spec.{path}}}"),
        ])
    };
    let (holder, transitions) = (lease("holderIdentity"), lease("leaseTransitions"));

    assert!(!other.leads(), "there are two leaders");

    // Killed while it works: what is requested meanwhile waits for the next one.
    drop(leader);
    apply(&server, folder.path(), "desired.yaml", &desired("web:2", 2));
    until("the other one leads", || other.leads());
    assert_ne!(lease("holderIdentity"), holder);
    assert_ne!(lease("leaseTransitions"), transitions);

    let image = [
        "get",
        "deployment",
        "web",
        "-o",
        "jsonpath={.spec.template.spec.containers[0].image}",
    ];

    until("the changed spec is applied", || {
        server.kubectl(&image) == "web:2" && reported(&server) == format!("2 {}", other.identity)
    });
    let mut third = begin("third");
    server.kubectl(&["delete", "deployment", "web"]);
    until("what was taken away is made again", || {
        server.run(&image).status.success() && reported(&server) == format!("2 {}", other.identity)
    });
    assert!(!third.leads(), "a later replica leads");

    server.kubectl(&["delete", "configmap", "web", "--timeout=180s"]);

    let farewell = [
        "get",
        "configmap",
        "farewell-web",
        "-o",
        "jsonpath={.data.by}",
    ];
    assert_eq!(server.kubectl(&farewell), other.identity);

    until("what belonged to the ConfigMap is gone with it", || {
        server
            .kubectl(&["get", "deployments,replicasets,pods", "-o", "name"])
            .is_empty()
    });

    drop((other, third));
    server.stop();
}

/// As controller-gen writes it, with an empty status.
const POD_COUNTS: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations: {controller-gen.kubebuilder.io/version: v0.4.1}
  creationTimestamp: null
  name: podcounts.zouxapp.github.com
spec:
  group: zouxapp.github.com
  names: {kind: PodCount, listKind: PodCountList, plural: podcounts, singular: podcount}
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: PodCount is the Schema for the podcounts API
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            description: PodCountSpec defines the desired state of PodCount
            properties:
              count: {description: 'Count is what is wanted', type: integer}
            type: object
          status:
            description: PodCountStatus defines the observed state of PodCount
            properties:
              count: {type: integer}
            type: object
        type: object
    served: true
    storage: true
    subresources:
      status: {}
status:
  acceptedNames: {kind: "", plural: ""}
  conditions: []
  storedVersions: []
"#;

const POD_COUNT: &str = "apiVersion: zouxapp.github.com/v1\nkind: PodCount\nmetadata: {name: podcount-sample}\n\
                         spec: {count: 3}\n";

#[test]
fn an_operator_of_a_custom_resource_stops_writing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let file = folder.path().join("podcounts.yaml");
    std::fs::write(&file, POD_COUNTS).unwrap();
    let created = server.kubectl(&["create", "-f", file.to_str().unwrap()]);
    assert_eq!(
        created,
        "customresourcedefinition.apiextensions.k8s.io/podcounts.zouxapp.github.com created\n"
    );

    let listed = server.kubectl(&["get", "crd"]);
    assert_eq!(
        listed.lines().next().unwrap().split("  ").next(),
        Some("NAME")
    );

    assert!(
        listed.lines().next().unwrap().contains("CREATED AT"),
        "{listed}"
    );

    server.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd/podcounts.zouxapp.github.com",
        "--timeout=60s",
    ]);

    apply(&server, folder.path(), "sample.yaml", POD_COUNT);

    let get = |form: &str| {
        server.kubectl(&[
            "get",
            "podcounts.zouxapp.github.com",
            "podcount-sample",
            "-o",
            form,
        ])
    };
    let sample = get("yaml");
    assert!(
        !sample.contains("status:"),
        "the sample is not filled in: {sample}"
    );

    assert!(sample.contains("generation: 1"), "{sample}");

    let operator = Operator::start(folder.path(), Path::new(&server.kubeconfig), "podcount");
    until("the status says so", || {
        get("jsonpath={.status.count}") == "3"
    });
    let version = get("jsonpath={.metadata.resourceVersion}");

    // What it did last came back to it, and it found nothing to do.
    let mut lines = Vec::new();
    until("it has heard of what it wrote", || {
        lines.extend(operator.printed());
        lines.len() >= 2
    });

    assert!(is_at_rest(&operator), "it goes on and on");
    assert_eq!(lines, ["reconcile default/podcount-sample 3"; 2]);
    assert_eq!(
        get("jsonpath={.metadata.resourceVersion} {.metadata.generation}"),
        format!("{version} 1")
    );

    server.kubectl(&[
        "patch",
        "podcount",
        "podcount-sample",
        "--type=merge",
        "-p",
        r#"{"spec":{"count":-1}}"#,
    ]);

    until("less than nothing is nothing", || {
        matches!(get("jsonpath={.status.count}").as_str(), "" | "0")
    });
    drop(operator);
    server.stop();
}

/// Whether it prints nothing for a while in which it would have had ample time to.
fn is_at_rest(operator: &Operator) -> bool {
    thread::sleep(std::time::Duration::from_secs(2));
    operator.printed().is_empty()
}
