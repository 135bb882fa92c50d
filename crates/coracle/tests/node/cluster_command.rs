//! `coracle cluster`: clusters of several nodes on one machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::json;

use crate::machine::{Machine, eventually};

/// The machine of a person who makes clusters.
struct Person(Machine);

impl Person {
    fn coracle(&self, line: &str) -> Output {
        let arguments: Vec<&str> = line.split(' ').collect();
        let mut command = self.0.command(env!("CARGO_BIN_EXE_coracle"), &arguments);
        command
            .env("HOME", self.0.folder())
            .env_remove("KUBECONFIG");
        command.output().unwrap()
    }

    /// What a command prints; it must succeed.
    fn says(&self, line: &str) -> String {
        let output = self.coracle(line);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        assert!(output.status.success(), "{line}: {}", text(output.stderr));
        text(output.stdout)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.0.folder().join(".kube/config")
    }

    fn kubectl(&self, line: &str) -> String {
        let config = self.kubeconfig();
        self.0
            .types(&format!("kubectl --kubeconfig {} {line}", config.display()))
    }
}

#[test]
fn a_cluster_of_three_nodes_comes_and_goes() {
    let person = Person(Machine::isolated());
    let name = format!("t{}", std::process::id());
    let other = "apiVersion: v1\nkind: Config\nclusters: [{name: other, cluster: {server: https://192.0.2.9}}]\n";
    fs::create_dir_all(person.0.folder().join(".kube")).unwrap();
    fs::write(person.kubeconfig(), other).unwrap();

    let made = person.says(&format!("cluster create {name} --nodes 3"));
    assert!(made.contains("with 3 nodes"), "{made}");
    person.kubectl("wait --for=condition=Ready node --all --timeout=300s");
    let again = person.coracle(&format!("cluster create {name}"));
    assert!(!again.status.success());

    // Pods of all nodes reach each other.
    for node in ["worker", "worker2"] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": node},
            "spec": {
                "nodeName": format!("{name}-{node}"),
                "containers": [{"name": "c", "image": "coracle.local/echo"}],
            },
        });
        let file = person.0.folder().join("pod.json");
        fs::write(&file, pod.to_string()).unwrap();
        person.kubectl(&format!("create -f {}", file.display()));
    }
    person.kubectl("wait --for=condition=Ready pod --all --timeout=300s");
    let address = person.kubectl("get pod worker2 -o=jsonpath={.status.podIP}");
    eventually("pods reach each other", || {
        let line = format!(
            "kubectl --kubeconfig {} exec worker -- /echo fetch http://{address}:8080/ || true",
            person.kubeconfig().display()
        );
        let said = person.0.types(&line);
        if said.contains("\"host\":\"worker2\"") {
            Ok(())
        } else {
            Err(said)
        }
    });

    nodes_that_are_away(&person, &name);

    let logs = person.0.folder().join("logs");
    person.says(&format!("cluster export-logs {name} {}", logs.display()));
    assert!(logs.join(format!("{name}-worker/coracle.log")).exists());

    person.says(&format!("cluster delete {name}"));
    for left in ["/var/lib/coracle-clusters", "/run/coracle-clusters"] {
        assert!(!Path::new(left).join(&name).exists(), "{left}");
    }
    let config = fs::read_to_string(person.kubeconfig()).unwrap();
    assert!(
        config.contains("192.0.2.9") && !config.contains(&name),
        "{config}"
    );
    eventually("its interface goes", || {
        let links = person.0.types("ip -brief link");
        if links.contains("cor-cl-") {
            Err(links)
        } else {
            Ok(())
        }
    });
}

/// A node is cut off, and another one is switched off.
fn nodes_that_are_away(person: &Person, name: &str) {
    person.says(&format!("cluster partition {name}-worker"));
    person.kubectl(&format!(
        "wait --for=condition=Ready=Unknown node/{name}-worker --timeout=900s"
    ));
    person.says(&format!("cluster heal {name}-worker"));
    person.kubectl(&format!(
        "wait --for=condition=Ready node/{name}-worker --timeout=900s"
    ));

    person.says(&format!("cluster stop-node {name}-worker2"));
    let list = person.says("cluster list");
    let row = list.lines().find(|row| row.contains("-worker2")).unwrap();
    assert!(row.starts_with(name) && row.ends_with("stopped"), "{list}");
    person.says(&format!("cluster start-node {name}-worker2"));
    person.kubectl(&format!(
        "wait --for=condition=Ready node/{name}-worker2 --timeout=900s"
    ));
    person.kubectl("wait --for=condition=Ready pod --all --timeout=900s");
}
