//! All kubectl commands, with the kubectl of this release and with an older one.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cluster::{Cluster, Engine, Server, kubectl, on_every_engine};

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1', ports: [{containerPort: 80}]}]}
";

/// A kubectl with a cluster.
struct Kubectl<'a> {
    server: &'a Server,
    kubectl: PathBuf,
    folder: &'a Path,
}

impl Kubectl<'_> {
    fn command(&self, line: &str) -> Command {
        let words = words(line);
        self.server.command_of(
            &self.kubectl,
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    }

    fn does(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn sees(&self, line: &str, expected: &str) {
        assert_eq!(self.does(line).trim_end(), expected, "{line}");
    }

    fn finds(&self, line: &str, expected: &[&str]) {
        let seen = self.does(line);
        for part in expected {
            assert!(seen.contains(part), "{line}: no {part:?} in {seen}");
        }
    }

    fn writes(&self, name: &str, text: &str) -> String {
        let file = self.folder.join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    }
}

/// The words of a line as a shell sees them: what stands between quotes may have spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (n, part) in line.split('\'').enumerate() {
        let mut pieces = if n % 2 == 0 {
            part.split(' ').collect()
        } else {
            vec![part]
        }
        .into_iter();

        words
            .last_mut()
            .unwrap()
            .push_str(pieces.next().unwrap_or_default());

        words.extend(pieces.map(str::to_string));
    }

    words.retain(|word| !word.is_empty());

    words
}

on_every_engine! {
    kubectl_of_this_release,
}

fn kubectl_of_this_release(cluster: &Cluster) {
    let server = cluster.start();
    run_all(&Kubectl {
        server: &server,
        kubectl: kubectl(),
        folder: cluster.path(),
    });
}

#[test]
fn kubectl_of_an_older_release() {
    // Where PATH has none there is nothing older to try.
    let older = ["/usr/bin/kubectl", "/usr/local/bin/kubectl"].map(PathBuf::from);
    let Some(kubectl) = older.into_iter().find(|path| path.exists()) else {
        return;
    };
    let cluster = Cluster::new(Engine::Embedded);

    let server = cluster.start();
    run_all(&Kubectl {
        server: &server,
        kubectl,
        folder: cluster.path(),
    });
}

fn run_all(kubectl: &Kubectl<'_>) {
    creates(kubectl);
    output_formats(kubectl);
    changes(kubectl);
    applies(kubectl);
    discovers(kubectl);
    deletes(kubectl);
}

fn creates(kubectl: &Kubectl<'_>) {
    kubectl.sees("create namespace walk", "namespace/walk created");
    kubectl.sees(
        "create configmap map --from-literal=k=v",
        "configmap/map created",
    );

    kubectl.sees(
        "create secret generic key --from-literal=k=v",
        "secret/key created",
    );

    kubectl.sees(
        "create serviceaccount robot",
        "serviceaccount/robot created",
    );

    kubectl.sees(
        "create service clusterip web --tcp=80:8080",
        "service/web created",
    );

    kubectl.sees(
        "create quota few --hard=pods=2",
        "resourcequota/few created",
    );

    let file = kubectl.writes("deployment.yaml", DEPLOYMENT);
    kubectl.sees(&format!("create -f {file}"), "deployment.apps/web created");
    let robot = r#"--overrides='{"spec":{"serviceAccountName":"robot","automountServiceAccountToken":false}}'"#;
    kubectl.sees(
        &format!("run pod --image=image:1 --restart=Never {robot}"),
        "pod/pod created",
    );
}

fn output_formats(kubectl: &Kubectl<'_>) {
    kubectl.finds(
        "get configmap map -o json",
        &["\"apiVersion\": \"v1\"", "\"k\": \"v\""],
    );

    kubectl.finds(
        "get configmap map -o yaml",
        &["apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n"],
    );

    kubectl.finds(
        "get pod pod",
        &["NAME", "READY", "STATUS", "0/1", "Pending"],
    );

    kubectl.finds(
        "get pod pod -o wide",
        &["NOMINATED NODE", "READINESS GATES"],
    );

    kubectl.finds(
        "get deployment,service",
        &["deployment.apps/web", "service/web", "80/TCP"],
    );

    kubectl.sees("get deployment web -o name", "deployment.apps/web");
    kubectl.sees("get secret key -o jsonpath={.data.k}", "dg==");
    kubectl.sees("get configmap map -o 'go-template={{.data.k}}'", "v");
    kubectl.sees(
        "get configmap map -o custom-columns=N:.metadata.name,V:.data.k --no-headers",
        "map   v",
    );

    kubectl.finds(
        "get all",
        &["pod/pod", "service/kubernetes", "deployment.apps/web"],
    );

    kubectl.finds(
        "get configmap -A --sort-by=.metadata.name --show-labels",
        &["NAMESPACE", "LABELS", "map"],
    );

    kubectl.finds(
        "describe deployment web",
        &[
            "Name:",
            "web",
            "Selector:",
            "app=web",
            "RollingUpdateStrategy",
        ],
    );

    kubectl.finds(
        "describe pod pod",
        &["Status:", "Pending", "image:1", "QoS Class:", "BestEffort"],
    );

    kubectl.finds(
        "describe service web",
        &["Type:", "ClusterIP", "TargetPort:", "8080/TCP"],
    );

    kubectl.finds("describe namespace walk", &["Status:", "Active"]);
    follows(kubectl);
}

