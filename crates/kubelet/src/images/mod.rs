//! The image manager: finds or pulls the images of containers.
//!
//! [`ImageManager::ensure`] follows the container's pull policy. An image that is present is used if
//! the pod could have pulled it: [`records`] remember with whose credentials it was pulled, and
//! [`verification`] decides. Else it is pulled when its turn comes ([`puller`]), with the credentials
//! of the pod's image pull secrets ([`keyring`]). A failed pull backs off.

mod keyring;
mod puller;
mod records;
mod verification;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use coracle_api::image::ImageName;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;
use coracle_client::ObjectReference;
use coracle_cri::v1::{Image, ImageSpec, PodSandboxConfig};
use k8s_openapi::api::core::v1::Pod;

use crate::backoff::BackOff;
use crate::host::Host;
use crate::pod::PodView;
use crate::references::References;
use crate::spec::security::ImageUser;
use crate::status::Waiting;
pub(crate) use keyring::Keyring;
use puller::Puller;
pub use puller::Pulls;
use records::{PullSecret, Records, Verdict};
pub use verification::{ListedImages, Verification};

/// Settings of image pulls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageSettings {
    pub pulls: Pulls,
    pub verification: Verification,
}

/// Pulls images for one node.
pub(crate) struct ImageManager {
    back_off: BackOff,
    /// The last error by back-off key.
    errors: Mutex<BTreeMap<String, String>>,
    puller: Puller,
    records: Arc<Records>,
    verification: Verification,
}

/// An image on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PresentImage {
    /// Its ID in the runtime.
    pub(crate) reference: String,
    pub(crate) user: ImageUser,
}

/// An image that is missing, and when the pull may be retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PullFailure {
    pub(crate) waiting: Waiting,
    pub(crate) until: Option<Timestamp>,
}

/// The image to pull.
struct PullRequest<'a> {
    registry: &'a str,
    /// With its default tag where none is given.
    image: &'a str,
    /// As the pod names it.
    image_name: &'a str,
}

/// What needs an image: a container, or a volume of a pod.
pub(crate) struct ImageRequest<'a> {
    pub(crate) pod: &'a Pod,
    /// What events are about.
    pub(crate) about: ObjectReference,
    /// As the pod names it.
    pub(crate) image: &'a str,
    pub(crate) policy: Option<&'a str>,
    pub(crate) sandbox: &'a PodSandboxConfig,
    pub(crate) keyring: &'a Keyring,
}

impl ImageManager {
    /// Opens the records below the folder of the kubelet. `images` are those in the runtime; `None`:
    /// they are not known.
    ///
    /// # Errors
    /// The folders of the records cannot be created.
    pub(crate) fn open(
        settings: &ImageSettings,
        kubelet: &Path,
        images: Option<&[Image]>,
        now: Timestamp,
    ) -> io::Result<ImageManager> {
        Ok(ImageManager {
            back_off: BackOff::default(),
            errors: Mutex::default(),
            puller: Puller::new(settings.pulls),
            records: Records::open(kubelet, images, now)?,
            verification: settings.verification.clone(),
        })
    }

    /// Ensures that an image is present.
    pub(crate) async fn ensure(
        &self,
        host: &Host,
        request: &ImageRequest<'_>,
    ) -> Result<PresentImage, PullFailure> {
        let (image_name, about) = (request.image, &request.about);
        let Some(name) = ImageName::parse(image_name) else {
            let message = format!(
                "Failed to apply default image tag {image_name:?}: couldn't parse image name {image_name:?}: invalid reference format"
            );
            return Err(pull_failure(
                host,
                about,
                "InspectFailed",
                "InvalidImageName",
                message,
            ));
        };

        let untagged = name.tag.is_none() && name.digest.is_none();
        let image = if untagged {
            format!("{image_name}:latest")
        } else {
            image_name.to_owned()
        };

        let policy = request.policy.unwrap_or("IfNotPresent");

        if policy != "Always"
            && let Some(present) = self.find(host, about, &image).await?
            && self.may_use(host, request, image_name, &image, &present)
        {
            host.events
                .normal(about, "Pulled", already_present(image_name));
            return Ok(present);
        }

        if policy == "Never" {
            let message =
                format!("Container image {image_name:?} is not present with pull policy of Never");
            return Err(pull_failure(
                host,
                about,
                "ErrImageNeverPull",
                "ErrImageNeverPull",
                message,
            ));
        }

        let pull = PullRequest {
            registry: name.registry,
            image: &image,
            image_name,
        };
        self.pull(host, request, about, &pull).await
    }

