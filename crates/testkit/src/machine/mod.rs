//! A machine for a node: a container runtime with the built-in image and a pod network, in a
//! directory and an isolated network namespace of the test.

mod sys;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::SystemTime;

use coracle_podnet::{Bridge, BridgeConfig};
use coracle_runtime::images::{ImageStore, ImagesConfig};
use coracle_runtime::rootfs::OverlayRootFs;
use coracle_runtime::{Config, Runtime};

/// The machine of one test.
pub struct Machine {
    /// The container runtime.
    pub runtime: Arc<Runtime>,
    /// The image store.
    pub images: Arc<ImageStore>,
    /// The cgroup of all pods.
    pub cgroup_root: String,
    folder: PathBuf,
}

/// Runs a test on a machine, and checks that nothing of its pods is left.
///
/// # Panics
/// If something is.
pub fn on_a_machine<F: AsyncFnOnce(Machine) -> Machine + Send>(test: &str, test_body: F) {
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            sys::leave_the_network();
            assert!(
                Command::new("ip")
                    .args(["link", "set", "lo", "up"])
                    .status()
                    .unwrap()
                    .success()
            );

            // Threads of the runtime inherit the network namespace of this one.
            let threads = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build();

            threads.unwrap().block_on(async {
                let folder = tempfile::tempdir().unwrap();
                let name = format!("coracle-test-{test}-{}", std::process::id());
                let machine = test_body(Machine::new(folder.path(), &name).await).await;
                machine.assert_empty();

                drop(machine);
                coracle_cgroup::Hierarchies::detect()
                    .unwrap()
                    .group(&name)
                    .remove()
                    .unwrap();
            });
        });

        inside
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

impl Machine {
    async fn new(folder: &Path, name: &str) -> Machine {
        let images = ImageStore::open(ImagesConfig::new(folder.join("images"), now)).unwrap();
        images.add_built_in().await.unwrap();
        Machine::open(folder, name, images).await
    }

    async fn open(folder: &Path, name: &str, images: Arc<ImageStore>) -> Machine {
        let config = Config {
            instance: name.to_owned(),
            root: folder.join("root"),
            state: folder.join("state"),
            pids_limit: None,
            open_files: None,
        };

        let bridge = Bridge::open(BridgeConfig {
            name: "pods0".to_owned(),
            table: "pods".to_owned(),
            state: folder.join("addresses"),
            ranges: vec!["10.244.0.0/24".parse().unwrap()],
            mtu: Some(1500),
            masquerade_outside: Vec::new(),
            service_ranges: Vec::new(),
        })
        .await
        .unwrap();

        let rootfs = OverlayRootFs::new(images.clone(), folder.join("mounts"));
        let runtime = Runtime::open(config, Arc::new(rootfs), Some(Arc::new(bridge)))
            .await
            .unwrap();

        Machine {
            runtime: Arc::new(runtime),
            images,
            cgroup_root: format!("/{name}"),
            folder: folder.to_owned(),
        }
    }

    /// The same machine with another runtime, as after a restart of the process.
    pub async fn restarted(self) -> Machine {
        let Machine {
            runtime,
            images,
            cgroup_root,
            folder,
        } = self;
        drop(runtime);
        Machine::open(&folder, cgroup_root.trim_start_matches('/'), images).await
    }

    /// A directory for the test.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Asserts that no mounts, records, processes, cgroups or addresses of pods are left.
    ///
    /// # Panics
    /// If something is.
    pub fn assert_empty(&self) {
        let place = self.folder.to_string_lossy();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let left: Vec<&str> = mounts
            .lines()
            .filter(|line| line.contains(place.as_ref()))
            .collect();
        assert!(left.is_empty(), "mounts: {left:?}");

        for name in [
            "root/sandboxes",
            "root/containers",
            "state/sandboxes",
            "mounts",
        ] {
            let left: Vec<_> = std::fs::read_dir(self.folder.join(name))
                .into_iter()
                .flatten()
                .flatten()
                .collect();
            assert!(left.is_empty(), "files: {left:?}");
        }

        let group = coracle_cgroup::Hierarchies::detect()
            .unwrap()
            .group(&self.cgroup_root);
        for folder in group.folders() {
            let left = pods_below(&folder.join("kubepods"));
            assert!(left.is_empty(), "cgroups: {left:?}");

            let processes = std::fs::read_to_string(folder.join("supervisors/cgroup.procs"));
            assert_eq!(
                processes.unwrap_or_default(),
                "",
                "supervisors in {}",
                folder.display()
            );
        }

        let links = Command::new("ip").args(["-o", "link"]).output().unwrap();
        let links = String::from_utf8_lossy(&links.stdout).into_owned();
        assert!(!links.contains("veth"), "interfaces: {links}");
    }
}

fn pods_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders
        .flat_map(
            |entry| match entry.file_name().to_string_lossy().starts_with("pod") {
                true => vec![entry.path()],
                false => pods_below(&entry.path()),
            },
        )
        .collect()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the machine of a test has the real clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}