/// `-w` shows what is there, then every change.
fn follows(kubectl: &Kubectl<'_>) {
    let mut command = kubectl.command("get configmap watched -w -o name --ignore-not-found");
    kubectl.does("create configmap watched");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "configmap/watched");
    kubectl.does("label configmap watched a=b");
    assert_eq!(lines.next().unwrap().unwrap(), "configmap/watched");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn changes(kubectl: &Kubectl<'_>) {
    let data = "get configmap map -o jsonpath={.data}";
    kubectl.sees("label configmap map tier=web", "configmap/map labeled");
    kubectl.sees(
        "annotate configmap map 'note=a word'",
        "configmap/map annotated",
    );

    kubectl.sees("get configmap -l tier=web -o name", "configmap/map");
    kubectl.does(r#"patch configmap map --type=merge -p '{"data":{"l":"w"}}'"#);
    kubectl.does(r#"patch configmap map --type=json -p '[{"op":"remove","path":"/data/k"}]'"#);
    kubectl.sees(data, r#"{"l":"w"}"#);

    kubectl.does(
        r#"patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"more:1"}]}}}}'"#,
    );
    kubectl.sees("get deployment web -o jsonpath={..image}", "more:1 web:1");
    kubectl.sees(
        "set image deployment/web web=web:2",
        "deployment.apps/web image updated",
    );

    kubectl.sees(
        "scale deployment web --replicas=3",
        "deployment.apps/web scaled",
    );

    kubectl.sees("get deployment web -o jsonpath={.spec.replicas}", "3");
    let editor = kubectl.writes(
        "editor.sh",
        "#!/bin/sh\nsed -i 's/l: w/l: edited/' \"$1\"\n",
    );

    assert!(
        Command::new("chmod")
            .args(["+x", &editor])
            .status()
            .unwrap()
            .success()
    );

    let edited = kubectl
        .command("edit configmap map")
        .env("KUBE_EDITOR", &editor)
        .output()
        .unwrap();

    assert_eq!(
        String::from_utf8_lossy(&edited.stdout).trim_end(),
        "configmap/map edited",
        "{edited:?}"
    );

    kubectl.sees(data, r#"{"l":"edited"}"#);
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {k: replaced}\n";
    let file = kubectl.writes("map.yaml", text);
    kubectl.sees(&format!("replace -f {file}"), "configmap/map replaced");
    kubectl.finds(
        &format!("replace --force -f {file}"),
        &["\"map\" deleted", "configmap/map replaced"],
    );

    kubectl.sees(data, r#"{"k":"replaced"}"#);
}

fn applies(kubectl: &Kubectl<'_>) {
    let text = |value: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: applied}}\ndata: {{{value}}}\n")
    };
    let data = "get configmap applied -o jsonpath={.data}";
    let file = kubectl.writes("applied.yaml", &text("k: v, l: w"));
    kubectl.sees(&format!("apply -f {file}"), "configmap/applied created");

    kubectl.sees(&format!("apply -f {file}"), "configmap/applied unchanged");
    kubectl.writes("applied.yaml", &text("k: x"));
    let differs = kubectl
        .command(&format!("diff -f {file}"))
        .output()
        .unwrap();
    assert_eq!(differs.status.code(), Some(1), "{differs:?}");

    let shown = String::from_utf8_lossy(&differs.stdout);
    assert!(shown.contains("-  k: v\n-  l: w\n+  k: x\n"), "{shown}");

    kubectl.sees(
        &format!("apply -f {file} --dry-run=server"),
        "configmap/applied configured (server dry run)",
    );

    kubectl.sees(data, r#"{"k":"v","l":"w"}"#);
    kubectl.sees(&format!("apply -f {file}"), "configmap/applied configured");
    kubectl.sees(data, r#"{"k":"x"}"#);
    kubectl.sees(
        &format!("apply --server-side --force-conflicts -f {file}"),
        "configmap/applied serverside-applied",
    );

    let mut piped = kubectl
        .command("apply -f -")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    piped
        .stdin
        .take()
        .unwrap()
        .write_all(text("k: piped").as_bytes())
        .unwrap();

    assert!(piped.wait_with_output().unwrap().status.success());

    kubectl.sees(data, r#"{"k":"piped"}"#);
}

fn discovers(kubectl: &Kubectl<'_>) {
    kubectl.finds(
        "explain deployment.spec.strategy",
        &["DeploymentStrategy", "rollingUpdate"],
    );

    kubectl.finds(
        "api-resources",
        &["deployments", "deploy", "apps/v1", "configmaps"],
    );

    kubectl.finds("api-versions", &["apps/v1", "autoscaling/v2", "v1"]);
    kubectl.finds("get --raw /version", &["gitVersion", "v1.36"]);
    kubectl.finds(
        "cluster-info",
        &["Kubernetes control plane", "is running at"],
    );

    kubectl.finds(
        "get --raw /readyz?verbose",
        &["[+]ping ok", "readyz check passed"],
    );

    kubectl.sees(
        "wait --for=jsonpath={.data.k}=piped configmap/applied",
        "configmap/applied condition met",
    );
}

fn deletes(kubectl: &Kubectl<'_>) {
    kubectl.finds(
        "delete configmap map applied watched",
        &["\"map\" deleted", "\"applied\" deleted"],
    );

    kubectl.finds("delete deployment web", &["\"web\" deleted"]);
    kubectl.finds("delete pod pod --now", &["\"pod\" deleted"]);
    kubectl.sees("wait --for=delete configmap/map --timeout=10s", "");
    kubectl.finds(
        "delete service/web quota/few secret/key",
        &["\"web\" deleted", "\"few\" deleted"],
    );

    kubectl.sees(
        "get configmap,pod,deployment,secret -o name --ignore-not-found",
        "",
    );
}
