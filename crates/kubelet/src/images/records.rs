//! What is remembered of pulled images: with whose credentials each was pulled.
//!
//! The files are upstream's, below `<kubelet>/image_manager`: in `pulling` one per image that is
//! being pulled, written before the pull begins, and in `pulled` one per image in the runtime. An
//! image that has neither was not pulled by the kubelet, it was there before. All records are held
//! in memory too; what cannot be written is remembered until the kubelet ends.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_api::time::{Time, Timestamp};
use coracle_base::sync::Mutex;
use coracle_cri::v1::Image;
use coracle_files::private;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tracing::warn;

/// Of the names of records; the rest is a digest.
const PREFIX: &str = "sha256-";
const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";

/// Beyond so many Secrets, one that only matches another is not added to a record.
const MAX_MATCHED: usize = 100;

/// The records of one node.
pub(super) struct Records {
    pulling: PathBuf,
    pulled: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the name of the image.
    intents: BTreeMap<String, Intent>,
    /// By the image's ID in the runtime.
    pulled: BTreeMap<String, Pulled>,
}

/// Pulls of an image whose outcome is not recorded.
#[derive(Clone, Copy, Default)]
struct Intent {
    pulls: usize,
    /// The outcome of one is unknown, so that the image may be there.
    is_unknown: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IntentFile {
    kind: String,
    api_version: String,
    image: String,
}

/// An image that the kubelet has pulled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pulled {
    kind: String,
    api_version: String,
    last_updated_time: String,
    image_ref: String,
    /// By the name of the image, as pods have it, without tag and digest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    credential_mapping: BTreeMap<String, Access>,
}

/// Who may use an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Access {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kubernetes_secrets: Vec<PullSecret>,
    /// Every pod of this node: it was pulled without credentials of a pod.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    node_pods_accessible: bool,
}

/// A Secret with which an image was pulled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PullSecret {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Of the credentials in it.
    pub(crate) credential_hash: String,
}

impl PullSecret {
    fn is_same_secret(&self, other: &PullSecret) -> bool {
        (&self.namespace, &self.name, &self.uid) == (&other.namespace, &other.name, &other.uid)
    }
}

/// What is known of a present image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// The kubelet has pulled it.
    pub(super) is_pulled: bool,
    /// Who may use it under the name that was asked for.
    pub(super) access: Option<Access>,
}

/// Whether a pod may use an image that is present.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// As well, and its Secret is worth remembering.
    AllowedBy(PullSecret),
    /// It has to be pulled again, with the credentials of the pod.
    Unknown,
}

impl Access {
    /// Whether the Secrets of a pod give access.
    pub(super) fn verdict(&self, secrets: &[PullSecret]) -> Verdict {
        if self.node_pods_accessible {
            return Verdict::Allowed;
        }

        for secret in secrets {
            for known in &self.kubernetes_secrets {
                let same_hash = !known.credential_hash.is_empty()
                    && known.credential_hash == secret.credential_hash;
                let same_secret = known.is_same_secret(secret);
                let has_room = self.kubernetes_secrets.len() < MAX_MATCHED;
                match (same_hash, same_secret) {
                    (true, false) if has_room => return Verdict::AllowedBy(secret.clone()),
                    (true, _) => return Verdict::Allowed,
                    // The credentials were renewed.
                    (false, true) if has_room => return Verdict::AllowedBy(secret.clone()),
                    (false, _) => {}
                }
            }
        }
        Verdict::Unknown
    }

    /// Adds those who may use it from now on. False: nothing has changed.
    fn add(&mut self, secret: Option<PullSecret>) -> bool {
        let before = self.clone();
        match secret {
            _ if self.node_pods_accessible => {}
            None => {
                self.node_pods_accessible = true;
                self.kubernetes_secrets.clear();
            }
            Some(secret) => {
                let known = &mut self.kubernetes_secrets;
                known.retain(|other| !other.is_same_secret(&secret));
                known.push(secret);
                known.sort();
            }
        }
        *self != before
    }
}

