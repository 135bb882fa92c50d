//! A node of a test's own: an API server, a runtime in a temporary folder, and between them the
//! kubelet's API.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_client::Patch;
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use coracle_kubelet::observed::Observed;
use coracle_kubelet::pod_manager::PodManager;
use coracle_kubelet::server::access::{Access, AccessConfig, Authorities};
use coracle_kubelet::server::{Server, certificate};
use coracle_runtime::{
    Config, ImageConfig, ImageForContainer, RootFs, RootFsError, RootFsUsage, Runtime,
};
use coracle_serving::{About, Settings};
use coracle_testkit::{Cluster, REAL, Setup};
use k8s_openapi::api::core::v1::{Node as ApiNode, Pod};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// From the package `busybox-static`.
const BUSYBOX: &str = "/bin/busybox";
const COMMANDS: [&str; 14] = [
    "sh", "cat", "echo", "sleep", "true", "dd", "stty", "tty", "nc", "touch", "tar", "mkdir",
    "test", "[",
];

pub(crate) struct Node {
    folder: TempDir,
    cluster: Cluster,
    runtime: Arc<Runtime>,
    config: Config,
    pod_manager: PodManager,
    port: u16,
    stop: watch::Sender<bool>,
    serving: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Node {
    pub(crate) async fn start(test: &str) -> Node {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::with(Setup {
            https: true,
            ..Setup::default()
        })
        .await;

        let config = Config {
            instance: format!("coracle-test-streams-{test}-{}", std::process::id()),
            root: folder.path().join("root"),
            state: folder.path().join("state"),
            pids_limit: None,
            open_files: None,
        };

        let roots = Arc::new(Roots {
            folder: folder.path().join("rootfs"),
        });
        let runtime = Arc::new(Runtime::open(config.clone(), roots, None).await.unwrap());
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();

        let pod_manager = PodManager::default();
        let read = |name: &str| fs::read(cluster.file(name)).unwrap();
        let authorities = Authorities::new(&read("ca.crt")).unwrap();
        let client = cluster.client_as("system:node:here", &["system:nodes"]);

        let access = Access::new(
            "here",
            client,
            AccessConfig {
                authorities: Some(authorities),
                ..AccessConfig::default()
            },
        );
        let server = Server::over(
            "here",
            Arc::clone(&runtime) as Arc<_>,
            pod_manager.clone(),
            access,
            REAL,
            coracle_metrics::Registry::default(),
            About {
                name: "kubelet",
                version: "v1.36.0",
                metrics: coracle_metrics::Registry::default(),
                health: Vec::new(),
                settings: Settings::default(),
            },
        );

        let (stop, stopped) = watch::channel(false);
        let certificate = certificate(&read("kubelet.crt"), &read("kubelet.key")).unwrap();
        let serving = tokio::spawn(async move {
            Arc::new(server)
                .serve(listener, certificate, stopped)
                .await
                .unwrap();
        });

        let serving = std::sync::Mutex::new(Some(serving));
        let node = Node {
            folder,
            cluster,
            runtime,
            config,
            pod_manager,
            port,
            stop,
            serving,
        };
        node.declare().await;

        node.write_kubeconfig();

        node
    }

    /// Creates the Node object.
    async fn declare(&self) {
        let nodes = self.cluster.client().typed::<ApiNode>();
        let node = serde_json::from_value(json!({"metadata": {"name": "here"}})).unwrap();
        nodes.create(&node).await.unwrap();
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.port}},
        }});

        nodes
            .subresource("status")
            .patch("here", &merge(&status))
            .await
            .unwrap();
    }

    /// Creates a Pod object with one container of the same name.
    pub(crate) async fn declare_pod(&self, name: &str, node: Option<&str>) -> Pod {
        let pods = self.cluster.client().typed::<Pod>().namespace("default");
        let container = json!({"name": name, "image": "busybox"});
        let pod = json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "containers": [container]},
        });
        pods.create(&serde_json::from_value(pod).unwrap())
            .await
            .unwrap()
    }

    /// A pod with one container, which runs a script; answers with the container's id.
    pub(crate) async fn run(&self, name: &str, script: &str) -> String {
        let pod = self.declare_pod(name, Some("here")).await;
        let uid = pod.metadata.uid.clone().unwrap();
        let sandbox_config = self.sandbox(name, &uid);
        let sandbox = self
            .runtime
            .run_pod_sandbox(sandbox_config.clone(), "")
            .await
            .unwrap();

        let container = container(name, script);
        let id = self
            .runtime
            .create_container(&sandbox, container, sandbox_config)
            .await
            .unwrap();
        self.runtime.start_container(&id).await.unwrap();

        let sandbox = self
            .runtime
            .pod_sandbox_status(&sandbox, false)
            .await
            .unwrap()
            .status
            .unwrap();

        let seen = self
            .runtime
            .container_status(&id, false)
            .await
            .unwrap()
            .status
            .unwrap();

        self.pod_manager.set(Arc::new(pod));
        self.pod_manager
            .set_observed(&uid, Arc::new(Observed::of(&[sandbox], &[seen])));
        let status = json!({"phase": "Running", "containerStatuses": [{
            "name": name, "image": "busybox", "imageID": "", "ready": true, "restartCount": 0,
            "containerID": format!("coracle://{id}"), "state": {"running": {}},
        }]});

        self.pod_manager.set_status(
            &uid,
            Arc::new(serde_json::from_value(status.clone()).unwrap()),
        );

        let pods = self
            .cluster
            .client()
            .typed::<Pod>()
            .namespace("default")
            .subresource("status");

        pods.patch(name, &merge(&json!({"status": status})))
            .await
            .unwrap();

        id
    }

    fn sandbox(&self, name: &str, uid: &str) -> PodSandboxConfig {
        let pids = NamespaceOption {
            pid: NamespaceMode::Container.into(),
            ..Default::default()
        };

        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: name.to_owned(),
                uid: uid.to_owned(),
                namespace: "default".to_owned(),
                attempt: 0,
            }),
            hostname: name.to_owned(),
            log_directory: self
                .folder
                .path()
                .join("logs")
                .join(name)
                .to_string_lossy()
                .into_owned(),
            labels: HashMap::new(),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: format!("/{}", self.config.instance),
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(pids),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    pub(crate) async fn exec(&self, container: &str, script: &str) {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let done = self
            .runtime
            .exec_sync(container, command, None)
            .await
            .unwrap();
        assert_eq!(done.exit_code, 0, "{script}");
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .join("logs")
            .join(name)
            .join(format!("{name}.log"))
    }

    pub(crate) async fn has_printed(&self, name: &str, line: &str) {
        for _ in 0..12_000 {
            if fs::read_to_string(self.log(name))
                .unwrap_or_default()
                .contains(&format!(" {line}\n"))
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{name} does not print {line}");
    }

    /// Moves a log away, as a kubelet does when it has become long.
    pub(crate) async fn rotate(&self, name: &str, container: &str) {
        fs::rename(self.log(name), self.log(name).with_extension("log.1")).unwrap();
        self.runtime.reopen_container_log(container).await.unwrap();
    }

    /// The kubelet's API is no longer there.
    pub(crate) async fn silence(&self) {
        self.stop.send_replace(true);
        let serving = self.serving.lock().unwrap().take();
        if let Some(serving) = serving {
            serving.await.unwrap();
        }
    }

    pub(crate) async fn stop(self) {
        self.silence().await;

        for sandbox in self
            .runtime
            .list_pod_sandbox(PodSandboxFilter::default())
            .await
            .unwrap()
        {
            self.runtime.remove_pod_sandbox(&sandbox.id).await.unwrap();
        }

        self.cluster.stop().await;
        coracle_cgroup::Hierarchies::detect()
            .unwrap()
            .group(&self.config.instance)
            .remove()
            .unwrap();
    }

    /// Asks the kubelet without an API server between; `identity` names a certificate.
    pub(crate) async fn ask_kubelet(&self, path: &str, identity: Option<&str>) -> (u16, String) {
        self.ask_kubelet_with(path, identity, &[]).await
    }

    /// The same with more arguments for curl.
    pub(crate) async fn ask_kubelet_with(
        &self,
        path: &str,
        identity: Option<&str>,
        more: &[&str],
    ) -> (u16, String) {
        let mut curl = tokio::process::Command::new("curl");
        curl.arg("--silent")
            .arg("--cacert")
            .arg(self.cluster.file("ca.crt"));

        if let Some(identity) = identity {
            curl.arg("--cert")
                .arg(self.cluster.file(&format!("{identity}.crt")));
            curl.arg("--key")
                .arg(self.cluster.file(&format!("{identity}.key")));
        }

        curl.args(more)
            .args(["--write-out", "\n%{http_code}"])
            .arg(format!("https://127.0.0.1:{}{path}", self.port));
        let output = curl.output().await.unwrap();
        assert!(output.status.success(), "curl {more:?} {path}: {output:?}");

        let text = String::from_utf8(output.stdout).unwrap();
        let (text, status) = text.rsplit_once('\n').unwrap();

        (status.parse().unwrap(), text.to_owned())
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn write_kubeconfig(&self) {
        let file = |name: &str| self.cluster.file(name).to_string_lossy().into_owned();
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": self.cluster.https().server, "certificate-authority": file("ca.crt"),
            }}],
            "users": [{"name": "test", "user": {
                "client-certificate": file("admin.crt"), "client-key": file("admin.key"),
            }}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        fs::write(self.kubeconfig(), config.to_string()).unwrap();
    }
}

