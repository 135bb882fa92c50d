//! The image that needs no registry: `coracle.local/echo`, made from the program that travels in this binary.
//!
//! The archive is the same on every machine with the same binary, and so are its digests.

use serde_json::json;

use super::assemble::{Description, Fetching, panicked};
use super::digest::Digest;
use super::documents::MANIFESTS;
use super::reference::Reference;
use super::store::{Image, Staged};
use super::unpack::unpack;
use super::{ImageError, ImageStore};

/// The registry that is nowhere: what it has is in this binary.
pub(super) const REGISTRY: &str = "coracle.local";
const NAME: &str = "coracle.local/echo:latest";

impl ImageStore {
    /// Puts the built-in image into the store, pinned. What is there already is left as it is.
    pub async fn add_built_in(&self) -> Result<Image, ImageError> {
        let name: Reference = NAME.parse().expect("it is a name");
        let layer = layer(coracle_echo::PROGRAM);
        let diff_id = Digest::of(&layer);
        let config = config(diff_id, &self.config.platform.architecture);
        let described = |media_type: &str, bytes: &[u8]| json!({"mediaType": media_type, "digest": Digest::of(bytes), "size": bytes.len()});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFESTS[0],
            "config": described("application/vnd.oci.image.config.v1+json", &config),
            "layers": [described("application/vnd.oci.image.layer.v1.tar", &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let names = vec![name.clone(), name.at(Digest::of(&manifest))];
        let size = layer.len() as u64;
        let description = Description {
            config,
            diff_ids: vec![diff_id],
            manifests: vec![manifest],
            names,
            size,
            pinned: true,
        };
        let limits = self.config.limits.clone();
        let fetch = |_: usize, staged: Staged| -> Fetching {
            let (layer, limits) = (layer.clone(), limits.clone());
            Box::pin(async move {
                let unpacking = tokio::task::spawn_blocking(move || {
                    let (found, unpacked) = unpack(layer.as_slice(), &staged.content(), &limits)
                        .map_err(|source| ImageError::Unpack { layer: NAME.to_owned(), source })?;
                    Ok((staged, found, unpacked))
                });
                unpacking.await.map_err(panicked)?
            })
        };
        self.assemble(description, fetch).await
    }
}

/// The program, and the few files that the C library and the runtime look for.
fn layer(program: &[u8]) -> Vec<u8> {
    const PASSWD: &[u8] = b"root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n";
    let files: [(&str, u32, &[u8]); 4] = [
        ("echo", 0o755, program),
        ("etc/group", 0o644, b"root:x:0:\nnobody:x:65534:\n"),
        ("etc/nsswitch.conf", 0o644, b"hosts: files dns\n"),
        ("etc/passwd", 0o644, PASSWD),
    ];
    let mut archive = tar::Builder::new(Vec::new());
    let header = |kind: tar::EntryType, mode: u32, size: usize| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size as u64);
        header
    };
    let mut add = |name: &str, mut header: tar::Header, content: &[u8]| {
        archive.append_data(&mut header, name, content).expect("writing to memory works");
    };
    add("etc/", header(tar::EntryType::Directory, 0o755, 0), &[]);
    add("tmp/", header(tar::EntryType::Directory, 0o1777, 0), &[]);
    for (name, mode, content) in files {
        add(name, header(tar::EntryType::Regular, mode, content.len()), content);
    }
    archive.into_inner().expect("writing to memory works")
}

fn config(diff_id: Digest, architecture: &str) -> Vec<u8> {
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Entrypoint": ["/echo"],
            "Cmd": ["serve"],
            "Env": ["PATH=/"],
            "User": "65534:65534",
            "ExposedPorts": {"8080/tcp": {}},
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    });
    config.to_string().into_bytes()
}
