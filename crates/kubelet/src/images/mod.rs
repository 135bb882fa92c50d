//! The image manager: finds or pulls the images of containers.
//!
//! [`ImageManager::ensure`] follows the container's pull policy. Pulls from one registry are serial,
//! as upstream's default for all; registries do not wait for each other, since a pod's author
//! chooses the registry and a slow one would delay the pods of all others. A failed pull backs off.
//! Credentials come from the pod's image pull secrets
//! ([`keyring`]).

mod keyring;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use coracle_api::image::ImageName;
use coracle_api::time::Timestamp;
use coracle_client::ObjectReference;
use coracle_cri::v1::{ImageSpec, PodSandboxConfig};
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::sync::OwnedMutexGuard;

use crate::backoff::BackOff;
use crate::host::Host;
use crate::pod::{Kind, PodView};
use crate::references::References;
use crate::spec::security::ImageUser;
use crate::status::Waiting;
pub(crate) use keyring::Keyring;

/// Pulls images for one node.
#[derive(Default)]
pub(crate) struct ImageManager {
    back_off: BackOff,
    /// The last error by back-off key.
    errors: Mutex<BTreeMap<String, String>>,
    pull_locks: PullLocks,
}

/// A lock per registry that is held during a pull. There are no more of them than waiting pods.
#[derive(Default)]
struct PullLocks(Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl PullLocks {
    async fn lock(&self, registry: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let known = locks.entry(registry.to_owned()).or_default();
            known.upgrade().unwrap_or_else(|| {
                let fresh = Arc::default();
                *known = Arc::downgrade(&fresh);
                fresh
            })
        };
        lock.lock_owned().await
    }
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

/// The container that needs the image.
pub(crate) struct ImageRequest<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) kind: Kind,
    pub(crate) container: &'a Container,
    pub(crate) sandbox: &'a PodSandboxConfig,
    pub(crate) keyring: &'a Keyring,
}

impl ImageManager {
    /// Ensures that the image of a container is present.
    pub(crate) async fn ensure(
        &self,
        host: &Host,
        request: &ImageRequest<'_>,
    ) -> Result<PresentImage, PullFailure> {
        let image_name = request.container.image.as_deref().unwrap_or_default();
        let about = request
            .pod
            .container_reference(request.kind, &request.container.name);
        let Some(name) = ImageName::parse(image_name) else {
            let message = format!(
                "Failed to apply default image tag {image_name:?}: couldn't parse image name {image_name:?}: invalid reference format"
            );
            return Err(pull_failure(
                host,
                &about,
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

        let policy = request
            .container
            .image_pull_policy
            .as_deref()
            .unwrap_or("IfNotPresent");

        if policy != "Always"
            && let Some(present) = self.find(host, &about, &image).await?
        {
            host.events
                .normal(&about, "Pulled", already_present(image_name));
            return Ok(present);
        }

        if policy == "Never" {
            let message =
                format!("Container image {image_name:?} is not present with pull policy of Never");
            return Err(pull_failure(
                host,
                &about,
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
        self.pull(host, request, &about, &pull).await
    }

    /// Removes all state of a pod.
    pub(crate) fn forget(&self, uid: &str) {
        let prefix = format!("{uid}_");
        self.back_off.forget(&prefix);
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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

            if let Some(error) = self
                .errors
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&key)
            {
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
        let pull_lock = self.pull_locks.lock(registry).await;

        let begun_at = tokio::time::Instant::now();
        let pulled = self.pull_with_credentials(host, request, image).await;
        drop(pull_lock);
        let found = match pulled {
            Ok(()) => self.find(host, about, image).await?,
            Err(error) => return Err(self.failed(host, request, about, &key, image_name, &error)),
        };

        let Some(present) = found else {
            return Err(self.failed(
                host,
                request,
                about,
                &key,
                image_name,
                "image not found after a successful pull",
            ));
        };

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
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Tries each matching credential; without any, pulls anonymously.
    async fn pull_with_credentials(
        &self,
        host: &Host,
        request: &ImageRequest<'_>,
        image: &str,
    ) -> Result<(), String> {
        let spec = || ImageSpec {
            image: image.to_owned(),
            ..Default::default()
        };

        let mut auths: Vec<_> = request
            .keyring
            .lookup(image)
            .into_iter()
            .map(Some)
            .collect();
        if auths.is_empty() {
            auths.push(None);
        }

        let mut errors = Vec::new();
        for auth in auths {
            match host
                .images
                .pull_image(spec(), auth, Some(request.sandbox.clone()))
                .await
            {
                Ok(_) => return Ok(()),
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