fn merge(change: &serde_json::Value) -> Patch {
    Patch::Merge(coracle_api::codec::json::parse(change.to_string().as_bytes()).unwrap())
}

fn container(name: &str, script: &str) -> ContainerConfig {
    let pids = NamespaceOption {
        pid: NamespaceMode::Container.into(),
        ..Default::default()
    };

    ContainerConfig {
        metadata: Some(ContainerMetadata {
            name: name.to_owned(),
            attempt: 0,
        }),
        image: Some(ImageSpec {
            image: "busybox".to_owned(),
            ..Default::default()
        }),
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        log_path: format!("{name}.log"),
        linux: Some(LinuxContainerConfig {
            security_context: Some(LinuxContainerSecurityContext {
                namespace_options: Some(pids),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Root filesystems of busybox, a folder for each container.
struct Roots {
    folder: PathBuf,
}

#[async_trait]
impl RootFs for Roots {
    async fn resolve(&self, _: &ImageSpec) -> Result<ImageForContainer, RootFsError> {
        let config = ImageConfig {
            command: vec!["sh".to_owned()],
            ..ImageConfig::default()
        };
        Ok(ImageForContainer {
            id: "sha256:b".to_owned(),
            reference: "busybox".to_owned(),
            config,
        })
    }

    async fn prepare(
        &self,
        container: &str,
        _: &ImageForContainer,
        _: &[String],
    ) -> Result<PathBuf, RootFsError> {
        let root = self.folder.join(container);
        unpack(&root);
        rustix::mount::mount_bind(&root, &root).unwrap();
        Ok(root)
    }

    async fn remove(&self, container: &str) -> Result<(), RootFsError> {
        let root = self.folder.join(container);
        if root.exists() {
            rustix::mount::unmount(&root, rustix::mount::UnmountFlags::DETACH).unwrap_or_default();
            fs::remove_dir_all(&root).unwrap();
        }
        Ok(())
    }

    async fn containers(&self) -> Result<Vec<String>, RootFsError> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        Ok(entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect())
    }

    async fn usage(&self, _: &str) -> Result<RootFsUsage, RootFsError> {
        Ok(RootFsUsage::default())
    }
}

fn unpack(root: &Path) {
    for folder in ["bin", "etc", "tmp", "proc", "sys", "dev"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let busybox = fs::read(BUSYBOX).expect("the package busybox-static is installed");
    coracle_testkit::write_program(&root.join("bin/busybox"), busybox);
    for command in COMMANDS {
        symlink("busybox", root.join("bin").join(command)).unwrap();
    }
}
