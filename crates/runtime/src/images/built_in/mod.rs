//! Built-in images, which need no registry: `coracle.local/echo`, whose program is embedded in this
//! binary, and images built from a program of this host with the libraries it needs.
//!
//! An image is the same on every machine with the same files, and so are its digests.

mod layer;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::assemble::{Description, Fetching, panicked};
use super::digest::Digest;
use super::documents::MANIFESTS;
use super::reference::Reference;
use super::store::{Image, Staged};
use super::unpack::unpack;
use super::{ImageError, ImageStore};
use layer::{Content, Entry, Layer};

/// The pseudo registry of built-in images.
pub(super) const REGISTRY: &str = "coracle.local";
const ECHO: &str = "coracle.local/echo:latest";

impl ImageStore {
    /// Adds the built-in image to the store, pinned. Idempotent.
    pub async fn add_built_in(&self) -> Result<Image, ImageError> {
        let config = json!({
            "Entrypoint": ["/echo"],
            "Cmd": ["serve"],
            "Env": ["PATH=/"],
            "User": "65534:65534",
            "ExposedPorts": {"8080/tcp": {}},
            "WorkingDir": "/",
        });
        self.add(ECHO, echo(), config).await
    }

    /// Adds a pinned image `coracle.local/NAME` that runs this program of the host with these
    /// libraries.
    pub async fn add_program(
        &self,
        name: &str,
        program: &Path,
        libraries: &BTreeSet<PathBuf>,
    ) -> Result<Image, ImageError> {
        let folders: BTreeSet<String> = libraries
            .iter()
            .filter_map(|path| folder_of(path))
            .collect();

        let search = folders
            .into_iter()
            .map(|folder| format!("/{folder}"))
            .collect::<Vec<_>>()
            .join(":");

        let mut env = vec!["PATH=/".to_owned()];
        if !search.is_empty() {
            env.push(format!("LD_LIBRARY_PATH={search}"));
        }

        let config = json!({"Entrypoint": [format!("/{name}")], "Env": env, "WorkingDir": "/"});
        self.add(
            &format!("{REGISTRY}/{name}:latest"),
            of_program(name, program, libraries),
            config,
        )
        .await
    }

    async fn add(&self, name: &str, layer: Layer, config: Value) -> Result<Image, ImageError> {
        let unread = |source| ImageError::BuiltIn {
            name: name.to_owned(),
            source,
        };

        let measured = layer.clone();
        let measuring = tokio::task::spawn_blocking(move || measured.measure());
        let (diff_id, size) = measuring.await.map_err(panicked)?.map_err(unread)?;
        let reference: Reference = name.parse().expect("it is a name");
        let config = document(&config, diff_id, &self.config.platform.architecture);

        let described = |media_type: &str, digest, size| json!({"mediaType": media_type, "digest": digest, "size": size});
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFESTS[0],
            "config": described(
                "application/vnd.oci.image.config.v1+json", Digest::of(&config), config.len() as u64
            ),
            "layers": [described("application/vnd.oci.image.layer.v1.tar", diff_id, size)],
        });
        let manifest = manifest.to_string().into_bytes();

        let names = vec![reference.clone(), reference.at(Digest::of(&manifest))];
        let description = Description {
            config,
            diff_ids: vec![diff_id],
            manifests: vec![manifest],
            names,
            size,
            pinned: true,
            origin: String::new(),
        };

        let fetch = |_: usize, staged: Staged| -> Fetching {
            let (layer, limits, name) =
                (layer.clone(), self.config.limits.clone(), name.to_owned());
            Box::pin(async move {
                let unpacking =
                    tokio::task::spawn_blocking(move || {
                        let archive = layer.open().map_err(|source| ImageError::BuiltIn {
                            name: name.clone(),
                            source,
                        })?;

                        let (found, unpacked) = unpack(archive, &staged.content(), &limits)
                            .map_err(|source| ImageError::Unpack {
                                layer: name.clone(),
                                source,
                            })?;

                        let shared = layer.share(&staged.content());
                        shared.map_err(|source| ImageError::BuiltIn { name, source })?;

                        Ok((staged, found, unpacked))
                    });

                unpacking.await.map_err(panicked)?
            })
        };

        self.assemble(description, fetch).await
    }
}

/// The few files that the C library and the runtime read.
fn base() -> Vec<Entry> {
    const PASSWD: &[u8] =
        b"root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n";

    let entry = |path: &str, mode, content| Entry {
        path: path.to_owned(),
        mode,
        content,
    };

    vec![
        entry("etc/", 0o755, Content::Folder),
        entry("tmp/", 0o1777, Content::Folder),
        entry(
            "etc/group",
            0o644,
            Content::Bytes(b"root:x:0:\nnobody:x:65534:\n"),
        ),
        entry(
            "etc/nsswitch.conf",
            0o644,
            Content::Bytes(b"hosts: files dns\n"),
        ),
        entry("etc/passwd", 0o644, Content::Bytes(PASSWD)),
    ]
}

fn echo() -> Layer {
    let mut entries = base();
    let content = Content::Bytes(coracle_echo::PROGRAM);
    entries.push(Entry {
        path: "echo".to_owned(),
        mode: 0o755,
        content,
    });
    Layer(entries)
}

/// The program under its name, each library at the host's path, and the dynamic loader also at its
/// standard path.
fn of_program(name: &str, program: &Path, libraries: &BTreeSet<PathBuf>) -> Layer {
    let mut entries = base();
    let mut folders = BTreeSet::new();

    let mut files = vec![(name.to_owned(), program.to_owned())];
    for library in libraries {
        let file = library.file_name().unwrap_or_default().to_string_lossy();
        if file.starts_with("ld-") || file.starts_with("ld64") {
            files.extend(
                ["lib", "lib64"].map(|folder| (format!("{folder}/{file}"), library.clone())),
            );
        }

        files.push((
            library.to_string_lossy().trim_start_matches('/').to_owned(),
            library.clone(),
        ));
    }

    for (path, _) in &files {
        folders.extend(
            path.match_indices('/')
                .map(|(at, _)| path[..=at].to_owned()),
        );
    }

    let folder = |path| Entry {
        path,
        mode: 0o755,
        content: Content::Folder,
    };
    entries.extend(folders.into_iter().map(folder));

    entries.extend(files.into_iter().map(|(path, file)| Entry {
        path,
        mode: 0o755,
        content: Content::Copy(file),
    }));

    Layer(entries)
}

fn folder_of(path: &Path) -> Option<String> {
    Some(path.parent()?.to_str()?.trim_start_matches('/').to_owned())
}

/// The image configuration document.
fn document(config: &Value, layer: Digest, architecture: &str) -> Vec<u8> {
    let document = json!({
        "architecture": architecture,
        "os": "linux",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [layer]},
    });
    document.to_string().into_bytes()
}
