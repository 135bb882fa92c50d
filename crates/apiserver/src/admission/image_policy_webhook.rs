//! ImagePolicyWebhook: a program outside decides which images pods may have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_client::World;
use coracle_kinds::Part;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tracing::info;

use super::configuration::ImagePolicy;
use super::{Attributes, Plugin, Setup};
use crate::ApiError;
use crate::webhook::{CallError, Client};

const REVIEW: &str = "imagepolicy.k8s.io/v1alpha1";
const ANNOTATIONS: &str = ".image-policy.k8s.io/";
const AUDIT: &str = "imagepolicywebhook.image-policy.k8s.io/";

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 1 << 20;
const ATTEMPTS: u32 = 5;
const MAX_VERDICTS: usize = 1024;

pub(super) struct ImagePolicyWebhook {
    policy: ImagePolicy,
    world: World,
    /// Connected when it is first needed.
    client: OnceCell<Client>,
    /// By what was asked, with when they end.
    verdicts: Mutex<HashMap<Vec<u8>, (Map, Instant)>>,
}

impl ImagePolicyWebhook {
    /// A server without a configuration of the plugin does not start with it.
    pub(super) fn make(setup: &Setup<'_>) -> Arc<dyn Plugin> {
        Arc::new(ImagePolicyWebhook {
            policy: setup
                .configurations
                .image_policy
                .clone()
                .unwrap_or_default(),
            world: setup.world,
            client: OnceCell::new(),
            verdicts: Mutex::default(),
        })
    }
}

#[async_trait]
impl Plugin for ImagePolicyWebhook {
    async fn validate(
        &self,
        pod: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let lists: &[&str] = match attributes.cx.part {
            Part::Main => &["containers", "initContainers"],
            Part::EphemeralContainers => &["ephemeralContainers"],
            _ => return Ok(()),
        };
        let Some(pod) = pod.filter(|_| attributes.is_of("", "pods")) else {
            return Ok(());
        };

        let asked = spec(pod, lists, attributes.cx.namespace);
        let verdict = match self.verdict(&asked).await {
            Ok(verdict) => verdict,
            Err(error) if self.policy.default_allow => {
                info!(error = %error.message, "image policy backend failed; images are allowed");
                attributes
                    .notes
                    .audit
                    .add(&format!("{AUDIT}failed-open"), "true");
                return Ok(());
            }
            Err(error) => {
                let refused = attributes.forbidden(pod, &error.message);
                return Err(attributes.forbidden(pod, &refused.message));
            }
        };

        let annotations = verdict.below("auditAnnotations");
        for (key, value) in annotations.into_iter().flat_map(Map::iter) {
            let value = value.as_str().unwrap_or_default();
            attributes.notes.audit.add(&format!("{AUDIT}{key}"), value);
        }

        match (is_allowed(&verdict), verdict.text("reason")) {
            (true, _) => Ok(()),
            (false, "") => {
                let why = "one or more images rejected by webhook backend";
                Err(attributes.forbidden(pod, why))
            }
            (false, reason) => {
                let why =
                    format!("image policy webhook backend denied one or more images: {reason}");
                Err(attributes.forbidden(pod, &why))
            }
        }
    }
}

impl ImagePolicyWebhook {
    async fn verdict(&self, asked: &Value) -> Result<Map, CallError> {
        let key = json::to_vec(asked);
        let now = Instant::now();
        if let Some((verdict, end)) = self.known().get(&key)
            && now < *end
        {
            return Ok(verdict.clone());
        }

        let answer = self.ask(asked).await?;
        let verdict = answer.get("status").and_then(Value::as_object);
        let verdict = verdict.cloned().unwrap_or_default();
        let lasts = match is_allowed(&verdict) {
            true => self.policy.allow_for,
            false => self.policy.deny_for,
        };

        let mut known = self.known();
        known.retain(|_, (_, end)| now < *end);
        if known.len() >= MAX_VERDICTS {
            let oldest = known.iter().min_by_key(|(_, (_, end))| *end);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| known.remove(&key));
        }
        known.insert(key, (verdict.clone(), now + lasts));

        Ok(verdict)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<u8>, (Map, Instant)>> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the backend; again after a while, if it fails.
    async fn ask(&self, asked: &Value) -> Result<Value, CallError> {
        let connect = || Client::of_kubeconfig(&self.policy.kubeconfig, self.world);
        let client = self.client.get_or_try_init(connect).await?;

        let mut review = Map::new();
        review.insert("apiVersion", REVIEW);
        review.insert("kind", "ImageReview");
        review.insert("spec", asked.clone());
        let body = Bytes::from(json::to_vec(&Value::Object(review)));

        let mut wait = self.policy.retry_after;
        let mut attempt = 1;
        loop {
            match client.post(body.clone(), TIMEOUT, MAX_ANSWER).await {
                Err(error) if error.code >= 500 && attempt < ATTEMPTS => {
                    tokio::time::sleep(wait).await;
                    wait = wait.mul_f64(1.5);
                    attempt += 1;
                }
                result => return result,
            }
        }
    }
}

fn is_allowed(verdict: &Map) -> bool {
    verdict.get("allowed") == Some(&Value::Bool(true))
}

/// What the backend is asked: the images, the annotations that are for it, and the namespace.
fn spec(pod: &Value, lists: &[&str], namespace: &str) -> Value {
    let mut containers = Vec::new();
    for name in lists {
        let list = pod.at(&["spec", name]).and_then(Value::as_array);
        for container in list.into_iter().flatten() {
            let mut asked = Map::new();
            if let Some(image) = container.get("image") {
                asked.insert("image", image.clone());
            }
            containers.push(Value::Object(asked));
        }
    }

    let annotations = pod.meta().annotations();
    let annotations = annotations.into_iter().flat_map(Map::iter);
    let annotations: Map = annotations
        .filter(|(key, _)| key.contains(ANNOTATIONS))
        .map(|(key, value)| (key.into(), value.clone()))
        .collect();

    let mut asked = Map::new();
    asked.insert("containers", containers);
    if !annotations.is_empty() {
        asked.insert("annotations", annotations);
    }
    asked.insert("namespace", namespace);
    Value::Object(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backend_sees_images_and_its_annotations() {
        let pod = r#"{"metadata":{"annotations":{"a.image-policy.k8s.io/b":"c","other":"d"}},
            "spec":{"containers":[{"image":"x"},{}],"initContainers":[{"image":"y"}]}}"#;
        let pod = json::parse(pod.as_bytes()).unwrap();
        let found = spec(&pod, &["containers", "initContainers"], "ns");
        assert_eq!(
            json::to_string(&found),
            r#"{"annotations":{"a.image-policy.k8s.io/b":"c"},"containers":[{"image":"x"},{},{"image":"y"}],"namespace":"ns"}"#
        );
    }
}
