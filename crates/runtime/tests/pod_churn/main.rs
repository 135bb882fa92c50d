//! Pods with images and networks are created and removed, many in parallel: nothing is left.
//!
//! `CORACLE_CYCLES=1000` runs more cycles than the default.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

#[path = "../common/mod.rs"]
mod common;
mod sys;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use common::{Leftovers, own_pids, script};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use coracle_podnet::{Bridge, BridgeConfig};
use coracle_runtime::images::{ImageStore, ImagesConfig};
use coracle_runtime::rootfs::OverlayRootFs;
use coracle_runtime::{Config, Runtime};
use futures_util::future::join_all;

/// More than the available addresses, so that each is reused.
const USUAL_CYCLES: usize = 120;
const ADDRESSES: &str = "10.244.0.0/26";

/// How many pods run in parallel.
const LANES: usize = 10;

#[test]
fn created_and_removed_pods_leave_nothing() {
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            sys::unshare_network();
            stdout_of("ip", "link set lo up");
            // Its threads are made by this one, and so are in the same network.
            let threads = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .build()
                .unwrap();
            threads.block_on(come_and_go(cycles()));
        });

        inside
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

#[expect(
    clippy::disallowed_methods,
    reason = "set by the environment of the test run"
)]
fn cycles() -> usize {
    std::env::var("CORACLE_CYCLES").map_or(USUAL_CYCLES, |number| number.parse().unwrap())
}