impl Records {
    /// Reads the records. Of the images in the runtime (`None`: they are not known), one that was
    /// being pulled when the kubelet ended counts as pulled, with unknown credentials. Those that
    /// are gone are forgotten.
    ///
    /// # Errors
    /// The folders of the records cannot be created.
    pub(super) fn open(
        kubelet: &Path,
        images: Option<&[Image]>,
        now: Timestamp,
    ) -> io::Result<Arc<Records>> {
        let folder = kubelet.join("image_manager");
        let records = Records {
            pulling: folder.join("pulling"),
            pulled: folder.join("pulled"),
            known: Mutex::default(),
        };
        for folder in [&records.pulling, &records.pulled] {
            private::folder_for(folder, 0o700)?;
        }

        {
            let mut known = records.known();
            for intent in read_all::<IntentFile>(&records.pulling) {
                let unknown = Intent {
                    pulls: 0,
                    is_unknown: true,
                };
                known.intents.insert(intent.image, unknown);
            }
            for pulled in read_all::<Pulled>(&records.pulled) {
                known.pulled.insert(pulled.image_ref.clone(), pulled);
            }
        }

        for image in images.unwrap_or_default() {
            for name in image.repo_digests.iter().chain(&image.repo_tags) {
                let mut known = records.known();
                if known.intents.contains_key(name) {
                    records.note(&mut known, &image.id, now, |_| true);
                    records.forget_intent(&mut known, name);
                }
            }
        }
        if let Some(images) = images {
            records.known().pulled.retain(|id, _| {
                let is_kept = images.iter().any(|image| image.id == *id);
                if !is_kept {
                    remove(&records.pulled, id);
                }
                is_kept
            });
        }
        Ok(Arc::new(records))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock()
    }

    /// Records that an image is about to be pulled.
    ///
    /// # Errors
    /// That cannot be written: it must not be pulled, since it would count as one that was there
    /// before.
    pub(super) fn begin(self: &Arc<Self>, image: &str) -> io::Result<PullInProgress> {
        let mut known = self.known();
        write(
            &self.pulling,
            image,
            &IntentFile {
                kind: "ImagePullIntent".to_owned(),
                api_version: API_VERSION.to_owned(),
                image: image.to_owned(),
            },
        )?;
        known.intents.entry(image.to_owned()).or_default().pulls += 1;

        Ok(PullInProgress {
            records: Arc::clone(self),
            image: image.to_owned(),
            outcome: Outcome::Unknown,
        })
    }

    /// What is known of an image that is present: its ID, and its name in the pod.
    pub(super) fn history(&self, id: &str, image: &str) -> History {
        let known = self.known();
        let pulled = known.pulled.get(id);
        History {
            is_pulled: pulled.is_some() || known.intents.contains_key(image),
            access: pulled
                .and_then(|pulled| pulled.credential_mapping.get(repository(image)?).cloned()),
        }
    }

    /// Remembers who may use an image; `None`: every pod.
    pub(super) fn allow(&self, id: &str, image: &str, secret: Option<PullSecret>, now: Timestamp) {
        let Some(repository) = repository(image) else {
            return;
        };
        self.note(&mut self.known(), id, now, |pulled| {
            let access = pulled.credential_mapping.entry(repository.to_owned());
            access.or_default().add(secret)
        });
    }

    /// Changes a record, and writes it if the change says so.
    fn note(
        &self,
        known: &mut Known,
        id: &str,
        now: Timestamp,
        change: impl FnOnce(&mut Pulled) -> bool,
    ) {
        let new = || Pulled {
            kind: "ImagePulledRecord".to_owned(),
            api_version: API_VERSION.to_owned(),
            last_updated_time: String::new(),
            image_ref: id.to_owned(),
            credential_mapping: BTreeMap::new(),
        };
        let pulled = known.pulled.entry(id.to_owned()).or_insert_with(new);
        if !change(pulled) {
            return;
        }

        pulled.last_updated_time = Time(now).text().to_string();
        if let Err(error) = write(&self.pulled, id, pulled) {
            warn!(image = id, %error, "cannot write the record of a pulled image");
        }
    }

