//! Pods whose network setup and teardown both fail: they are listed as not ready, and removed as
//! soon as teardown works.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

#[path = "../common/mod.rs"]
mod common;
mod sys;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use common::{Leftovers, own_pids, script, supervisors};
use coracle_cri::v1::*;
use coracle_cri::{Error, Runtime as _};
use coracle_podnet::{CniConfig, CniNetwork};
use coracle_runtime::{Config, ImageForContainer, RootFs, RootFsError, RootFsUsage, Runtime};

/// Where Debian's package `containernetworking-plugins` puts them.
const PLUGINS: &str = "/usr/lib/cni";

/// The plugin timeout, for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn the_rest_of_a_failed_pod_is_listed_until_it_is_removed() {
    on_a_node("undone", async |mut node| {
        node.break_plugin();
        let (first, second) = (node.pod("p", 0), node.pod("p", 1));
        let first_left = node.run_fails(&first).await;
        let second_left = node.run_fails(&second).await;
        let listed = node.list().await;
        assert_eq!(listed.len(), 2, "{listed:?}");

        for left in [&first_left, &second_left] {
            let sandbox = listed.iter().find(|sandbox| sandbox.id == *left).unwrap();
            assert_eq!(sandbox.state(), PodSandboxState::SandboxNotready);
            assert_eq!(sandbox.labels, first.labels, "its kubelet finds it");
            assert!(
                !supervisors(&node.config.instance)
                    .iter()
                    .any(|one| one.1.contains(left))
            );
        }

        let refused = node
            .runtime
            .create_container(&first_left, script("c", "true"), first.clone())
            .await;

        assert!(
            matches!(refused, Err(Error::FailedPrecondition(_))),
            "{refused:?}"
        );

        // It stays listed until it is removed.
        let error_is_stuck =
            |error: &Error| assert!(error.to_string().contains("stuck"), "{error}");
        error_is_stuck(
            &node
                .runtime
                .stop_pod_sandbox(&first_left)
                .await
                .unwrap_err(),
        );

        error_is_stuck(
            &node
                .runtime
                .remove_pod_sandbox(&second_left)
                .await
                .unwrap_err(),
        );

        assert_eq!(node.list().await.len(), 2);

        node.repair_plugin();
        node.runtime.stop_pod_sandbox(&first_left).await.unwrap();
        let listed: Vec<String> = node
            .list()
            .await
            .into_iter()
            .map(|sandbox| sandbox.id)
            .collect();

        assert_eq!(
            listed,
            std::slice::from_ref(&second_left),
            "one that was stopped goes"
        );

        node.runtime.remove_pod_sandbox(&second_left).await.unwrap();
        node.runtime.remove_pod_sandbox(&second_left).await.unwrap();
        node.runtime.stop_pod_sandbox(&first_left).await.unwrap();
        node.assert_empty().await;

        node
    });
}

#[test]
fn an_unfinished_pod_is_listed_after_a_restart_that_cannot_remove_it() {
    on_a_node("undone-restart", async |mut node| {
        node.break_plugin();
        let pod = node.pod("p", 0);
        let left = node.run_fails(&pod).await;
        node = node.restarted().await;

        eventually(async || !node.list().await.is_empty()).await;
        let listed = node.list().await;
        let states: Vec<_> = listed
            .iter()
            .map(|sandbox| (sandbox.id.as_str(), sandbox.state()))
            .collect();
        assert_eq!(states, [(left.as_str(), PodSandboxState::SandboxNotready)]);

        node.runtime.stop_pod_sandbox(&left).await.unwrap_err();

        // A pod of the same name keeps its name when the old one is removed.
        node.repair_plugin();
        let made = node.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
        node.runtime.remove_pod_sandbox(&left).await.unwrap();
        let taken = node.runtime.run_pod_sandbox(pod.clone(), "").await;
        assert!(matches!(taken, Err(Error::AlreadyExists(_))), "{taken:?}");
        assert_eq!(node.list().await.len(), 1);

        node.runtime.remove_pod_sandbox(&made).await.unwrap();

        // A restart retries the removal.
        node.break_plugin();
        node.run_fails(&pod).await;
        node.repair_plugin();
        node = node.restarted().await;
        let records = node.place.join("root/sandboxes");
        eventually(async || {
            fs::read_dir(&records).unwrap().next().is_none() && node.list().await.is_empty()
        })
        .await;

        node.assert_empty().await;

        node
    });
}

