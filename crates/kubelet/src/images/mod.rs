//! The images of containers: there already, or fetched.
//!
//! [`Puller::ensure`] goes by the container's policy. Pulls from one registry go one after the
//! other, as upstream's do where nothing else is set; registries do not wait for each other, since
//! a pod's author chooses the registry and a slow one would hold up the pods of all others. A pull
//! that failed waits before it is tried again. Credentials come from the pod's secrets
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

/// Fetches images for one node.
#[derive(Default)]
pub(crate) struct Puller {
    back_off: BackOff,
    /// What went wrong last, by the key of the back-off.
    errors: Mutex<BTreeMap<String, String>>,
    turns: Turns,
}

/// Whose turn it is to pull, by registry. There are no more of them than pods that wait.
#[derive(Default)]
struct Turns(Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    async fn of(&self, registry: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let known = turns.entry(registry.to_owned()).or_default();
            known.upgrade().unwrap_or_else(|| {
                let fresh = Arc::default();
                *known = Arc::downgrade(&fresh);
                fresh
            })
        };
        turn.lock_owned().await
    }
}

/// An image that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Present {
    /// What the runtime knows it by.
    pub(crate) reference: String,
    pub(crate) user: ImageUser,
}

/// An image that is not there, and when it may be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Absent {
    pub(crate) waiting: Waiting,
    pub(crate) until: Option<Timestamp>,
}

/// What is to be pulled.
struct Asked<'a> {
    registry: &'a str,
    /// With the tag that it has where none is given.
    image: &'a str,
    /// As the pod has it.
    text: &'a str,
}

/// Which container of which pod wants it.
pub(crate) struct Wanted<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) kind: Kind,
    pub(crate) container: &'a Container,
    pub(crate) sandbox: &'a PodSandboxConfig,
    pub(crate) keyring: &'a Keyring,
}

impl Puller {
    /// Sees to it that the image of a container is there.
    pub(crate) async fn ensure(&self, host: &Host, wanted: &Wanted<'_>) -> Result<Present, Absent> {
        let asked = wanted.container.image.as_deref().unwrap_or_default();
        let about = wanted
            .pod
            .container_reference(wanted.kind, &wanted.container.name);
        let Some(name) = ImageName::parse(asked) else {
            let message = format!(
                "Failed to apply default image tag {asked:?}: couldn't parse image name {asked:?}: invalid reference format"
            );
            return Err(refuse(
                host,
                &about,
                "InspectFailed",
                "InvalidImageName",
                message,
            ));
        };

        let bare = name.tag.is_none() && name.digest.is_none();
        let image = if bare {
            format!("{asked}:latest")
        } else {
            asked.to_owned()
        };

        let policy = wanted
            .container
            .image_pull_policy
            .as_deref()
            .unwrap_or("IfNotPresent");

        if policy != "Always"
            && let Some(present) = self.find(host, &about, &image).await?
        {
            host.events.normal(&about, "Pulled", already_there(asked));
            return Ok(present);
        }

        if policy == "Never" {
            let message =
                format!("Container image {asked:?} is not present with pull policy of Never");
            return Err(refuse(
                host,
                &about,
                "ErrImageNeverPull",
                "ErrImageNeverPull",
                message,
            ));
        }

        self.pull(
            host,
            wanted,
            &about,
            &Asked {
                registry: name.registry,
                image: &image,
                text: asked,
            },
        )
        .await
    }

