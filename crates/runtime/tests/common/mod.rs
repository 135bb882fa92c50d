//! Shared by the container tests: a node in a temporary folder, and a busybox root filesystem.
#![expect(dead_code, reason = "every test uses another part")]

mod leftovers;
#[path = "../../../testkit/src/program.rs"]
pub(crate) mod program;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_cri::Runtime as _;
use coracle_cri::v1::*;
use coracle_runtime::{
    Config, ImageConfig, ImageForContainer, RootFs, RootFsError, RootFsUsage, Runtime,
};
pub(crate) use leftovers::Leftovers;

/// From the package `busybox-static`.
const BUSYBOX: &str = "/bin/busybox";

/// Commands that the tests use inside.
const COMMANDS: [&str; 28] = [
    "sh", "ls", "cat", "echo", "sleep", "id", "hostname", "mount", "ps", "kill", "true", "false",
    "head", "tr", "dd", "stty", "tty", "grep", "mkdir", "touch", "chmod", "nc", "seq", "awk",
    "readlink", "stat", "yes", "env",
];

/// A test node. Fields are dropped in order.
pub(crate) struct Node {
    pub(crate) runtime: Runtime,
    pub(crate) config: Config,
    place: PathBuf,
    /// None: the owner of the folder cleans up.
    leftovers: Option<Leftovers>,
    /// None: the folder is owned by the caller.
    folder: Option<tempfile::TempDir>,
}

impl Node {
    pub(crate) async fn new(test: &str) -> Self {
        Self::with(test, |_| ()).await
    }

    pub(crate) async fn with(test: &str, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config_at(folder.path(), &format!("{test}-{}", std::process::id()));
        change(&mut config);
        let leftovers = Some(Leftovers::of(&config.instance, folder.path()));
        let runtime = open(&config).await;

        Self {
            runtime,
            config,
            place: folder.path().to_owned(),
            leftovers,
            folder: Some(folder),
        }
    }

    /// A node with another implementation of root filesystems, in a folder of the test.
    pub(crate) async fn on<R: RootFs + 'static>(
        test: &str,
        rootfs: impl AsyncFnOnce(&Path) -> R,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = config_at(folder.path(), &format!("{test}-{}", std::process::id()));
        let leftovers = Some(Leftovers::of(&config.instance, folder.path()));
        let rootfs = Arc::new(rootfs(folder.path()).await);
        let runtime = Runtime::open(config.clone(), rootfs, None).await.unwrap();