#[test]
fn a_pod_whose_network_teardown_failed_is_not_ready_and_can_be_stopped_again() {
    on_a_node("undone-stop", async |mut node| {
        let id = node
            .runtime
            .run_pod_sandbox(node.pod("p", 0), "")
            .await
            .unwrap();

        let status = async |node: &Node| {
            node.runtime
                .pod_sandbox_status(&id, false)
                .await
                .unwrap()
                .status
                .unwrap()
                .state()
        };
        assert_eq!(status(&node).await, PodSandboxState::SandboxReady);

        node.break_plugin();
        node.runtime.stop_pod_sandbox(&id).await.unwrap_err();
        assert_eq!(status(&node).await, PodSandboxState::SandboxNotready);

        node.repair_plugin();
        node.runtime.stop_pod_sandbox(&id).await.unwrap();
        assert_eq!(status(&node).await, PodSandboxState::SandboxNotready);

        node.runtime.remove_pod_sandbox(&id).await.unwrap();
        node.assert_empty().await;

        node
    });
}

/// A test node, with Debian's bridge plugin and a plugin that can be broken.
struct Node {
    runtime: Runtime,
    config: Config,
    place: PathBuf,
}

fn on_a_node(test: &str, work: impl AsyncFnOnce(Node) -> Node + Send) {
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            sys::unshare_network();
            stdout_of("ip", "link set lo up");

            // Its threads are made by this one, and so are in the same network.
            let threads = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build();

            threads.unwrap().block_on(async {
                let folder = tempfile::tempdir().unwrap();
                let instance = format!("coracle-test-{test}-{}", std::process::id());
                let leftovers = Leftovers::of(&instance, folder.path());
                let node = work(Node::new(folder.path(), &instance).await).await;
                drop(node);
                drop(leftovers);
            });
        });

        inside
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