    /// Whether a pod may use an image that is present.
    fn may_use(
        &self,
        host: &Host,
        request: &ImageRequest<'_>,
        image_name: &str,
        image: &str,
        present: &PresentImage,
    ) -> bool {
        let history = self.records.history(&present.reference, image_name);
        let secrets = || {
            let found = request.keyring.lookup(image).into_iter();
            found.map(|credential| credential.secret).collect()
        };
        match self.verification.verdict(image_name, &history, secrets) {
            Verdict::Allowed => true,
            Verdict::AllowedBy(secret) => {
                let (id, now) = (&present.reference, host.now());
                self.records.allow(id, image_name, Some(secret), now);
                true
            }
            Verdict::Unknown => false,
        }
    }

    /// Removes all state of a pod.
    pub(crate) fn forget(&self, uid: &str) {
        let prefix = format!("{uid}_");
        self.back_off.forget(&prefix);
        self.errors
            .lock()
            .retain(|key, _| !key.starts_with(&prefix));
    }

    async fn find(
        &self,
        host: &Host,
        about: &ObjectReference,
        image: &str,
    ) -> Result<Option<PresentImage>, PullFailure> {
        let spec = ImageSpec {
            image: image.to_owned(),
            ..Default::default()
        };

        let found = host
            .images
            .image_status(spec, false)
            .await
            .map_err(|error| {
                let message = format!("Failed to inspect image {image:?}: {error}");
                pull_failure(host, about, "InspectFailed", "ImageInspectError", message)
            })?;

        Ok(found.image.map(|found| PresentImage {
            user: match found.uid {
                Some(uid) => ImageUser::Id(uid.value),
                None if !found.username.is_empty() => ImageUser::Name(found.username),
                None => ImageUser::Id(0),
            },
            reference: found.id,
        }))
    }

    async fn pull(
        &self,
        host: &Host,
        request: &ImageRequest<'_>,
        about: &ObjectReference,
        pull: &PullRequest<'_>,
    ) -> Result<PresentImage, PullFailure> {
        let PullRequest {
            registry,
            image,
            image_name,
        } = *pull;

        let key = format!("{}_{image_name}", request.pod.uid());
        if let Some(waiting) = self.back_off.waiting_since_noted(&key, host.now()) {
            let mut message = format!("Back-off pulling image {image_name:?}");
            host.events.normal(about, "BackOff", message.as_str());

            if let Some(error) = self.errors.lock().get(&key) {
                message = format!("{message}: {error}");
            }

            let absent = pull_failure(host, about, "Failed", "ImagePullBackOff", message);
            return Err(PullFailure {
                until: Some(waiting.until),
                ..absent
            });
        }

        host.events
            .normal(about, "Pulling", format!("Pulling image {image_name:?}"));
        host.note(request.pod.uid(), "pull", format!("{image_name}: pulling"));
        let asked_at = tokio::time::Instant::now();
        let turn = self.puller.turn(registry).await;
        let failed = |error: &str| self.failed(host, request, about, &key, image_name, error);
        let in_progress = self
            .records
            .begin(image_name)
            .map_err(|error| failed(&format!("failed to record image pull intent: {error}")))?;

        let begun_at = tokio::time::Instant::now();
        let pulled = self.pull_with_credentials(host, request, image).await;
        drop(turn);
        let used = match pulled {
            Ok(used) => used,
            Err(error) => {
                in_progress.failed();
                return Err(failed(&error));
            }
        };

        let Some(present) = self.find(host, about, image).await? else {
            in_progress.failed();
            return Err(failed("image not found after a successful pull"));
        };
        in_progress.succeeded(&present.reference, used, host.now());

        let size = self.size(host, image).await;
        let whole = rounded(asked_at.elapsed());

        let alone = rounded(begun_at.elapsed());
        let message = format!(
            "Successfully pulled image {image_name:?} in {alone} ({whole} including waiting). Image size: {size} bytes."
        );
        host.events.normal(about, "Pulled", message);

        host.note(
            request.pod.uid(),
            "pull",
            format!("{image_name}: pulled in {alone}"),
        );

        Ok(present)
    }