    fn forget_intent(&self, known: &mut Known, image: &str) {
        known.intents.remove(image);
        remove(&self.pulling, image);
    }
}

/// A pull that has been recorded. Dropped without an outcome, the record stays: the image may be
/// there.
pub(super) struct PullInProgress {
    records: Arc<Records>,
    image: String,
    outcome: Outcome,
}

enum Outcome {
    Unknown,
    Pulled,
    Failed,
}

impl PullInProgress {
    /// The image was pulled, with the credentials of a Secret, or without.
    pub(super) fn succeeded(mut self, id: &str, secret: Option<PullSecret>, now: Timestamp) {
        self.records.allow(id, &self.image, secret, now);
        self.outcome = Outcome::Pulled;
    }

    pub(super) fn failed(mut self) {
        self.outcome = Outcome::Failed;
    }
}

impl Drop for PullInProgress {
    fn drop(&mut self) {
        let mut known = self.records.known();
        let intent = known.intents.entry(self.image.clone()).or_default();
        intent.pulls = intent.pulls.saturating_sub(1);
        match self.outcome {
            Outcome::Unknown => intent.is_unknown = true,
            Outcome::Pulled => intent.is_unknown = false,
            Outcome::Failed => {}
        }
        if intent.pulls == 0 && !intent.is_unknown {
            self.records.forget_intent(&mut known, &self.image);
        }
    }
}

/// An image's name without tag and digest.
pub(super) fn repository(image: &str) -> Option<&str> {
    let name = coracle_api::image::ImageName::parse(image)?;
    let image = match name.digest {
        Some(digest) => image.strip_suffix(digest)?.strip_suffix('@')?,
        None => image,
    };
    match name.tag {
        Some(tag) => image.strip_suffix(tag)?.strip_suffix(':'),
        None => Some(image),
    }
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn file(folder: &Path, of: &str) -> PathBuf {
    folder.join(format!("{PREFIX}{}", sha256_hex(of.as_bytes())))
}

fn write(folder: &Path, of: &str, content: &impl Serialize) -> io::Result<()> {
    private::folder_for(folder, 0o700)?;
    let mut bytes = serde_json::to_vec(content)?;
    bytes.push(b'\n');
    private::write(&file(folder, of), &bytes)
}

fn remove(folder: &Path, of: &str) {
    match fs::remove_file(file(folder, of)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            warn!(image = of, %error, "cannot delete the record of an image");
        }
        _ => {}
    }
}

