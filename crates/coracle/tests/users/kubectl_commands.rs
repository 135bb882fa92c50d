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

/// A person with a kubectl.
struct Person<'a> {
    server: &'a Server,
    kubectl: PathBuf,
    folder: &'a Path,
}

impl Person<'_> {
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
    walk(&Person {
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
    walk(&Person {
        server: &server,
        kubectl,
        folder: cluster.path(),
    });
}

fn walk(person: &Person<'_>) {
    writes(person);
    forms(person);
    changes(person);
    applies(person);
    learns(person);
    ends(person);
}

fn writes(person: &Person<'_>) {
    person.sees("create namespace walk", "namespace/walk created");
    person.sees(
        "create configmap map --from-literal=k=v",
        "configmap/map created",
    );

    person.sees(
        "create secret generic key --from-literal=k=v",
        "secret/key created",
    );

    person.sees(
        "create serviceaccount robot",
        "serviceaccount/robot created",
    );

    person.sees(
        "create service clusterip web --tcp=80:8080",
        "service/web created",
    );

    person.sees(
        "create quota few --hard=pods=2",
        "resourcequota/few created",
    );

    let file = person.writes("deployment.yaml", DEPLOYMENT);
    person.sees(&format!("create -f {file}"), "deployment.apps/web created");
    let robot = r#"--overrides='{"spec":{"serviceAccountName":"robot","automountServiceAccountToken":false}}'"#;
    person.sees(
        &format!("run pod --image=image:1 --restart=Never {robot}"),
        "pod/pod created",
    );
}

fn forms(person: &Person<'_>) {
    person.finds(
        "get configmap map -o json",
        &["\"apiVersion\": \"v1\"", "\"k\": \"v\""],
    );

    person.finds(
        "get configmap map -o yaml",
        &["apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n"],
    );

    person.finds(
        "get pod pod",
        &["NAME", "READY", "STATUS", "0/1", "Pending"],
    );

    person.finds(
        "get pod pod -o wide",
        &["NOMINATED NODE", "READINESS GATES"],
    );

    person.finds(
        "get deployment,service",
        &["deployment.apps/web", "service/web", "80/TCP"],
    );

    person.sees("get deployment web -o name", "deployment.apps/web");
    person.sees("get secret key -o jsonpath={.data.k}", "dg==");
    person.sees("get configmap map -o 'go-template={{.data.k}}'", "v");
    person.sees(
        "get configmap map -o custom-columns=N:.metadata.name,V:.data.k --no-headers",
        "map   v",
    );

    person.finds(
        "get all",
        &["pod/pod", "service/kubernetes", "deployment.apps/web"],
    );

    person.finds(
        "get configmap -A --sort-by=.metadata.name --show-labels",
        &["NAMESPACE", "LABELS", "map"],
    );

    person.finds(
        "describe deployment web",
        &[
            "Name:",
            "web",
            "Selector:",
            "app=web",
            "RollingUpdateStrategy",
        ],
    );

    person.finds(
        "describe pod pod",
        &["Status:", "Pending", "image:1", "QoS Class:", "BestEffort"],
    );

    person.finds(
        "describe service web",
        &["Type:", "ClusterIP", "TargetPort:", "8080/TCP"],
    );

    person.finds("describe namespace walk", &["Status:", "Active"]);
    follows(person);
}

/// `-w` shows what is there, then every change.
fn follows(person: &Person<'_>) {
    let mut command = person.command("get configmap watched -w -o name --ignore-not-found");
    person.does("create configmap watched");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "configmap/watched");
    person.does("label configmap watched a=b");
    assert_eq!(lines.next().unwrap().unwrap(), "configmap/watched");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn changes(person: &Person<'_>) {
    let data = "get configmap map -o jsonpath={.data}";
    person.sees("label configmap map tier=web", "configmap/map labeled");
    person.sees(
        "annotate configmap map 'note=a word'",
        "configmap/map annotated",
    );

    person.sees("get configmap -l tier=web -o name", "configmap/map");
    person.does(r#"patch configmap map --type=merge -p '{"data":{"l":"w"}}'"#);
    person.does(r#"patch configmap map --type=json -p '[{"op":"remove","path":"/data/k"}]'"#);
    person.sees(data, r#"{"l":"w"}"#);

    person.does(
        r#"patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"more:1"}]}}}}'"#,
    );
    person.sees("get deployment web -o jsonpath={..image}", "more:1 web:1");
    person.sees(
        "set image deployment/web web=web:2",
        "deployment.apps/web image updated",
    );

    person.sees(
        "scale deployment web --replicas=3",
        "deployment.apps/web scaled",
    );

    person.sees("get deployment web -o jsonpath={.spec.replicas}", "3");
    let editor = person.writes(
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

    let edited = person
        .command("edit configmap map")
        .env("KUBE_EDITOR", &editor)
        .output()
        .unwrap();

    assert_eq!(
        String::from_utf8_lossy(&edited.stdout).trim_end(),
        "configmap/map edited",
        "{edited:?}"
    );

    person.sees(data, r#"{"l":"edited"}"#);
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {k: replaced}\n";
    let file = person.writes("map.yaml", text);
    person.sees(&format!("replace -f {file}"), "configmap/map replaced");
    person.finds(
        &format!("replace --force -f {file}"),
        &["\"map\" deleted", "configmap/map replaced"],
    );

    person.sees(data, r#"{"k":"replaced"}"#);
}

fn applies(person: &Person<'_>) {
    let text = |value: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: applied}}\ndata: {{{value}}}\n")
    };
    let data = "get configmap applied -o jsonpath={.data}";
    let file = person.writes("applied.yaml", &text("k: v, l: w"));
    person.sees(&format!("apply -f {file}"), "configmap/applied created");

    person.sees(&format!("apply -f {file}"), "configmap/applied unchanged");
    person.writes("applied.yaml", &text("k: x"));
    let differs = person.command(&format!("diff -f {file}")).output().unwrap();
    assert_eq!(differs.status.code(), Some(1), "{differs:?}");

    let shown = String::from_utf8_lossy(&differs.stdout);
    assert!(shown.contains("-  k: v\n-  l: w\n+  k: x\n"), "{shown}");

    person.sees(
        &format!("apply -f {file} --dry-run=server"),
        "configmap/applied configured (server dry run)",
    );

    person.sees(data, r#"{"k":"v","l":"w"}"#);
    person.sees(&format!("apply -f {file}"), "configmap/applied configured");
    person.sees(data, r#"{"k":"x"}"#);
    person.sees(
        &format!("apply --server-side --force-conflicts -f {file}"),
        "configmap/applied serverside-applied",
    );

    let mut piped = person
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

    person.sees(data, r#"{"k":"piped"}"#);
}

fn learns(person: &Person<'_>) {
    person.finds(
        "explain deployment.spec.strategy",
        &["DeploymentStrategy", "rollingUpdate"],
    );

    person.finds(
        "api-resources",
        &["deployments", "deploy", "apps/v1", "configmaps"],
    );

    person.finds("api-versions", &["apps/v1", "autoscaling/v2", "v1"]);
    person.finds("get --raw /version", &["gitVersion", "v1.36"]);
    person.finds(
        "cluster-info",
        &["Kubernetes control plane", "is running at"],
    );

    person.finds(
        "get --raw /readyz?verbose",
        &["[+]ping ok", "readyz check passed"],
    );

    person.sees(
        "wait --for=jsonpath={.data.k}=piped configmap/applied",
        "configmap/applied condition met",
    );
}

fn ends(person: &Person<'_>) {
    person.finds(
        "delete configmap map applied watched",
        &["\"map\" deleted", "\"applied\" deleted"],
    );

    person.finds("delete deployment web", &["\"web\" deleted"]);
    person.finds("delete pod pod --now", &["\"pod\" deleted"]);
    person.sees("wait --for=delete configmap/map --timeout=10s", "");
    person.finds(
        "delete service/web quota/few secret/key",
        &["\"web\" deleted", "\"few\" deleted"],
    );

    person.sees(
        "get configmap,pod,deployment,secret -o name --ignore-not-found",
        "",
    );
}
