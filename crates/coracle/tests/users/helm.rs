//! Stock helm with a small chart on simulated nodes; every step is verified with kubectl.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cluster::{Server, tool};
use crate::simulated_nodes::{start, until};

const CHART: &str = "{apiVersion: v2, name: shop, version: 0.1.0}\n";

const VALUES: &str = "{image: 'shop:1', ready: 3s, greeting: hello}\n";

const OBJECTS: &str = r#"apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}, labels: {app: {{ .Release.Name }}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}, labels: {app: {{ .Release.Name }}}}
data: {greeting: {{ .Values.greeting | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}, labels: {app: {{ .Release.Name }}}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {app: {{ .Release.Name }}}}
spec:
  replicas: 3
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
      annotations: {coracle.local/simulate: "ready={{ .Values.ready }}"}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers: [{name: c, image: {{ .Values.image | quote }}}]
"#;

/// Before anything else is made, and each time; what it left is seen in its event.
const HOOK: &str = r#"apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-prepare-{{ .Release.Revision }}
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: hook-succeeded}
spec:
  template:
    metadata: {annotations: {coracle.local/simulate: "for=1s"}}
    spec: {restartPolicy: Never, containers: [{name: c, image: prepare}]}
"#;

const TEST: &str = r#"apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-test
  annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: hook-succeeded}
spec: {restartPolicy: Never, containers: [{name: c, image: test}]}
"#;

/// helm with a chart and a cluster.
struct Helm<'a> {
    server: &'a Server,
    folder: PathBuf,
}

impl Helm<'_> {
    fn new<'a>(server: &'a Server, folder: &Path) -> Helm<'a> {
        let folder = folder.join("helm");
        std::fs::create_dir_all(folder.join("shop/templates")).unwrap();
        let files = [
            ("Chart.yaml", CHART),
            ("values.yaml", VALUES),
            ("templates/objects.yaml", OBJECTS),
            ("templates/hook.yaml", HOOK),
            ("templates/test.yaml", TEST),
        ];

        for (name, text) in files {
            std::fs::write(folder.join("shop").join(name), text).unwrap();
        }

        Helm { server, folder }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(tool("helm"));
        for home in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(home, self.folder.join(home));
        }
        command
            .current_dir(&self.folder)
            .args(["--kubeconfig", &self.server.kubeconfig]);
        command.args(arguments).output().unwrap()
    }

    fn helm(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(!output.status.success(), "{arguments:?} was not refused");
        String::from_utf8(output.stderr).unwrap()
    }

    /// The state of each revision, oldest first.
    fn history(&self) -> Vec<String> {
        let history = self.helm(&["history", "web", "-o", "json"]);
        let history: Vec<serde_json::Value> = serde_json::from_str(&history).unwrap();
        history
            .iter()
            .map(|entry| entry["status"].as_str().unwrap().to_string())
            .collect()
    }

    fn of_deployment(&self, path: &str) -> String {
        self.server.kubectl(&[
            "get",
            "deployment",
            "web",
            "-o",
            &format!("jsonpath={path}"),
        ])
    }

    /// Checks at once, without waiting, that helm did not report success too early.
    fn stands(&self, image: &str, greeting: &str) {
        let path = "{.status.availableReplicas} {.status.updatedReplicas} {.spec.template.spec.containers[0].image}";
        assert_eq!(self.of_deployment(path), format!("3 3 {image}"));
        let answer =
            self.server
                .kubectl(&["get", "configmap", "web", "-o", "jsonpath={.data.greeting}"]);
        assert_eq!(answer, greeting);
    }

    /// Number of completed hook Jobs.
    fn hooks_done(&self) -> usize {
        let done = [
            "get",
            "events",
            "--field-selector",
            "reason=Completed,involvedObject.kind=Job",
        ];
        self.server
            .kubectl(&[&done[..], &["-o", "name"]].concat())
            .lines()
            .count()
    }
}

#[test]
fn a_chart_is_installed_upgraded_rolled_back_and_uninstalled() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "3", &[]);
    let man = Helm::new(&server, folder.path());
    man.helm(&["install", "web", "shop", "--wait", "--timeout", "180s"]);
    man.stands("shop:1", "hello");
    assert_eq!(man.history(), ["deployed"]);

    until("the end of the hook is reported", || man.hooks_done() == 1);
    let jobs = || server.kubectl(&["get", "jobs", "-o", "name"]);
    assert_eq!(jobs(), "", "a hook that succeeded goes");

    man.helm(&["test", "web", "--timeout", "180s"]);

    man.helm(&[
        "upgrade",
        "web",
        "shop",
        "--set",
        "image=shop:2,greeting=ahoy",
        "--wait",
        "--timeout",
        "180s",
    ]);

    man.stands("shop:2", "ahoy");
    assert_eq!(man.history(), ["superseded", "deployed"]);

    until("the hook of the upgrade ran too", || man.hooks_done() == 2);

    // Pods that never become ready: `--wait` fails in time.
    let never = [
        "upgrade",
        "web",
        "shop",
        "--set",
        "image=shop:3,ready=never",
        "--wait",
        "--timeout",
        "20s",
    ];
    let refused = man.refused(&never);
    assert!(refused.contains("UPGRADE FAILED"), "{refused}");

    assert_eq!(man.history(), ["superseded", "deployed", "failed"]);
    assert_eq!(
        man.of_deployment("{.spec.template.spec.containers[0].image}"),
        "shop:3"
    );

    man.helm(&["rollback", "web", "1", "--wait", "--timeout", "180s"]);
    man.stands("shop:1", "hello");
    assert_eq!(
        man.history(),
        ["superseded", "superseded", "failed", "deployed"]
    );

    let images = "jsonpath={.items[*].spec.containers[0].image}";
    until("only pods of the old image are left", || {
        server.kubectl(&["get", "pods", "-l", "app=web", "-o", images]) == "shop:1 shop:1 shop:1"
    });

    man.helm(&["uninstall", "web", "--wait", "--timeout", "180s"]);
    let kinds = "deployments,services,configmaps,serviceaccounts,secrets,jobs";
    let left = server.kubectl(&["get", kinds, "-l", "app=web", "-o", "name"]);
    assert_eq!(left, "");
    assert_eq!(
        server.kubectl(&["get", "secrets", "-l", "owner=helm", "-o", "name"]),
        "",
        "no revision is kept"
    );

    until(
        "pods and ReplicaSets have gone with their Deployment",
        || {
            server
                .kubectl(&["get", "replicasets,pods", "-o", "name"])
                .is_empty()
        },
    );

    assert_eq!(man.helm(&["list", "-q"]), "");

    server.stop();
}
