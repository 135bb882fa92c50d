//! A containerd for tests, from the package `containerd`, with a busybox image.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use coracle_cri::v1::*;
use coracle_cri::{Client, Runtime as _};

use crate::common::{own_pids, unpack_busybox};

pub(crate) const BUSYBOX: &str = "docker.io/library/coracle-test:latest";

pub(crate) struct Containerd {
    process: Child,
    pub(crate) client: Client,
    /// Where its pods' cgroups are in the hierarchy without controllers, where runc leaves an empty
    /// one.
    left: PathBuf,
}

impl Containerd {
    pub(crate) async fn start(folder: &Path) -> Self {
        let text = format!(
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"{BUSYBOX}\"\nrestrict_oom_score_adj = true\n"
        );
        fs::write(folder.join("containerd.toml"), text).unwrap();

        let left = Path::new("/sys/fs/cgroup/unified").join(group(folder).trim_start_matches('/'));
        let containerd = Self {
            process: spawn(folder),
            client: Client::new(&folder.join("socket")).unwrap(),
            left,
        };
        containerd.answers(folder).await;

        import_busybox(folder, &folder.join("socket"));

        containerd
    }

    /// Kills and restarts it.
    pub(crate) async fn restart(&mut self, folder: &Path) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = spawn(folder);
        self.answers(folder).await;
    }

    async fn answers(&self, folder: &Path) {
        for _ in 0..6000 {
            if self.client.version().await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!(
            "containerd does not answer: {}",
            fs::read_to_string(folder.join("containerd.log")).unwrap()
        );
    }

    pub(crate) fn stop(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        if self.left.exists() {
            fs::remove_dir(&self.left).unwrap();
        }
    }
}

/// The cgroup that its pods are in.
fn group(folder: &Path) -> String {
    let name = folder.file_name().unwrap().to_string_lossy();
    format!("/coracle-containerd-{}", name.trim_start_matches('.'))
}

fn spawn(folder: &Path) -> Child {
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.join("containerd.log"))
        .unwrap();

    Command::new("containerd")
        .arg("--config")
        .arg(folder.join("containerd.toml"))
        .arg("--root")
        .arg(folder.join("root"))
        .arg("--state")
        .arg(folder.join("state"))
        .arg("--address")
        .arg(folder.join("socket"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("the package containerd is installed")
}

/// A pod in the host's network: no plugins are needed for that.
pub(crate) fn pod(folder: &Path) -> PodSandboxConfig {
    let options = NamespaceOption {
        network: NamespaceMode::Node.into(),
        ..own_pids()
    };

    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    PodSandboxConfig {
        metadata: Some(PodSandboxMetadata {
            name: "suite".to_owned(),
            uid: name.clone(),
            namespace: "default".to_owned(),
            attempt: 0,
        }),
        labels: [("app".to_owned(), "suite".to_owned())].into(),
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: group(folder),
            security_context: Some(LinuxSandboxSecurityContext {
                namespace_options: Some(options),
                ..Default::default()
            }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Builds a `docker save` archive, and imports it into containerd.
fn import_busybox(folder: &Path, socket: &Path) {
    let (root, archive) = (folder.join("busybox"), folder.join("image"));
    unpack_busybox(&root);
    fs::create_dir_all(&archive).unwrap();
    run(Command::new("tar")
        .arg("-cf")
        .arg(archive.join("layer.tar"))
        .arg("-C")
        .arg(&root)
        .arg("."));

    let digest = Command::new("sha256sum")
        .arg(archive.join("layer.tar"))
        .output()
        .unwrap();
    let digest = String::from_utf8(digest.stdout).unwrap();
    let digest = digest.split(' ').next().unwrap();

    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","config":{{"Cmd":["/bin/sleep","100000"]}},"rootfs":{{"type":"layers","diff_ids":["sha256:{digest}"]}}}}"#
    );
    fs::write(archive.join("config.json"), config).unwrap();

    let manifest =
        format!(r#"[{{"Config":"config.json","RepoTags":["{BUSYBOX}"],"Layers":["layer.tar"]}}]"#);
    fs::write(archive.join("manifest.json"), manifest).unwrap();

    let tar = folder.join("image.tar");
    run(Command::new("tar")
        .arg("-cf")
        .arg(&tar)
        .arg("-C")
        .arg(&archive)
        .args(["manifest.json", "config.json", "layer.tar"]));

    run(Command::new("ctr")
        .arg("--address")
        .arg(socket)
        .args(["--namespace", "k8s.io", "images", "import"])
        .arg(&tar));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