    /// Forgets what was remembered for a pod.
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
    ) -> Result<Option<Present>, Absent> {
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
                refuse(host, about, "InspectFailed", "ImageInspectError", message)
            })?;

        Ok(found.image.map(|found| Present {
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
        wanted: &Wanted<'_>,
        about: &ObjectReference,
        asked: &Asked<'_>,
    ) -> Result<Present, Absent> {
        let Asked {
            registry,
            image,
            text: asked,
        } = *asked;

        let key = format!("{}_{asked}", wanted.pod.uid());
        if let Some(waiting) = self.back_off.waiting_since_noted(&key, host.now()) {
            let mut message = format!("Back-off pulling image {asked:?}");
            host.events.normal(about, "BackOff", message.as_str());

            if let Some(error) = self
                .errors
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&key)
            {
                message = format!("{message}: {error}");
            }

            let absent = refuse(host, about, "Failed", "ImagePullBackOff", message);
            return Err(Absent {
                until: Some(waiting.until),
                ..absent
            });
        }

        host.events
            .normal(about, "Pulling", format!("Pulling image {asked:?}"));
        host.note(wanted.pod.uid(), "pull", format!("{asked}: pulling"));
        let asked_at = tokio::time::Instant::now();
        let turn = self.turns.of(registry).await;

        let begun_at = tokio::time::Instant::now();
        let pulled = self.pull_with_credentials(host, wanted, image).await;
        drop(turn);
        let found = match pulled {
            Ok(()) => self.find(host, about, image).await?,
            Err(error) => return Err(self.failed(host, wanted, about, &key, asked, &error)),
        };

        let Some(present) = found else {
            return Err(self.failed(
                host,
                wanted,
                about,
                &key,
                asked,
                "the image is not there after it was pulled",
            ));
        };

        let size = self.size(host, image).await;
        let whole = rounded(asked_at.elapsed());

        let alone = rounded(begun_at.elapsed());
        let message = format!(
            "Successfully pulled image {asked:?} in {alone} ({whole} including waiting). Image size: {size} bytes."
        );
        host.events.normal(about, "Pulled", message);

        host.note(
            wanted.pod.uid(),
            "pull",
            format!("{asked}: pulled in {alone}"),
        );

        Ok(present)
    }

    fn failed(
        &self,
        host: &Host,
        wanted: &Wanted<'_>,
        about: &ObjectReference,
        key: &str,
        asked: &str,
        error: &str,
    ) -> Absent {
        let now = host.now();
        host.events.warning(
            about,
            "Failed",
            format!("Failed to pull image {asked:?}: {error}"),
        );

        host.note(wanted.pod.uid(), "pull", format!("{asked}: {error}"));
        self.back_off.note(key, now, now);
        let (reason, message) = in_words(asked, error);
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.insert(key.to_owned(), format!("{reason}: {message}"));
        let absent = refuse(host, about, "Failed", reason, message);

        Absent {
            until: self
                .back_off
                .waiting_since_noted(key, now)
                .map(|waiting| waiting.until),
            ..absent
        }
    }

    /// Each credential that fits is tried; without any, none is sent.
    async fn pull_with_credentials(
        &self,
        host: &Host,
        wanted: &Wanted<'_>,
        image: &str,
    ) -> Result<(), String> {
        let spec = || ImageSpec {
            image: image.to_owned(),
            ..Default::default()
        };

        let mut auths: Vec<_> = wanted.keyring.lookup(image).into_iter().map(Some).collect();
        if auths.is_empty() {
            auths.push(None);
        }

        let mut errors = Vec::new();
        for auth in auths {
            match host
                .images
                .pull_image(spec(), auth, Some(wanted.sandbox.clone()))
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

fn already_there(image: &str) -> String {
    format!("Container image {image:?} already present on machine and can be accessed by the pod")
}

/// Tells people, and says what the container waits with.
fn refuse(
    host: &Host,
    about: &ObjectReference,
    event: &str,
    reason: &'static str,
    message: String,
) -> Absent {
    if event != "Failed" {
        host.events.warning(about, event, message.as_str());
    }
    host.events
        .warning(about, "Failed", format!("Error: {reason}"));
    Absent {
        waiting: Waiting { reason, message },
        until: None,
    }
}

/// Runtimes put some reasons before their texts.
fn in_words(image: &str, error: &str) -> (&'static str, String) {
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

/// As Go prints a span, to the millisecond.
fn rounded(span: std::time::Duration) -> String {
    let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    coracle_api::time::Duration::from_nanos(millis.saturating_mul(1_000_000)).to_string()
}

/// The credentials that a pod names. Secrets that cannot be read are told about, whether anything
/// is pulled or not, and left out.
pub(crate) async fn keyring(host: &Host, references: &References, pod: &Pod) -> Keyring {
    let mut keyring = Keyring::default();
    let mut missing = Vec::new();

    // Old pods may name nothing; that is no secret that is missing.
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