async fn come_and_go(cycles: usize) {
    let folder = tempfile::tempdir().unwrap();
    let instance = format!("coracle-test-come-and-go-{}", std::process::id());
    let leftovers = Leftovers::of(&instance, folder.path());
    let node = Arc::new(Node::open(folder.path(), &instance).await);
    let before = node.inventory();
    node.cycle(0, true).await;

    // The first cycle opens descriptors that stay open.
    let most = descriptors() + LANES;
    let lanes = (0..LANES).map(|lane| {
        let node = Arc::clone(&node);
        tokio::spawn(async move {
            for number in (1..=cycles).filter(|number| number % LANES == lane) {
                node.cycle(number, false).await;
            }
        })
    });

    for lane in join_all(lanes).await {
        lane.unwrap();
    }

    // The kernel releases namespaces asynchronously.
    for _ in 0..600 {
        if node.inventory() == before && descriptors() < most {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    assert_eq!(node.inventory(), before);

    let shared = fs::read_dir(node.folder.join(SHARED)).unwrap().count();
    assert_eq!(
        shared, 1,
        "all containers share one layer of places to mount at"
    );

    assert!(
        descriptors() < most,
        "{} descriptors, {most} at most",
        descriptors()
    );

    drop(node);
    drop(leftovers);
}

struct Node {
    runtime: Runtime,
    instance: String,
    folder: PathBuf,
}

impl Node {
    async fn open(folder: &Path, instance: &str) -> Self {
        let images = ImageStore::open(ImagesConfig::new(folder.join("images"), || {
            SystemTime::UNIX_EPOCH
        }));
        let images = images.unwrap();
        images.add_built_in().await.unwrap();

        // Created by the first pod, and kept.
        fs::create_dir_all(folder.join("mounts")).unwrap();
        fs::create_dir_all(folder.join("state/sandboxes")).unwrap();

        let bridge = BridgeConfig {
            name: "pods0".to_owned(),
            table: "pods".to_owned(),
            state: folder.join("addresses"),
            ranges: vec![ADDRESSES.parse().unwrap()],
            mtu: Some(1500),
            masquerade_outside: Vec::new(),
            service_ranges: Vec::new(),
        };
        let bridge = Bridge::open(bridge).await.unwrap();

        let config = Config {
            instance: instance.to_owned(),
            root: folder.join("root"),
            state: folder.join("state"),
            pids_limit: None,
            open_files: None,
        };

        let rootfs = OverlayRootFs::new(images, folder.join("mounts"));
        let runtime = Runtime::open(config, Arc::new(rootfs), Some(Arc::new(bridge)))
            .await
            .unwrap();

        Self {
            runtime,
            instance: instance.to_owned(),
            folder: folder.to_owned(),
        }
    }

    /// The life of one pod. Some containers end by themselves, some pods have ports of the host.
    async fn cycle(&self, number: usize, look: bool) {
        let pod = self.pod(number);
        let sandbox = self.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
        let command = if number.is_multiple_of(2) {
            ["/echo", "exit", "0"]
        } else {
            ["/echo", "sleep", "1000"]
        };

        let config = ContainerConfig {
            image: Some(ImageSpec {
                image: "coracle.local/echo".to_owned(),
                ..Default::default()
            }),
            command: command.map(str::to_owned).to_vec(),
            ..script("one", "")
        };

        let id = self
            .runtime
            .create_container(&sandbox, config, pod)
            .await
            .unwrap();
        self.runtime.start_container(&id).await.unwrap();

        if look {
            // Checks that the inventory sees a running pod.
            assert_eq!((namespaces(), interfaces(), tables()), (1, 1, 1));
        }

        if number.is_multiple_of(2) {
            self.ended(&id).await;
        }

        self.runtime.remove_pod_sandbox(&sandbox).await.unwrap();
    }

    fn pod(&self, number: usize) -> PodSandboxConfig {
        let name = format!("pod-{number}");
        let port = PortMapping {
            container_port: 80,
            host_port: 30_000,
            ..Default::default()
        };

        let context = LinuxSandboxSecurityContext {
            namespace_options: Some(own_pids()),
            ..Default::default()
        };

        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: name.clone(),
                uid: name.clone(),
                namespace: "default".to_owned(),
                attempt: 0,
            }),
            hostname: name.clone(),
            log_directory: self
                .folder
                .join("logs")
                .join(name)
                .to_string_lossy()
                .into_owned(),
            port_mappings: if number.is_multiple_of(60) {
                vec![port]
            } else {
                Vec::new()
            },
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: format!("/{}", self.instance),
                security_context: Some(context),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    async fn ended(&self, container: &str) {
        for _ in 0..24_000 {
            let status = self
                .runtime
                .container_status(container, false)
                .await
                .unwrap()
                .status
                .unwrap();

            if status.state() == ContainerState::ContainerExited {
                assert_eq!(status.exit_code, 0, "{status:?}");
                return;
            }

            tokio::time::sleep(Duration::from_millis(5)).await;
        }

        panic!("{container} does not end");
    }

    /// Everything of this node on the host, as names and counts.
    fn inventory(&self) -> Inventory {
        let place = self.folder.to_string_lossy().into_owned();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let shared = self.folder.join(SHARED);
        let of_pods = |path: &PathBuf| !path.starts_with(&shared);
        let groups = coracle_cgroup::Hierarchies::detect()
            .unwrap()
            .group(&self.instance)
            .folders();

        Inventory {
            mounts: mounts
                .lines()
                .filter(|line| line.contains(&place))
                .map(str::to_owned)
                .collect(),
            files: KEPT
                .iter()
                .flat_map(|folder| below(&self.folder.join(folder)))
                .filter(of_pods)
                .collect(),
            groups: groups
                .iter()
                .flat_map(|folder| folders_below(folder))
                .collect(),
            supervisors: common::supervisors(&self.instance),
            namespaces: namespaces(),
            interfaces: interfaces(),
            tables: tables(),
        }
    }
}

/// All folders except logs, which the kubelet deletes.
const KEPT: [&str; 5] = ["root", "state", "images", "mounts", "addresses"];

/// Created by the first container for all later ones.
const SHARED: &str = "images/mount-points";

#[derive(Debug, PartialEq)]
struct Inventory {
    mounts: Vec<String>,
    files: Vec<PathBuf>,
    groups: Vec<PathBuf>,
    supervisors: Vec<(i32, String)>,
    namespaces: usize,
    interfaces: usize,
    tables: usize,
}

/// Network namespaces with an ID in this one that still exist.
fn namespaces() -> usize {
    stdout_of("ip", "netns list-id").lines().count()
}

fn interfaces() -> usize {
    stdout_of("ip", "-o link")
        .lines()
        .filter(|line| line.contains("veth"))
        .count()
}

fn tables() -> usize {
    stdout_of("nft", "list tables").lines().count()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn stdout_of(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; see scripts/test-prereqs.sh"));
    assert!(
        output.status.success(),
        "{program} {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// All that is below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(below(&entry.path()));
        }
    }
    found.sort();
    found
}

fn folders_below(folder: &Path) -> Vec<PathBuf> {
    below(folder)
        .into_iter()
        .filter(|path| path.is_dir())
        .collect()
}