/// The records of a folder. What is not one is logged and skipped.
fn read_all<T: DeserializeOwned>(folder: &Path) -> Vec<T> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let records = paths.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PREFIX) && name.len() == PREFIX.len() + 64
    });
    let read = |path: PathBuf| {
        let read = fs::read(&path).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        read.inspect_err(
            |error| warn!(path = %path.display(), %error, "cannot read the record of an image"),
        )
        .ok()
    };
    records.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    const NOW: Timestamp = Timestamp::ZERO;
    const IMAGE: &str = "r.example/team/app:v1";

    fn secret(namespace: &str, name: &str, hash: &str) -> PullSecret {
        PullSecret {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: format!("{namespace}-{name}"),
            credential_hash: hash.to_owned(),
        }
    }

    fn image(id: &str, tag: &str) -> Image {
        Image {
            id: id.to_owned(),
            repo_tags: vec![tag.to_owned()],
            ..Image::default()
        }
    }

    #[test]
    fn an_image_is_for_those_who_could_pull_it() {
        let mut access = Access::default();
        assert!(access.add(Some(secret("a", "s", "h1"))));
        assert!(!access.add(Some(secret("a", "s", "h1"))));

        let check = |secrets: &[PullSecret], expected: Verdict| {
            assert_eq!(access.verdict(secrets), expected, "{secrets:?}");
        };
        check(&[], Verdict::Unknown);
        check(&[secret("a", "s", "h1")], Verdict::Allowed);
        check(&[secret("b", "s", "h2")], Verdict::Unknown);

        // The same credentials in another Secret, and other ones in the same.
        let copied = secret("b", "s", "h1");
        check(slice::from_ref(&copied), Verdict::AllowedBy(copied.clone()));
        let renewed = secret("a", "s", "h2");
        check(
            slice::from_ref(&renewed),
            Verdict::AllowedBy(renewed.clone()),
        );

        // A Secret that was made anew under the same name is another one.
        let mut again = secret("a", "s", "h2");
        again.uid = "new".to_owned();
        check(&[again], Verdict::Unknown);

        assert!(access.add(None));
        assert_eq!(access.verdict(&[]), Verdict::Allowed);
        assert!(!access.add(Some(secret("a", "s", "h1"))));
    }

    #[test]
    fn what_was_pulled_is_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = |images: Option<&[Image]>| Records::open(folder.path(), images, NOW).unwrap();
        let records = open(None);
        assert_eq!(records.history("id", IMAGE), History::default());

        let pull = records.begin(IMAGE).unwrap();
        assert!(records.history("id", IMAGE).is_pulled);
        pull.succeeded("id", Some(secret("a", "s", "h")), NOW);

        let known = records.history("id", IMAGE);
        assert!(known.is_pulled && known.access.is_some());
        assert_eq!(open(None).history("id", IMAGE), known);

        // No credentials were verified under another name of the same image.
        let other = records.history("id", "r.example/other:v1");
        assert!(other.is_pulled && other.access.is_none());

        // It is forgotten when the image is gone.
        let present = [image("id", IMAGE)];
        assert_eq!(open(Some(&present)).history("id", IMAGE), known);
        assert_eq!(open(Some(&[])).history("id", IMAGE), History::default());
        assert_eq!(open(None).history("id", IMAGE), History::default());
    }

    #[test]
    fn an_image_whose_pull_was_interrupted_does_not_count_as_preloaded() {
        let folder = tempfile::tempdir().unwrap();
        let open = |images: &[Image]| Records::open(folder.path(), Some(images), NOW).unwrap();

        drop(open(&[]).begin(IMAGE).unwrap());
        let records = open(&[image("id", IMAGE)]);
        let known = records.history("id", IMAGE);
        assert!(known.is_pulled && known.access.is_none());
        let files = |name: &str| {
            let folder = folder.path().join("image_manager").join(name);
            fs::read_dir(folder).unwrap().count()
        };
        assert_eq!((files("pulling"), files("pulled")), (0, 1));

        // Neither does one that another pull has failed to get since.
        let other = "r.example/b:v1";
        drop(records.begin(other).unwrap());
        records.begin(other).unwrap().failed();
        assert!(records.history("b", other).is_pulled);

        let third = "r.example/c:v1";
        records.begin(third).unwrap().failed();
        assert!(!records.history("c", third).is_pulled);
    }

    #[test]
    fn damaged_records_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let pulled = folder.path().join("image_manager/pulled");
        fs::create_dir_all(&pulled).unwrap();
        fs::write(pulled.join(format!("sha256-{}", "0".repeat(64))), "{").unwrap();
        let records = Records::open(folder.path(), None, NOW).unwrap();
        assert_eq!(records.history("id", IMAGE), History::default());
    }

    #[test]
    fn a_name_is_cut_before_its_tag_and_digest() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let check = |image: &str, expected: &str| assert_eq!(repository(image), Some(expected));
        check("app", "app");
        check("r:5000/app:v1", "r:5000/app");
        check(&format!("r/app:v1@{digest}"), "r/app");
        check(&format!("app@{digest}"), "app");
    }
}
