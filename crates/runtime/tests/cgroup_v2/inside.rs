//! The tests that run with cgroups v2.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use coracle_cgroup::{Hierarchies, Version};
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use coracle_runtime::RootFs as _;
use coracle_runtime::images::{ImageStore, ImagesConfig};
use coracle_runtime::rootfs::OverlayRootFs;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::common::{Node, script, with_resources, with_security};

/// Printed when all checks passed.
pub(crate) const DONE: &str = "all of version 2 was looked at";

/// The pod cgroup, as a kubelet names it.
const PARENT: &str = "kubepods/burstable/pod-1";

struct Cgroup2Node {
    node: Node,
    controllers: Vec<String>,
    pod: PodSandboxConfig,
    sandbox: String,
}

pub(crate) async fn look(expected: &str) {
    let hierarchies = Hierarchies::detect().unwrap();
    assert_eq!(hierarchies.version(), Version::V2);

    let controllers: Vec<String> = expected.split_whitespace().map(str::to_owned).collect();
    for controller in &controllers {
        let there = fs::read_to_string(hierarchies.mounts()[0].join("cgroup.controllers")).unwrap();
        assert!(
            there.split_whitespace().any(|one| one == controller),
            "{controller} of {there}"
        );
    }

    an_image_has_its_root().await;
    let node = Node::with("version2", |config| config.pids_limit = Some(50)).await;
    let mut pod = node.pod("pod");
    pod.linux.as_mut().unwrap().cgroup_parent = format!("/{}/{PARENT}", node.instance());

    let sandbox = node.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
    let mut place = Cgroup2Node {
        node,
        controllers,
        pod,
        sandbox,
    };
    place.limits_are_kept_and_changed().await;

    place.devices_are_refused().await;
    place.memory_and_processes_end().await;
    place.huge_pages_end().await;
    place.what_is_left_of_a_container_ends_with_it().await;
    place.a_pod_may_share_its_processes().await;
    place.all_is_found_again().await;
    let Cgroup2Node { node, sandbox, .. } = place;
    node.runtime.remove_pod_sandbox(&sandbox).await.unwrap();

    // Removed by the kubelet on a real node.
    hierarchies
        .group(&node.instance())
        .child("kubepods")
        .remove()
        .unwrap();

    node.clear().await;
}

/// The UML kernel is older, and mounts overlay layers in another way.
async fn an_image_has_its_root() {
    let folder = tempfile::tempdir().unwrap();
    let images = ImageStore::open(ImagesConfig::new(
        folder.path().join("images"),
        SystemTime::now,
    ))
    .unwrap();
    images.add_built_in().await.unwrap();

    let rootfs = OverlayRootFs::new(images, folder.path().join("mounts"));

    let image = ImageSpec {
        image: "coracle.local/echo".to_owned(),
        ..ImageSpec::default()
    };
    let image = rootfs.resolve(&image).await.unwrap();
    let root = rootfs.prepare("one", &image, &[]).await.unwrap();
    assert!(root.join("echo").exists());

    fs::write(root.join("written"), "by the container").unwrap();
    rootfs.remove("one").await.unwrap();
}

