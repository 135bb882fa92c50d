//! Builders of test images: archives, layouts and blobs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use coracle_runtime::images::Digest;
use serde_json::{Value, json};

/// A layer with these files, folders (names that end with a slash) and links (`name -> target`).
pub(crate) fn layer(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_mtime(0);
        header.set_size(0);

        match (name.split_once(" -> "), name.ends_with('/')) {
            (Some((name, target)), _) => {
                header.set_entry_type(tar::EntryType::Symlink);
                archive.append_link(&mut header, name, target).unwrap();
            }
            (None, true) => {
                header.set_entry_type(tar::EntryType::Directory);
                archive.append_data(&mut header, name, &[][..]).unwrap();
            }
            (None, false) => {
                header.set_size(content.len() as u64);
                archive
                    .append_data(&mut header, name, content.as_bytes())
                    .unwrap();
            }
        }
    }

    archive.into_inner().unwrap()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn config(layers: &[Vec<u8>], run: &Value) -> Vec<u8> {
    let diff_ids: Vec<String> = layers
        .iter()
        .map(|layer| Digest::of(layer).to_string())
        .collect();
    let rootfs = json!({"type": "layers", "diff_ids": diff_ids});
    json!({"architecture": "amd64", "os": "linux", "config": run, "rootfs": rootfs})
        .to_string()
        .into_bytes()
}

/// What `docker save` writes.
pub(crate) fn docker_archive(tags: &[&str], layers: &[Vec<u8>], run: &Value) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        archive.append_data(&mut header, name, bytes).unwrap();
    };

    let names: Vec<String> = (0..layers.len())
        .map(|number| format!("{number}/layer.tar"))
        .collect();
    for (name, layer) in names.iter().zip(layers) {
        add(name, layer);
    }

    add("config.json", &config(layers, run));
    let list = json!([{"Config": "config.json", "RepoTags": tags, "Layers": names}]);
    add("manifest.json", list.to_string().as_bytes());

    archive.into_inner().unwrap()
}

/// Blobs by digest, as a registry or a layout has them.
#[derive(Clone, Default)]
pub(crate) struct Blobs(pub(crate) BTreeMap<Digest, Vec<u8>>);

impl Blobs {
    /// Adds a blob, and returns its descriptor.
    pub(crate) fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = Digest::of(&bytes);
        let described = json!({"mediaType": media_type, "digest": digest, "size": bytes.len()});
        self.0.insert(digest, bytes);
        described
    }

    /// Adds an image with these layers, encoded by `stored`, and returns the descriptor of its
    /// manifest.
    pub(crate) fn add_image(
        &mut self,
        layers: &[Vec<u8>],
        stored: impl Fn(&[u8]) -> Vec<u8>,
        run: &Value,
    ) -> Value {
        let config = self.add(
            "application/vnd.oci.image.config.v1+json",
            config(layers, run),
        );

        let layers: Vec<Value> = layers
            .iter()
            .map(|layer| self.add("application/vnd.oci.image.layer.v1.tar+gzip", stored(layer)))
            .collect();

        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers,
        });

        self.add(MANIFEST, manifest.to_string().into_bytes())
    }

    /// Writes a layout with these manifests.
    pub(crate) fn write_layout(&self, folder: &Path, manifests: &[Value]) -> PathBuf {
        let layout = folder.join("layout");
        fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
        fs::write(
            layout.join("oci-layout"),
            r#"{"imageLayoutVersion":"1.0.0"}"#,
        )
        .unwrap();

        let index = json!({"schemaVersion": 2, "manifests": manifests});
        fs::write(layout.join("index.json"), index.to_string()).unwrap();

        for (digest, bytes) in &self.0 {
            fs::write(layout.join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        }

        layout
    }
}

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
