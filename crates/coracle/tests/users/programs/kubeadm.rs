//! The control plane as kubeadm starts it: the command lines of its static pods
//! (`tests/facts/kubeadm-commands.json`), with files and ports of a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::authority::Authority;
use super::{Links, Program, free_port, page};
use crate::cluster::kubectl;
use crate::simulated_nodes::until;

/// A control plane that kubeadm could have made.
struct ControlPlane {
    folder: TempDir,
    ports: Ports,
    links: Links,
    running: Vec<Program>,
}

/// Ports, in place of those that kubeadm writes and those that are defaults.
struct Ports {
    etcd: u16,
    etcd_metrics: u16,
    apiserver: u16,
    controller_manager: u16,
    scheduler: u16,
}

impl ControlPlane {
    fn start() -> ControlPlane {
        let mut plane = ControlPlane {
            folder: tempfile::tempdir().unwrap(),
            ports: Ports {
                etcd: free_port(),
                etcd_metrics: free_port(),
                apiserver: free_port(),
                controller_manager: free_port(),
                scheduler: free_port(),
            },
            links: Links::new(),
            running: Vec::new(),
        };
        plane.make_certificates();
        for name in ["admin", "controller-manager", "scheduler"] {
            plane.make_kubeconfig(name);
        }

        let ports = [
            ("kube-controller-manager", plane.ports.controller_manager),
            ("kube-scheduler", plane.ports.scheduler),
        ];
        for name in [
            "etcd",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
        ] {
            let mut command = plane.links.command(name);
            command.args(plane.arguments(name));
            if let Some((_, port)) = ports.iter().find(|(program, _)| *program == name) {
                command.arg(format!("--secure-port={port}"));
            }
            plane
                .running
                .push(Program::start(command, plane.folder.path(), name));
        }
        plane
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The arguments that kubeadm writes. The address of the machine is an address of loopback, but
    /// where it is only published.
    fn arguments(&self, name: &str) -> Vec<String> {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/facts/kubeadm-commands.json");
        let facts: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let arguments = facts[name].as_array().unwrap().iter();
        let arguments = arguments.map(|argument| argument.as_str().unwrap());

        let folder = self.folder.path().display().to_string();
        let replaced = [
            ("/etc/kubernetes".to_owned(), folder.clone()),
            ("/var/lib/etcd".to_owned(), format!("{folder}/etcd")),
            ("//192.0.2.1".to_owned(), "//127.0.0.2".to_owned()),
            (":2379".to_owned(), format!(":{}", self.ports.etcd)),
            (":2381".to_owned(), format!(":{}", self.ports.etcd_metrics)),
            ("=6443".to_owned(), format!("={}", self.ports.apiserver)),
        ];
        arguments
            .map(|argument| {
                replaced
                    .iter()
                    .fold(argument.to_owned(), |text, (from, to)| {
                        text.replace(from, to)
                    })
            })
            .collect()
    }

    fn make_certificates(&self) {
        let pki = |name: &str| self.file("pki").join(name);
        let cluster = Authority::new("kubernetes");
        cluster.write(&pki("ca.crt"));
        let addresses = [
            "127.0.0.1",
            "10.96.0.1",
            "kubernetes",
            "kubernetes.default.svc",
        ];
        cluster.issue(&pki("apiserver.crt"), "kube-apiserver", "", &addresses);
        let client = "kube-apiserver-kubelet-client";
        cluster.issue(
            &pki("apiserver-kubelet-client.crt"),
            client,
            "system:masters",
            &[],
        );
        cluster.issue(
            &self.file("admin.crt"),
            "kubernetes-admin",
            "system:masters",
            &[],
        );
        for name in ["controller-manager", "scheduler"] {
            let file = self.file(&format!("{name}.crt"));
            cluster.issue(&file, &format!("system:kube-{name}"), "", &[]);
        }

        let proxies = Authority::new("front-proxy-ca");
        proxies.write(&pki("front-proxy-ca.crt"));
        proxies.issue(
            &pki("front-proxy-client.crt"),
            "front-proxy-client",
            "",
            &[],
        );

        let etcd = Authority::new("etcd-ca");
        etcd.write(&pki("etcd/ca.crt"));
        for name in ["etcd/server.crt", "etcd/peer.crt"] {
            etcd.issue(
                &pki(name),
                "node-1",
                "",
                &["127.0.0.1", "127.0.0.2", "localhost"],
            );
        }
        etcd.issue(
            &pki("apiserver-etcd-client.crt"),
            "kube-apiserver-etcd-client",
            "",
            &[],
        );

        let key = rcgen::KeyPair::generate().unwrap();
        fs::write(pki("sa.key"), key.serialize_pem()).unwrap();
        fs::write(pki("sa.pub"), key.public_key_pem()).unwrap();
    }

    fn make_kubeconfig(&self, name: &str) {
        let [folder, port] = [
            self.folder.path().display().to_string(),
            self.ports.apiserver.to_string(),
        ];
        let text = format!(
            "apiVersion: v1\nkind: Config\nclusters:\n\
             - {{name: kubernetes, cluster: {{certificate-authority: {folder}/pki/ca.crt, server: 'https://127.0.0.1:{port}'}}}}\n\
             contexts:\n- {{name: c, context: {{cluster: kubernetes, user: u}}}}\ncurrent-context: c\nusers:\n\
             - {{name: u, user: {{client-certificate: {folder}/{name}.crt, client-key: {folder}/{name}.key}}}}\n"
        );
        fs::write(self.file(&format!("{name}.conf")), text).unwrap();
    }

    fn assert_running(&mut self) {
        for program in &mut self.running {
            program.assert_running();
        }
    }

    /// What kubectl prints for the administrator; `None`: it fails.
    fn kubectl(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new(kubectl());
        command.arg("--kubeconfig").arg(self.file("admin.conf"));
        let output = command.args(arguments).output().unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn apply(&self, yaml: &str) {
        let file = self.file("objects.yaml");
        fs::write(&file, yaml).unwrap();
        let applied = self.kubectl(&["apply", "-f", file.to_str().unwrap()]);
        assert!(applied.is_some(), "{yaml}");
    }

    fn logs(&self) -> String {
        self.running
            .iter()
            .map(Program::log)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// The ConfigMap that kubeadm makes, and tokens: one that signs, one that has expired.
const TOKENS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-info, namespace: kube-public}
data: {kubeconfig: the address}
---
apiVersion: v1
kind: Secret
type: bootstrap.kubernetes.io/token
metadata: {name: bootstrap-token-abcdef, namespace: kube-system}
stringData: {token-id: abcdef, token-secret: 0123456789abcdef, usage-bootstrap-signing: 'true', usage-bootstrap-authentication: 'true'}
---
apiVersion: v1
kind: Secret
type: bootstrap.kubernetes.io/token
metadata: {name: bootstrap-token-expire, namespace: kube-system}
stringData: {token-id: expire, token-secret: 0123456789abcdef, usage-bootstrap-signing: 'true', expiration: '2020-01-01T00:00:00Z'}
";

#[test]
fn the_control_plane_of_kubeadm_starts_with_all_its_flags() {
    let mut plane = ControlPlane::start();
    until("the API server is ready", || {
        plane.assert_running();
        plane.kubectl(&["get", "--raw", "/readyz"]).as_deref() == Some("ok")
    });
    for lease in ["kube-controller-manager", "kube-scheduler"] {
        let path = "jsonpath={.spec.holderIdentity}";
        let held = ["-n", "kube-system", "get", "lease", lease, "-o", path];
        until(lease, || {
            plane.assert_running();
            plane
                .kubectl(&held)
                .is_some_and(|holder| !holder.is_empty())
        });
    }

    // Work of the controllers, of the scheduler, and of the two controllers that only kubeadm asks for.
    until("there is a service account with its CA", || {
        let both = [
            "get",
            "serviceaccount/default",
            "configmap/kube-root-ca.crt",
        ];
        plane.kubectl(&both).is_some()
    });
    assert!(plane.kubectl(&["run", "p", "--image=i"]).is_some());
    until("the scheduler has tried the pod", || {
        let path = "jsonpath={.status.conditions[0].reason}";
        plane.kubectl(&["get", "pod", "p", "-o", path]).as_deref() == Some("Unschedulable")
    });

    plane.apply(TOKENS);
    until("cluster-info is signed by the token", || {
        let data = [
            "-n",
            "kube-public",
            "get",
            "configmap",
            "cluster-info",
            "-o",
            "jsonpath={.data}",
        ];
        let data = plane.kubectl(&data).unwrap();
        data.contains("jws-kubeconfig-abcdef") && !data.contains("jws-kubeconfig-expire")
    });
    until("the expired token is gone", || {
        let tokens = ["-n", "kube-system", "get", "secrets", "-o", "name"];
        plane.kubectl(&tokens).as_deref() == Some("secret/bootstrap-token-abcdef\n")
    });

    check_ports(&plane);
    check_front_proxy(&plane);
    plane.assert_running();
    assert!(!plane.logs().contains("panicked"), "{}", plane.logs());
}

/// The ports of the components, as kubeadm's probes and an administrator use them.
fn check_ports(plane: &ControlPlane) {
    let [certificate, key] =
        ["admin.crt", "admin.key"].map(|name| plane.file(name).display().to_string());
    let status = |url: &str, arguments: &[&str]| {
        page(&[&[url], arguments].concat()).map(|(status, _)| status)
    };
    let admin = ["--cert", certificate.as_str(), "--key", key.as_str()];
    let ok = Some("200".to_owned());

    let metrics = format!("http://127.0.0.1:{}/health", plane.ports.etcd_metrics);
    assert_eq!(status(&metrics, &[]), ok);
    let manager = format!("https://127.0.0.1:{}", plane.ports.controller_manager);
    let scheduler = format!("https://127.0.0.1:{}", plane.ports.scheduler);
    for url in [&manager, &scheduler] {
        assert_eq!(status(&format!("{url}/healthz"), &[]), ok);
        assert_eq!(
            status(&format!("{url}/metrics"), &[]),
            Some("403".to_owned())
        );
        assert_eq!(status(&format!("{url}/metrics"), &admin), ok);
    }
    for path in ["livez", "readyz"] {
        assert_eq!(status(&format!("{scheduler}/{path}"), &[]), ok);
    }
}

/// A front proxy names its user to the API server, and nobody else can.
fn check_front_proxy(plane: &ControlPlane) {
    let url = format!(
        "https://127.0.0.1:{}/apis/authentication.k8s.io/v1/selfsubjectreviews",
        plane.ports.apiserver
    );
    let review = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#;
    let named = |certificate: &str| {
        let [certificate, key] = [format!("{certificate}.crt"), format!("{certificate}.key")]
            .map(|name| plane.file(&name).display().to_string());
        let headers = [
            "-H",
            "Content-Type: application/json",
            "-H",
            "X-Remote-User: jane",
        ];
        let identity = ["--cert", &certificate, "--key", &key, "-d", review];
        let answer = page(&[&[url.as_str()], &headers[..], &identity[..]].concat());
        // For curl, answers are indented.
        answer.unwrap().1.replace(' ', "")
    };

    assert!(named("pki/front-proxy-client").contains(r#""username":"jane""#));
    assert!(named("admin").contains(r#""username":"kubernetes-admin""#));
}
