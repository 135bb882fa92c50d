//! Properties that hold for any layer and any answer of a registry: the targets of `fuzz/` panic on a violation.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::digest::Digest;
use super::documents::{self, Document, INDEXES, MANIFESTS, Platform};
use super::reference::Reference;
use super::registry::{self, Keyring};
use super::unpack::{Limits, unpack};

const BLOCK: usize = 512;

/// A layer is unpacked within its limits, or refused; nothing outside of its folder changes. Needs root, as unpacking does.
pub fn layer(data: &[u8]) {
    let scene = Scene::new();
    let limits = Limits {
        bytes: 1 << 20,
        entries: 100,
    };
    let archive = with_checksums(data);
    let layer = scene.layer();

    if let Ok((digest, unpacked)) = unpack(&archive[..], &layer, &limits) {
        assert!(entries_below(&layer) <= limits.entries, "{unpacked:?}");
        assert!(!is_plain(data) || digest == Digest::of(&archive));
    }
    scene.check();
}

/// Compressed archives are left as they are.
fn is_plain(data: &[u8]) -> bool {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let is_skippable = matches!(data, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
    !data.starts_with(&GZIP) && !data.starts_with(&ZSTD) && !is_skippable
}

/// The archive with valid checksums of its headers, which random changes would not have.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let mut archive = data.to_vec();
    if !is_plain(data) {
        return archive;
    }

    let mut at = 0;
    while let Some(block) = archive.get_mut(at..at + BLOCK) {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes().copy_from_slice(block);
        if block.iter().any(|byte| *byte != 0) {
            header.set_cksum();
        }
        block.copy_from_slice(header.as_bytes());

        let size = header
            .entry_size()
            .ok()
            .and_then(|size| usize::try_from(size).ok());
        let content = size
            .unwrap_or_default()
            .div_ceil(BLOCK)
            .saturating_mul(BLOCK);
        at = at.saturating_add(BLOCK).saturating_add(content);
    }

    archive
}

/// A folder with a layer's folder and a file that must not change.
struct Scene(PathBuf);

const OUTSIDE: &[u8] = b"not of the layer";

impl Scene {
    fn new() -> Scene {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("coracle-fuzz-{}-{number}", std::process::id());
        let scene = Scene(std::env::temp_dir().join(name));

        fs::create_dir_all(scene.layer()).expect("a folder can be made");
        fs::write(scene.outside(), OUTSIDE).expect("a file can be written");
        scene
    }

    fn layer(&self) -> PathBuf {
        self.0.join("layer")
    }

    fn outside(&self) -> PathBuf {
        self.0.join("outside")
    }

    fn check(&self) {
        let names: Vec<_> = listing(&self.0);
        assert_eq!(names, ["layer", "outside"]);
        assert_eq!(
            fs::read(self.outside()).expect("the file is there"),
            OUTSIDE
        );
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

fn entries_below(folder: &Path) -> u64 {
    let (mut count, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is there") {
            let entry = entry.expect("the folder can be listed");
            count += 1;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }

    count
}

fn listing(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("the folder can be listed"))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What a registry sends: documents, challenges, redirects; and what users write: references, credentials.
pub fn registry_answer(data: &[u8]) {
    let platform = Platform::of_this_machine();
    for media_type in ["", INDEXES[0], MANIFESTS[1], "text/plain"] {
        match documents::read(media_type, data) {
            Ok(Document::Index(index)) => drop(index.choose(&platform).map(|chosen| chosen.size)),
            Ok(Document::Manifest(manifest)) => drop(manifest.check_layers()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    for layers in 0..3 {
        if let Ok(config) = documents::Config::read(data, layers, &platform) {
            assert_eq!(config.rootfs.diff_ids.len(), layers);
        }
    }

    let image: Option<Reference> = std::str::from_utf8(data).ok().and_then(text);
    if let Ok(keyring) = Keyring::read(data)
        && let Some(image) = image.or_else(|| "localhost/image".parse().ok())
    {
        drop(keyring.for_image(&image));
    }
}

/// A reference is refused, or read again as it was printed.
fn text(text: &str) -> Option<Reference> {
    registry::read_challenge(text);
    let (from, location) = text
        .split_once('\n')
        .unwrap_or(("https://registry.example/v2/", text));
    if let Some(target) = registry::redirect_target(from, location) {
        assert!(
            target.starts_with("http://") || target.starts_with("https://"),
            "{target}"
        );
        let was_secure = from.starts_with("https://");
        assert!(
            !was_secure || target.starts_with("https://"),
            "{target} from {from}"
        );
    }

    let image: Reference = text.parse().ok()?;
    let printed = image.to_string();
    assert_eq!(printed.parse().as_ref(), Ok(&image), "{printed}");
    Some(image)
}

#[cfg(test)]
mod tests {
    use crate::fuzz_corpus;

    #[test]
    fn any_layer_keeps_every_property() {
        fuzz_corpus::run("layer", super::layer, 500);
    }

    #[test]
    fn any_answer_of_a_registry_keeps_every_property() {
        fuzz_corpus::run("registry_answer", super::registry_answer, 4000);
    }
}