        Self {
            runtime,
            config,
            place: folder.path().to_owned(),
            leftovers,
            folder: Some(folder),
        }
    }

    /// Opens the node of an existing folder.
    pub(crate) async fn at(folder: &Path) -> Self {
        let config = Config {
            instance: instance_at(folder),
            ..config_at(folder, "")
        };

        let runtime = open(&config).await;
        Self {
            runtime,
            config,
            place: folder.to_owned(),
            leftovers: None,
            folder: None,
        }
    }

    /// Stops the runtime for a while, and kills the supervisor of a pod meanwhile.
    pub(crate) async fn stop_runtime_and_supervisor(&mut self, sandbox: &str, time: Duration) {
        let (instance, sandbox) = (self.config.instance.clone(), sandbox.to_owned());
        let killer = tokio::spawn(async move {
            tokio::time::sleep(time / 6).await;
            supervisors(&instance)
                .iter()
                .filter(|one| one.1.contains(&sandbox))
                .for_each(|one| kill(one.0));
        });
        self.away(time).await;
        killer.await.unwrap();
    }

    /// Stops the runtime for a while, then opens a new one on the same node.
    pub(crate) async fn away(&mut self, time: Duration) {
        self.away_while(tokio::time::sleep(time)).await;
    }

    /// The same, until a future completes.
    pub(crate) async fn away_while(&mut self, happens: impl Future<Output = ()>) {
        // Dropped by being replaced.
        let nowhere = tempfile::tempdir().unwrap();
        let elsewhere = Config {
            root: nowhere.path().join("root"),
            state: nowhere.path().join("state"),
            ..self.config.clone()
        };
        self.runtime = open(&elsewhere).await;
        happens.await;
        self.runtime = open(&self.config).await;
    }

    /// A running pod: its config and ID.
    pub(crate) async fn sandbox(&self, name: &str) -> (PodSandboxConfig, String) {
        let pod = self.pod(name);
        let id = self.runtime.run_pod_sandbox(pod.clone(), "").await.unwrap();
        (pod, id)
    }

    /// Kills the supervisor of a pod.
    pub(crate) fn kill_supervisor(&self, sandbox: &str) {
        for (process, command) in supervisors(&self.config.instance) {
            if command.contains(sandbox) {
                kill(process);
            }
        }
    }

    /// Waits until a container has printed a line.
    pub(crate) async fn printed(&self, pod: &str, container: &str, line: &str) {
        for _ in 0..24_000 {
            if self
                .log(pod, container)
                .iter()
                .any(|(_, _, text)| text == line)
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{container} does not print {line}");
    }

    pub(crate) fn instance(&self) -> String {
        self.config.instance.clone()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.place
    }

    /// A pod of this name; its logs are in a folder of the test.
    pub(crate) fn pod(&self, name: &str) -> PodSandboxConfig {
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: name.to_owned(),
                uid: format!("uid-{name}"),
                namespace: "default".to_owned(),
                attempt: 0,
            }),
            hostname: name.to_owned(),
            log_directory: self
                .path()
                .join("logs")
                .join(name)
                .to_string_lossy()
                .into_owned(),
            labels: HashMap::from([("app".to_owned(), name.to_owned())]),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: format!("/{}", self.config.instance),
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(own_pids()),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    /// Creates and starts a container; returns its ID.
    pub(crate) async fn run(
        &self,
        sandbox: &str,
        pod: &PodSandboxConfig,
        config: ContainerConfig,
    ) -> String {
        let id = self
            .runtime
            .create_container(sandbox, config, pod.clone())
            .await
            .unwrap();
        self.runtime.start_container(&id).await.unwrap();
        id
    }

    pub(crate) async fn status(&self, container: &str) -> ContainerStatus {
        self.runtime
            .container_status(container, false)
            .await
            .unwrap()
            .status
            .unwrap()
    }

    /// Waits until a container has exited.
    pub(crate) async fn ended(&self, container: &str) -> ContainerStatus {
        for _ in 0..24_000 {
            let status = self.status(container).await;
            if status.state() == ContainerState::ContainerExited {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("container {container} does not end");
    }

    pub(crate) async fn exec(&self, container: &str, script: &str) -> (i32, String, String) {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let answer = self
            .runtime
            .exec_sync(container, command, None)
            .await
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (answer.exit_code, text(&answer.stdout), text(&answer.stderr))
    }

    /// The log's lines: stream, tag, text.
    pub(crate) fn log(&self, pod: &str, container: &str) -> Vec<(String, String, String)> {
        lines(
            &self
                .path()
                .join("logs")
                .join(pod)
                .join(format!("{container}.log")),
        )
    }

    /// Removes everything, and checks that nothing is left.
    pub(crate) async fn clear(self) {
        for sandbox in self
            .runtime
            .list_pod_sandbox(PodSandboxFilter::default())
            .await
            .unwrap()
        {
            self.runtime.remove_pod_sandbox(&sandbox.id).await.unwrap();
        }

        self.assert_empty();
        coracle_cgroup::Hierarchies::detect()
            .unwrap()
            .group(&self.config.instance)
            .remove()
            .unwrap();
    }

    /// Nothing is left in mounts, processes, cgroups and files.
    pub(crate) fn assert_empty(&self) {
        let place = self.path().to_string_lossy().into_owned();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let left: Vec<&str> = mounts
            .lines()
            .filter(|line| line.contains(&place))
            .collect();
        assert!(left.is_empty(), "mounts: {left:?}");

        for folder in [
            "root/sandboxes",
            "root/containers",
            "state/sandboxes",
            "rootfs",
        ] {
            let left: Vec<_> = fs::read_dir(self.path().join(folder))
                .into_iter()
                .flatten()
                .flatten()
                .collect();
            assert!(left.is_empty(), "files: {left:?}");
        }

        for folder in coracle_cgroup::Hierarchies::detect()
            .unwrap()
            .group(&self.config.instance)
            .folders()
        {
            let left: Vec<String> = fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter(|entry| {
                    entry.file_type().unwrap().is_dir() && entry.file_name() != "supervisors"
                })
                .map(|entry| entry.path().to_string_lossy().into_owned())
                .collect();
            assert!(left.is_empty(), "cgroups: {left:?}");

            let processes =
                fs::read_to_string(folder.join("supervisors/cgroup.procs")).unwrap_or_default();
            assert_eq!(processes, "", "supervisors in {}", folder.display());
        }
    }
}

/// The name of the node of a folder.
pub(crate) fn instance_at(folder: &Path) -> String {
    format!(
        "coracle-test-{}",
        folder
            .file_name()
            .unwrap()
            .to_string_lossy()
            .trim_start_matches('.')
    )
}

/// The supervisors of a runtime: pids and command lines.
pub(crate) fn supervisors(instance: &str) -> Vec<(i32, String)> {
    let group = coracle_cgroup::Hierarchies::detect()
        .unwrap()
        .group(instance)
        .child("supervisors");
    let command =
        |process: &i32| fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    group
        .processes()
        .iter()
        .map(|process| (*process, command(process)))
        .collect()
}

/// Kills a process that may be gone already.
pub(crate) fn kill(process: i32) {
    let pid = rustix::process::Pid::from_raw(process).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap_or_default();
}

/// A random number below `end`.
pub(crate) fn random(end: u64) -> u64 {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
    u64::from_ne_bytes(bytes) % end
}

fn config_at(folder: &Path, name: &str) -> Config {
    Config {
        instance: format!("coracle-test-{name}"),
        root: folder.join("root"),
        state: folder.join("state"),
        pids_limit: None,
        open_files: None,
    }
}

/// The lines of a log file: stream, tag, text. A partially written line is not included.
pub(crate) fn lines(path: &Path) -> Vec<(String, String, String)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let text = text.rfind('\n').map_or("", |end| &text[..end]);
    let line = |line: &str| {
        let mut parts = line.splitn(4, ' ').skip(1).map(str::to_owned);
        (
            parts.next().unwrap(),
            parts.next().unwrap(),
            parts.next().unwrap(),
        )
    };
    text.lines().map(line).collect()
}

