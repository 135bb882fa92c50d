//! The compared runtimes: this one and containerd, both through the CRI traits.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use coracle_cri::v1::*;
use coracle_cri::{Client, Images, Runtime};
use coracle_podnet::{Bridge, BridgeConfig};
use coracle_runtime::Config;
use coracle_runtime::images::{ImageStore, ImagesConfig};
use coracle_runtime::rootfs::OverlayRootFs;

use tokio::time::Instant;

use crate::common::{own_pids, script, with_resources};
use crate::milliseconds;
use crate::registry::Registry;

pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// The name of its cgroups.
    pub(crate) instance: String,
    pub(crate) runtime: Arc<dyn Runtime>,
    images: Arc<dyn Images>,
    image: String,
    logs: PathBuf,
    process: Option<Child>,
}

/// A pod, and how long it took.
pub(crate) struct Started {
    pub(crate) sandbox: String,
    pub(crate) container: String,
    pub(crate) took: f64,
    pub(crate) steps: [(&'static str, f64); 3],
}

impl Contender {
    pub(crate) async fn ours(folder: &Path, registry: &Registry) -> Self {
        let folder = folder.join("ours");

        // As on a node: runtime state is in memory.
        let instance = format!("coracle-bench-{}", std::process::id());
        let run_dir = Path::new("/run").join(&instance);
        let images = ImageStore::open(ImagesConfig::new(folder.join("images"), now)).unwrap();

        let network = BridgeConfig {
            name: "bench0".to_owned(),
            table: "bench".to_owned(),
            state: run_dir.join("network"),
            ranges: vec!["10.87.0.0/16".parse().unwrap()],
            mtu: Some(1500),
            masquerade_outside: Vec::new(),
            service_ranges: Vec::new(),
        };
        let network = Bridge::open(network).await.unwrap();

        let rootfs = OverlayRootFs::new(Arc::clone(&images), run_dir.join("rootfs"));
        let config = Config {
            instance: instance.clone(),
            root: folder.join("root"),
            state: run_dir,
            pids_limit: None,
            open_files: None,
        };

        let runtime =
            coracle_runtime::Runtime::open(config, Arc::new(rootfs), Some(Arc::new(network)))
                .await
                .unwrap();

        let contender = Self {
            name: "coracle",
            instance,
            runtime: Arc::new(runtime),
            images,
            image: registry.busybox(),
            logs: folder.join("logs"),
            process: None,
        };
        contender.pull(&contender.image).await;

        contender
    }

    pub(crate) async fn containerd(folder: &Path, registry: &Registry) -> Self {
        let folder = folder.join("containerd");
        let (image, socket) = (registry.busybox(), folder.join("socket"));
        write_config(&folder, &image);

        let process = Command::new("containerd")
            .args(["--config".as_ref(), folder.join("config.toml").as_os_str()])
            .args(["--root".as_ref(), folder.join("root").as_os_str()])
            .args(["--state", "/run/containerd"])
            .args(["--address".as_ref(), socket.as_os_str()])
            .stdout(Stdio::null())
            .stderr(File::create(folder.join("log")).unwrap())
            .spawn()
            .expect("containerd is installed");

        let client = Client::new(&socket).unwrap();
        let contender = Self {
            name: "containerd",
            instance: format!("coracle-bench-containerd-{}", std::process::id()),
            runtime: Arc::new(client.clone()),
            images: Arc::new(client),
            image,
            logs: folder.join("logs"),
            process: Some(process),
        };

        for _ in 0..1000 {
            if contender.runtime.status(false).await.is_ok() {
                contender.pull(&contender.image).await;
                return contender;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        panic!(
            "containerd does not answer: {}",
            fs::read_to_string(folder.join("log")).unwrap()
        );
    }

    pub(crate) async fn pull(&self, image: &str) {
        let image = ImageSpec {
            image: image.to_owned(),
            ..Default::default()
        };
        self.images.pull_image(image, None, None).await.unwrap();
    }

    /// A whole pod whose container runs.
    pub(crate) async fn start_pod(&self, name: &str) -> Started {
        let pod = self.pod(name);
        let begin = Instant::now();
        let sandbox = self.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();

        let ran = milliseconds(begin);
        let config = ContainerConfig {
            image: Some(ImageSpec {
                image: self.image.clone(),
                ..Default::default()
            }),
            command: ["sleep", "1000"].map(str::to_owned).to_vec(),
            ..script("one", "")
        };

        let config = with_resources(config, |resources| {
            resources.memory_limit_in_bytes = 64 << 20;
            resources.cpu_shares = 256;
            (resources.cpu_period, resources.cpu_quota) = (100_000, 50_000);
        });

        let container = self
            .runtime
            .create_container(&sandbox, config, pod)
            .await
            .unwrap();

        let created = milliseconds(begin);
        self.runtime.start_container(&container).await.unwrap();
        let started = milliseconds(begin);
        let steps = [
            ("its sandbox", ran),
            ("its creation", created - ran),
            ("its start", started - created),
        ];

        Started {
            sandbox,
            container,
            took: started,
            steps,
        }
    }

    fn pod(&self, name: &str) -> PodSandboxConfig {
        let security = LinuxSandboxSecurityContext {
            namespace_options: Some(own_pids()),
            ..Default::default()
        };

        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: name.to_owned(),
                uid: format!("uid-{name}"),
                namespace: "default".to_owned(),
                attempt: 0,
            }),
            hostname: name.to_owned(),
            log_directory: self.logs.join(name).to_string_lossy().into_owned(),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: format!("/{}", self.instance),
                security_context: Some(security),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    pub(crate) async fn stop(mut self) {
        for sandbox in self
            .runtime
            .list_pod_sandbox(PodSandboxFilter::default())
            .await
            .unwrap()
        {
            self.runtime.remove_pod_sandbox(&sandbox.id).await.unwrap();
        }

        if let Some(process) = &mut self.process {
            process.kill().unwrap();
            process.wait().unwrap();
        }

        coracle_cgroup::Hierarchies::detect()
            .unwrap()
            .group(&self.instance)
            .remove()
            .unwrap();

        fs::remove_dir_all(Path::new("/run").join(&self.instance)).unwrap_or_default();
    }
}

/// Containerd as Debian has it, with Debian's bridge plugin.
fn write_config(folder: &Path, image: &str) {
    let plugins = folder.join("cni");
    fs::create_dir_all(&plugins).unwrap();

    let network = serde_json::json!({
        "cniVersion": "0.4.0", "name": "bench",
        "plugins": [{
            "type": "bridge", "bridge": "bench1", "isGateway": true,
            "ipam": {
                "type": "host-local", "dataDir": folder.join("addresses"), "ranges": [[{"subnet": "10.88.0.0/16"}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }],
    });
    fs::write(plugins.join("bench.conflist"), network.to_string()).unwrap();

    let cri = "plugins.\"io.containerd.grpc.v1.cri\"";
    let text = format!(
        "version = 2\n[{cri}]\nsandbox_image = \"{image}\"\nrestrict_oom_score_adj = true\n\
         [{cri}.cni]\nbin_dir = \"/usr/lib/cni\"\nconf_dir = \"{}\"\n",
        plugins.display()
    );
    fs::write(folder.join("config.toml"), text).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "images are dated")]
fn now() -> SystemTime {
    SystemTime::now()
}
