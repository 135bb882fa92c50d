//! An image with a shell and tools, built of Debian's static busybox and preloaded before the
//! server starts.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tar::{Builder, EntryType, Header};

use crate::inventory::sha256;
use crate::machine::Machine;

/// What pods call it.
pub(crate) const TOOLS: &str = "example.test/tools:1";

impl Machine {
    /// Imports the image, as a person would.
    pub(crate) fn import_tools(&self) {
        let archive = self.folder().join("tools.tar");
        save_tools(&archive);

        let mut command = self.command(
            env!("CARGO_BIN_EXE_coracle"),
            &["image", "import", "--data-dir"],
        );

        let imported = command.arg(self.data_dir()).arg(&archive).output().unwrap();
        assert!(
            imported.status.success(),
            "{}",
            String::from_utf8_lossy(&imported.stderr)
        );
    }
}

/// Writes what `docker save` of it would write.
pub(crate) fn save_tools(archive: &Path) {
    fs::write(archive, docker_archive(&layer())).unwrap();
}

fn layer() -> Vec<u8> {
    let program = ["/bin/busybox", "/usr/bin/busybox"]
        .map(Path::new)
        .into_iter()
        .find(|path| path.exists());
    let program = program.expect("busybox is missing: run scripts/test-prereqs.sh");
    let listed = Command::new(program).arg("--list").output().unwrap();

    let mut archive = Builder::new(Vec::new());
    for folder in ["bin/", "tmp/", "etc/"] {
        let mut header = header(EntryType::Directory, 0o1777, 0);
        archive.append_data(&mut header, folder, &[][..]).unwrap();
    }

    let bytes = fs::read(program).unwrap();
    archive
        .append_data(
            &mut header(EntryType::Regular, 0o755, bytes.len()),
            "bin/busybox",
            &*bytes,
        )
        .unwrap();

    for name in String::from_utf8(listed.stdout)
        .unwrap()
        .lines()
        .filter(|name| *name != "busybox")
    {
        let mut header = header(EntryType::Symlink, 0o777, 0);
        archive
            .append_link(&mut header, format!("bin/{name}"), "busybox")
            .unwrap();
    }

    archive.into_inner().unwrap()
}

/// What `docker save` writes.
fn docker_archive(layer: &[u8]) -> Vec<u8> {
    let config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sh"]},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(layer))]},
    });

    let list = json!([{"Config": "config.json", "RepoTags": [TOOLS], "Layers": ["layer.tar"]}]);
    let mut archive = Builder::new(Vec::new());

    let (config, list) = (config.to_string(), list.to_string());
    for (name, bytes) in [
        ("layer.tar", layer),
        ("config.json", config.as_bytes()),
        ("manifest.json", list.as_bytes()),
    ] {
        archive
            .append_data(
                &mut header(EntryType::Regular, 0o644, bytes.len()),
                name,
                bytes,
            )
            .unwrap();
    }

    archive.into_inner().unwrap()
}

fn header(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_size(size as u64);
    header
}