/// Images of this test have links that lead to a folder of the host, and a device.
pub(crate) fn plant_links(test: &Path, host: &Path) {
    fs::write(test.join("links"), host.to_string_lossy().as_bytes()).unwrap();
}

async fn open(config: &Config) -> Runtime {
    let folder = config.root.parent().unwrap().join("rootfs");
    Runtime::open(config.clone(), Arc::new(Folders { folder }), None)
        .await
        .unwrap()
}

pub(crate) fn own_pids() -> NamespaceOption {
    NamespaceOption {
        pid: NamespaceMode::Container.into(),
        ..Default::default()
    }
}

/// A container of busybox that runs a script.
pub(crate) fn script(name: &str, script: &str) -> ContainerConfig {
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
                namespace_options: Some(own_pids()),
                seccomp: Some(SecurityProfile::default()),
                masked_paths: ["/proc/kcore", "/proc/keys", "/sys/firmware"]
                    .map(str::to_owned)
                    .to_vec(),
                readonly_paths: ["/proc/sys", "/proc/sysrq-trigger"]
                    .map(str::to_owned)
                    .to_vec(),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Changes the security context of a container.
pub(crate) fn with_security(
    mut config: ContainerConfig,
    change: impl FnOnce(&mut LinuxContainerSecurityContext),
) -> ContainerConfig {
    let linux = config.linux.get_or_insert_default();
    change(linux.security_context.get_or_insert_default());
    config
}

pub(crate) fn with_resources(
    mut config: ContainerConfig,
    change: impl FnOnce(&mut LinuxContainerResources),
) -> ContainerConfig {
    change(
        config
            .linux
            .get_or_insert_default()
            .resources
            .get_or_insert_default(),
    );
    config
}

/// Root filesystems of busybox: a folder each, mounted over itself as an image's would be.
pub(crate) struct Folders {
    folder: PathBuf,
}

#[async_trait]
impl RootFs for Folders {
    async fn resolve(&self, image: &ImageSpec) -> Result<ImageForContainer, RootFsError> {
        if image.image != "busybox" {
            return Err(RootFsError::NoSuchImage(image.image.clone()));
        }

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
        unpack_busybox(&root);

        if let Ok(host) = fs::read_to_string(self.folder.parent().unwrap().join("links")) {
            symlink(&host, root.join("absolute")).unwrap();
            symlink(
                format!("../../../../../../../..{host}"),
                root.join("relative"),
            )
            .unwrap();

            symlink("/absolute", root.join("chain")).unwrap();
            symlink("/somewhere/else/file", root.join("dangling")).unwrap();
            fs::create_dir(root.join("up")).unwrap();
            let (kind, number) = (
                rustix::fs::FileType::CharacterDevice,
                rustix::fs::makedev(10, 229),
            );

            rustix::fs::mknodat(
                rustix::fs::CWD,
                root.join("device"),
                kind,
                0o666.into(),
                number,
            )
            .unwrap();
        }

        rustix::mount::mount_bind(&root, &root).unwrap();

        Ok(root)
    }

    async fn remove(&self, container: &str) -> Result<(), RootFsError> {
        let root = self.folder.join(container);
        if root.exists() {
            // A killed process may not have mounted it yet.
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

/// Makes a root filesystem of busybox.
pub(crate) fn unpack_busybox(root: &Path) {
    for folder in ["bin", "etc", "tmp", "proc", "sys", "dev"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }

    let busybox = fs::read(BUSYBOX).expect("the package busybox-static is installed");
    program::write(&root.join("bin/busybox"), busybox);

    for command in COMMANDS {
        symlink("busybox", root.join("bin").join(command)).unwrap();
    }

    fs::write(
        root.join("etc/passwd"),
        "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34:web:/srv:/bin/sh\n",
    )
    .unwrap();

    fs::write(
        root.join("etc/group"),
        "root:x:0:\nweb:x:34:\nlogs:x:50:web\n",
    )
    .unwrap();
}