impl Cgroup2Node {
    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|one| one == controller)
    }

    async fn run(&self, config: ContainerConfig) -> String {
        self.node.run(&self.sandbox, &self.pod, config).await
    }

    /// The folder of a container's group.
    fn group(&self, container: &str) -> PathBuf {
        let group = Hierarchies::detect()
            .unwrap()
            .group(&self.node.instance())
            .child(PARENT);
        group.child(container).folders().remove(0)
    }

    async fn limits_are_kept_and_changed(&self) {
        let limited = with_resources(script("limited", "echo up; sleep 1000"), |resources| {
            resources.memory_limit_in_bytes = 64 << 20;
            resources.cpu_shares = 512;
            (resources.cpu_period, resources.cpu_quota) = (100_000, 50_000);
        });
        let id = self.run(limited).await;

        self.node.printed("pod", "limited", "up").await;

        let check = async |controller: &str, file: &str, expected: &str| {
            // Without the controller the file does not exist.
            let expected = if self.has(controller) { expected } else { "" };
            let (_, seen, _) = self
                .node
                .exec(&id, &format!("cat /sys/fs/cgroup/{file} 2>/dev/null"))
                .await;
            assert_eq!(seen.trim(), expected, "{file} inside");

            let seen = fs::read_to_string(self.group(&id).join(file)).unwrap_or_default();
            assert_eq!(seen.trim(), expected, "{file} outside");
        };
        check("memory", "memory.max", "67108864").await;

        check("cpu", "cpu.weight", "59").await;
        check("cpu", "cpu.max", "50000 100000").await;
        check("pids", "pids.max", "50").await;

        let withheld = self.node.runtime.status(true).await.unwrap().info["withheld"].clone();
        for controller in ["memory", "cpu", "pids"] {
            let said = withheld
                .lines()
                .any(|line| line == format!("the host cannot limit {controller}"));
            assert_eq!(said, !self.has(controller), "{controller}: {withheld}");
        }

        let resources = LinuxContainerResources {
            memory_limit_in_bytes: 96 << 20,
            ..Default::default()
        };

        self.node
            .runtime
            .update_container_resources(&id, resources)
            .await
            .unwrap();

        check("memory", "memory.max", "100663296").await;

        // A container and its exec processes are in its cgroup, and see it as root.
        let (_, seen, _) = self
            .node
            .exec(&id, "grep -h ^0: /proc/1/cgroup /proc/self/cgroup")
            .await;
        assert_eq!(seen, "0::/\n0::/\n");

        let (code, _, _) = self
            .node
            .exec(&id, "mkdir /sys/fs/cgroup/own 2>/dev/null")
            .await;
        assert_ne!(code, 0, "it may look, and nothing else");

        let stats = self.node.runtime.container_stats(&id).await.unwrap();
        assert!(stats.cpu.unwrap().usage_core_nano_seconds.unwrap().value > 0);
        assert_eq!(
            stats.memory.unwrap().working_set_bytes.unwrap().value > 0,
            self.has("memory")
        );

        self.node.runtime.remove_container(&id).await.unwrap();
        assert!(!self.group(&id).exists());
    }

    async fn devices_are_refused(&self) {
        let look = "mknod /tmp/node c 1 11; head -c 0 /tmp/node; head -c 0 /dev/zero && mkdir /sys/fs/cgroup/own";
        let usual = self.run(script("usual", look)).await;
        assert_ne!(self.node.ended(&usual).await.exit_code, 0);

        let said = self.node.log("pod", "usual");
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(
            said[0].2.contains("/tmp/node: Operation not permitted"),
            "{said:?}"
        );

        let privileged = with_security(script("privileged", look), |security| {
            security.privileged = true
        });

        let privileged = self.run(privileged).await;
        assert_eq!(
            self.node.ended(&privileged).await.exit_code,
            0,
            "{:?}",
            self.node.log("pod", "privileged")
        );
    }

    async fn memory_and_processes_end(&self) {
        if self.has("memory") {
            let greedy = script(
                "greedy",
                "exec dd if=/dev/zero of=/dev/null bs=200M count=1",
            );

            let id = self
                .run(with_resources(greedy, |limits| {
                    limits.memory_limit_in_bytes = 32 << 20
                }))
                .await;
            let status = self.node.ended(&id).await;
            assert_eq!(
                (status.exit_code, status.reason.as_str()),
                (137, "OOMKilled")
            );
        }

        if self.has("pids") {
            let bomb = "f() { f | f & }; f; sleep 1000";
            let bomb = script(
                "bomb",
                &format!("while :; do sh -c '{bomb}'; done 2>/dev/null"),
            );
            let id = self.run(bomb).await;

            let refused = self.group(&id).join("pids.events");
            while fs::read_to_string(&refused).unwrap().trim() == "max 0" {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }

            let processes = fs::read_to_string(self.group(&id).join("cgroup.procs"))
                .unwrap()
                .lines()
                .count();
            assert!(processes <= 50, "{processes} processes");

            self.node
                .runtime
                .stop_container(&id, Duration::ZERO)
                .await
                .unwrap();

            assert_eq!(self.node.status(&id).await.exit_code, 137);
        }
    }

    async fn huge_pages_end(&self) {
        if !self.has("hugetlb") {
            return;
        }

        let pages = HugePages::reserve(4, &self.node.path().join("huge"));
        let config = with_resources(
            script(
                "huge",
                "fallocate -l 4194304 /huge/two && echo two; fallocate -l 2097152 /huge/three",
            ),
            |resources| {
                let limit = HugepageLimit {
                    page_size: "2MB".to_owned(),
                    limit: 4 << 20,
                };
                resources.hugepage_limits = vec![limit];
            },
        );

        let volume = Mount {
            container_path: "/huge".to_owned(),
            host_path: pages.place.to_string_lossy().into_owned(),
            ..Default::default()
        };

        let id = self
            .run(ContainerConfig {
                mounts: vec![volume],
                ..config
            })
            .await;
        assert_ne!(self.node.ended(&id).await.exit_code, 0);

        let said = self.node.log("pod", "huge");
        assert_eq!(said[0].2, "two", "as many as it may have: {said:?}");
        assert_eq!(said.len(), 2, "and no more: {said:?}");

        self.node.runtime.remove_container(&id).await.unwrap();
    }

    async fn what_is_left_of_a_container_ends_with_it(&self) {
        let mut pod = self.node.pod("host");
        let host = NamespaceOption {
            pid: NamespaceMode::Node.into(),
            ..Default::default()
        };

        pod.linux
            .as_mut()
            .unwrap()
            .security_context
            .as_mut()
            .unwrap()
            .namespace_options = Some(host.clone());

        let sandbox = self
            .node
            .runtime
            .run_pod_sandbox(pod.clone(), "")
            .await
            .unwrap();

        let config = with_security(
            script("leaves", "sleep 1000 & sleep 1000 & exit 5"),
            |security| {
                security.namespace_options = Some(host);
            },
        );
        let id = self.node.run(&sandbox, &pod, config).await;
        assert_eq!(self.node.ended(&id).await.exit_code, 5);

        self.node
            .runtime
            .remove_pod_sandbox(&sandbox)
            .await
            .unwrap();
    }

    async fn a_pod_may_share_its_processes(&self) {
        let mut pod = self.node.pod("shared");
        let share = NamespaceOption {
            pid: NamespaceMode::Pod.into(),
            ..Default::default()
        };

        pod.linux
            .as_mut()
            .unwrap()
            .security_context
            .as_mut()
            .unwrap()
            .namespace_options = Some(share.clone());

        let sandbox = self
            .node
            .runtime
            .run_pod_sandbox(pod.clone(), "")
            .await
            .unwrap();

        let look = "tr '\\0' ' ' < /proc/1/cmdline";
        let config = with_security(script("one", look), |security| {
            security.namespace_options = Some(share)
        });
        let id = self.node.run(&sandbox, &pod, config).await;
        assert_eq!(self.node.ended(&id).await.exit_code, 0);

        assert_eq!(
            self.node.log("shared", "one")[0].2.trim(),
            "coracle-supervisor pause"
        );

        self.node
            .runtime
            .remove_pod_sandbox(&sandbox)
            .await
            .unwrap();
    }

    async fn all_is_found_again(&mut self) {
        let id = self
            .run(script(
                "lasting",
                "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done",
            ))
            .await;

        self.node.printed("pod", "lasting", "up").await;
        let (instance, sandbox) = (self.node.instance(), self.sandbox.clone());
        let kill = async move {
            let all = crate::common::supervisors(&instance);
            all.iter()
                .filter(|one| one.1.contains(&sandbox))
                .for_each(|one| crate::common::kill(one.0));
        };
        self.node.away_while(kill).await;

        assert_eq!(self.node.exec(&id, "echo here").await.1, "here\n");

        self.node
            .runtime
            .stop_container(&id, Duration::from_secs(600))
            .await
            .unwrap();

        assert_eq!(self.node.status(&id).await.exit_code, 7);
    }
}

/// Reserved huge pages and a hugetlbfs mount; both are released on drop.
struct HugePages {
    before: String,
    place: PathBuf,
}

impl HugePages {
    const NUMBER: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

    fn reserve(more: u32, place: &Path) -> Self {
        let before = fs::read_to_string(Self::NUMBER).unwrap();
        let wanted = before.trim().parse::<u32>().unwrap() + more;
        fs::write(Self::NUMBER, wanted.to_string()).unwrap();
        let pages = Self {
            before,
            place: place.to_owned(),
        };

        let has: u32 = fs::read_to_string(Self::NUMBER)
            .unwrap()
            .trim()
            .parse()
            .unwrap();

        assert!(
            has >= wanted,
            "the host has no memory in such large pieces: {has} of {wanted}"
        );

        fs::create_dir_all(place).unwrap();
        mount(
            "huge",
            place,
            "hugetlbfs",
            MountFlags::empty(),
            c"pagesize=2M",
        )
        .unwrap();

        pages
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        unmount(&self.place, UnmountFlags::DETACH).unwrap_or_default();
        fs::write(Self::NUMBER, self.before.trim()).unwrap_or_default();
    }
}
