//! Debian's registry on loopback, and the images in it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::bundle::run;
use crate::common;

/// The size of a large image, unpacked, and the number of its layers.
pub(crate) const LARGE: usize = 160 << 20;
pub(crate) const LAYERS: usize = 4;

/// How large the files of a large image are.
const FILE: usize = 256 << 10;

pub(crate) struct Registry {
    process: Child,
    folder: PathBuf,
    pub(crate) host: String,
}

impl Registry {
    pub(crate) fn start(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();

        // The network namespace is private.
        let host = "127.0.0.1:5000".to_owned();
        let config = json!({
            "version": 0.1, "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": folder.join("data")}},
            "http": {"addr": host, "secret": "x"},
        });

        let file = folder.join("config.yml");
        fs::write(&file, config.to_string()).unwrap();
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry is installed");

        for _ in 0..500 {
            if std::net::TcpStream::connect(&host).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }

        Self {
            process,
            folder: folder.to_owned(),
            host,
        }
    }

    pub(crate) fn busybox(&self) -> String {
        format!("{}/bench/busybox:1", self.host)
    }

    pub(crate) fn push_busybox(&self) {
        let root = self.folder.join("busybox");
        common::unpack_busybox(&root);
        self.push("bench/busybox:1", &[root]);
    }

    /// Half of each file is incompressible.
    pub(crate) fn push_large(&self, name: &str, turn: usize) {
        let mut roots = Vec::new();
        for layer in 0..LAYERS {
            let root = self.folder.join(format!("large-{turn}-{layer}"));
            let place = root.join(format!("opt/layer-{layer}"));
            fs::create_dir_all(&place).unwrap();

            for number in 0..LARGE / LAYERS / FILE {
                let mut content = vec![0; FILE / 2];
                std::io::Read::read_exact(&mut File::open("/dev/urandom").unwrap(), &mut content)
                    .unwrap();
                content.extend(
                    b"the quick brown fox jumps over the lazy dog\n"
                        .iter()
                        .cycle()
                        .take(FILE / 2),
                );

                fs::write(place.join(format!("file-{number}")), content).unwrap();
            }

            roots.push(root);
        }

        self.push(name, &roots);
        roots
            .iter()
            .for_each(|root| fs::remove_dir_all(root).unwrap());
    }

    /// Pushes an image with a layer of each folder.
    fn push(&self, name: &str, roots: &[PathBuf]) {
        let made = self.folder.join("image");
        fs::create_dir_all(&made).unwrap();

        let (mut layers, mut digests) = (Vec::new(), Vec::new());
        for (number, root) in roots.iter().enumerate() {
            let layer = made.join(format!("{number}.tar"));
            run(
                "tar",
                &[
                    "-cf",
                    layer.to_str().unwrap(),
                    "-C",
                    root.to_str().unwrap(),
                    ".",
                ],
            );

            let digest = ring::digest::digest(&ring::digest::SHA256, &fs::read(&layer).unwrap());
            let digest: String = digest
                .as_ref()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();

            layers.push(format!("{number}.tar"));
            digests.push(format!("sha256:{digest}"));
        }

        let config = json!({
            "architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/sleep", "100000"], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": digests},
        });
        fs::write(made.join("config.json"), config.to_string()).unwrap();

        let manifest = json!([{"Config": "config.json", "RepoTags": [name], "Layers": layers}]);
        fs::write(made.join("manifest.json"), manifest.to_string()).unwrap();

        let archive = self.folder.join("image.tar");
        run(
            "tar",
            &[
                "-cf",
                archive.to_str().unwrap(),
                "-C",
                made.to_str().unwrap(),
                ".",
            ],
        );

        let from = format!("docker-archive:{}", archive.display());
        let to = format!("docker://{}/{name}", self.host);
        run(
            "skopeo",
            &[
                "copy",
                "--quiet",
                "--insecure-policy",
                "--dest-tls-verify=false",
                &from,
                &to,
            ],
        );

        fs::remove_dir_all(&made).unwrap();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