impl Node {
    async fn new(place: &Path, instance: &str) -> Self {
        for folder in ["net.d", "bin"] {
            fs::create_dir(place.join(folder)).unwrap();
        }

        let ipam = format!(
            r#"{{"type": "host-local", "dataDir": "{}", "ranges": [[{{"subnet": "10.90.0.0/24"}}]]}}"#,
            place.join("ipam").display()
        );

        let list = format!(
            r#"{{"cniVersion": "1.0.0", "name": "test", "plugins": [
                {{"type": "bridge", "bridge": "cni0", "ipam": {ipam}}}, {{"type": "stuck"}}]}}"#
        );
        fs::write(place.join("net.d/10-test.conflist"), list).unwrap();

        // Returns a fixed result, unless it is broken.
        let plugin = format!(
            "#!/bin/sh\ninput=$(cat)\n[ -e {} ] && echo '{{\"code\": 11, \"msg\": \"stuck\"}}' && exit 1\n\
             [ $CNI_COMMAND = ADD ] && echo '{{\"cniVersion\":\"1.0.0\",\"ips\":[{{\"address\":\"10.90.0.2/24\"}}]}}'\nexit 0\n",
            place.join("broken").display()
        );
        common::program::write(&place.join("bin/stuck"), plugin);

        let config = Config {
            instance: instance.to_owned(),
            root: place.join("root"),
            state: place.join("state"),
            pids_limit: None,
            open_files: None,
        };

        Self {
            runtime: open(place, &config).await,
            config,
            place: place.to_owned(),
        }
    }

    /// The same node with another runtime, as after a restart of the process.
    async fn restarted(self) -> Self {
        let Self {
            runtime,
            config,
            place,
        } = self;
        drop(runtime);
        Self {
            runtime: open(&place, &config).await,
            config,
            place,
        }
    }

    fn break_plugin(&mut self) {
        fs::write(self.place.join("broken"), "").unwrap();
    }

    fn repair_plugin(&mut self) {
        fs::remove_file(self.place.join("broken")).unwrap();
    }

    fn pod(&self, name: &str, attempt: u32) -> PodSandboxConfig {
        let metadata = PodSandboxMetadata {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            namespace: "default".to_owned(),
            attempt,
        };

        let security = LinuxSandboxSecurityContext {
            namespace_options: Some(own_pids()),
            ..LinuxSandboxSecurityContext::default()
        };

        let linux = LinuxPodSandboxConfig {
            cgroup_parent: format!("/{}", self.config.instance),
            security_context: Some(security),
            ..LinuxPodSandboxConfig::default()
        };

        PodSandboxConfig {
            metadata: Some(metadata),
            hostname: name.to_owned(),
            labels: HashMap::from([("io.kubernetes.pod.uid".to_owned(), format!("uid-{name}"))]),
            linux: Some(linux),
            ..PodSandboxConfig::default()
        }
    }

    /// Runs a pod whose setup and teardown fail. Returns the ID of the sandbox that is left.
    async fn run_fails(&self, pod: &PodSandboxConfig) -> String {
        let before: Vec<String> = self
            .list()
            .await
            .into_iter()
            .map(|sandbox| sandbox.id)
            .collect();

        let error = self
            .runtime
            .run_pod_sandbox(pod.clone(), "")
            .await
            .unwrap_err();
        assert!(error.to_string().contains("stuck"), "{error}");

        let left = self
            .list()
            .await
            .into_iter()
            .find(|sandbox| !before.contains(&sandbox.id));

        left.expect("what is left is listed").id
    }

    async fn list(&self) -> Vec<PodSandbox> {
        self.runtime
            .list_pod_sandbox(PodSandboxFilter::default())
            .await
            .unwrap()
    }

    /// Nothing of any pod is left: lists, mounts, files, supervisors, addresses, interfaces.
    async fn assert_empty(&self) {
        assert_eq!(self.list().await, []);

        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = self.place.to_string_lossy();
        let left: Vec<&str> = mounts
            .lines()
            .filter(|line| line.contains(place.as_ref()))
            .collect();
        assert!(left.is_empty(), "mounts: {left:?}");

        for folder in ["root/sandboxes", "state/sandboxes", "cache/results"] {
            let left: Vec<_> = fs::read_dir(self.place.join(folder))
                .unwrap()
                .flatten()
                .collect();
            assert!(left.is_empty(), "files: {left:?}");
        }

        assert_eq!(supervisors(&self.config.instance), []);

        let names = fs::read_dir(self.place.join("ipam/test"))
            .unwrap()
            .flatten();
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        let addresses: Vec<String> = names.filter(|name| name.starts_with("10.")).collect();
        assert!(addresses.is_empty(), "{addresses:?}");

        let links = stdout_of("ip", "-o link");
        assert!(!links.contains("veth"), "interfaces: {links}");
    }
}

async fn open(place: &Path, config: &Config) -> Runtime {
    let network = CniNetwork::new(CniConfig {
        configurations: place.join("net.d"),
        plugins: vec![place.join("bin"), PLUGINS.into()],
        cache: place.join("cache"),
        timeout: TIMEOUT,
    });
    Runtime::open(config.clone(), Arc::new(NoImages), Some(Arc::new(network)))
        .await
        .unwrap()
}

/// A restart continues in the background.
async fn eventually(is_so: impl AsyncFn() -> bool) {
    let so = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, so).await.unwrap();
}

fn stdout_of(program: &str, words: &str) -> String {
    let output = Command::new(program)
        .args(words.split(' '))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program} {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Containers are never created here.
struct NoImages;

#[async_trait]
impl RootFs for NoImages {
    async fn resolve(&self, image: &ImageSpec) -> Result<ImageForContainer, RootFsError> {
        Err(RootFsError::NoSuchImage(image.image.clone()))
    }

    async fn prepare(
        &self,
        _: &str,
        image: &ImageForContainer,
        _: &[String],
    ) -> Result<PathBuf, RootFsError> {
        Err(RootFsError::NoSuchImage(image.id.clone()))
    }

    async fn remove(&self, _: &str) -> Result<(), RootFsError> {
        Ok(())
    }

    async fn containers(&self) -> Result<Vec<String>, RootFsError> {
        Ok(Vec::new())
    }

    async fn usage(&self, _: &str) -> Result<RootFsUsage, RootFsError> {
        Ok(RootFsUsage::default())
    }
}