    fn failed(
        &self,
        host: &Host,
        request: &ImageRequest<'_>,
        about: &ObjectReference,
        key: &str,
        image_name: &str,
        error: &str,
    ) -> PullFailure {
        let now = host.now();
        host.events.warning(
            about,
            "Failed",
            format!("Failed to pull image {image_name:?}: {error}"),
        );

        host.note(request.pod.uid(), "pull", format!("{image_name}: {error}"));
        self.back_off.note(key, now, now);
        let (reason, message) = pull_error(image_name, error);
        let mut errors = self.errors.lock();
        errors.insert(key.to_owned(), format!("{reason}: {message}"));
        let absent = pull_failure(host, about, "Failed", reason, message);

        PullFailure {
            until: self
                .back_off
                .waiting_since_noted(key, now)
                .map(|waiting| waiting.until),
            ..absent
        }
    }

    /// Tries each matching credential; without any, pulls anonymously. Returns the Secret whose
    /// credential was used.
    async fn pull_with_credentials(
        &self,
        host: &Host,
        request: &ImageRequest<'_>,
        image: &str,
    ) -> Result<Option<PullSecret>, String> {
        let spec = || ImageSpec {
            image: image.to_owned(),
            ..Default::default()
        };

        let found = request.keyring.lookup(image).into_iter();
        let mut credentials: Vec<_> = found.map(Some).collect();
        if credentials.is_empty() {
            credentials.push(None);
        }

        let mut errors = Vec::new();
        for credential in credentials {
            let (auth, secret) = credential
                .map(|credential| (credential.auth, credential.secret))
                .unzip();
            let pulling = host
                .images
                .pull_image(spec(), auth, Some(request.sandbox.clone()));
            match pulling.await {
                Ok(_) => return Ok(secret),
                Err(error) => errors.push(error.to_string()),
            }
        }

        errors.dedup();

        Err(match errors.len() {
            1 => errors.swap_remove(0),
            _ => format!("[{}]", errors.join(", ")),
        })
    }

    async fn size(&self, host: &Host, image: &str) -> u64 {
        let spec = ImageSpec {
            image: image.to_owned(),
            ..Default::default()
        };
        let found = host.images.image_status(spec, false).await.ok();
        found
            .and_then(|found| found.image)
            .map_or(0, |image| image.size)
    }
}

fn already_present(image: &str) -> String {
    format!("Container image {image:?} already present on machine and can be accessed by the pod")
}

/// Records events and returns the waiting state of the container.
fn pull_failure(
    host: &Host,
    about: &ObjectReference,
    event: &str,
    reason: &'static str,
    message: String,
) -> PullFailure {
    if event != "Failed" {
        host.events.warning(about, event, message.as_str());
    }
    host.events
        .warning(about, "Failed", format!("Error: {reason}"));
    PullFailure {
        waiting: Waiting { reason, message },
        until: None,
    }
}

/// Runtimes prefix some errors with a reason.
fn pull_error(image: &str, error: &str) -> (&'static str, String) {
    let known = [
        ("RegistryUnavailable", "registry is unavailable"),
        ("SignatureValidationFailed", "signature validation failed"),
    ];

    for (reason, words) in known {
        if let Some(rest) = error.strip_prefix(reason) {
            return (
                reason,
                format!("image pull failed for {image} because the {words}{rest}"),
            );
        }
    }

    ("ErrImagePull", error.to_owned())
}

/// A duration in Go's format, rounded to milliseconds.
fn rounded(span: std::time::Duration) -> String {
    let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    coracle_api::time::Duration::from_nanos(millis.saturating_mul(1_000_000)).to_string()
}

/// The credentials that a pod references. Secrets that cannot be read are skipped and reported by
/// an event, whether or not anything is pulled.
pub(crate) async fn keyring(host: &Host, references: &References, pod: &Pod) -> Keyring {
    let mut keyring = Keyring::default();
    let mut missing = Vec::new();

    // Old pods may have empty references; these are not missing secrets.
    let named = pod
        .pod_spec()
        .image_pull_secrets
        .iter()
        .flatten()
        .filter(|secret| !secret.name.is_empty());

    for reference in named {
        match references.secret(pod.namespace(), &reference.name).await {
            Ok(secret) => keyring.add(&secret.object),
            Err(_) => missing.push(reference.name.as_str()),
        }
    }

    if !missing.is_empty() {
        let message = format!(
            "Unable to retrieve some image pull secrets ({}); attempting to pull the image may not succeed.",
            missing.join(", ")
        );
        host.events
            .warning(&pod.reference(), "FailedToRetrieveImagePullSecret", message);
    }

    keyring
}
