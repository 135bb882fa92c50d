//! The ConfigMaps and Secrets that pods of this node refer to, as the server has them.
//!
//! Each object is watched for itself, by its name, from the moment that the first pod refers to it
//! until the last one does not: that is what a node may read, and nobody asks again and again.
//! `names` says what a pod refers to; `watched` is one kind of objects with their watches. When an
//! object changes, whoever has the receiver of [`References::new`] hears which pods it concerns, so
//! that their volumes are brought up to date.

pub(crate) mod names;
mod watched;

use std::sync::Arc;

use coracle_api::Text;
use coracle_api::go_text::Quoted;
use coracle_client::{Client, ObjectKey, Typed};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use tokio::sync::mpsc;

use crate::pod::PodView as _;
use watched::Watched;

/// Changes that wait to be heard of; whoever brings more waits, and the watch with it.
const WAITING: usize = 100;

/// What pods of this node refer to.
pub struct References {
    config_maps: Watched<ConfigMap>,
    secrets: Watched<Secret>,
}

/// The UIDs of pods whose ConfigMaps or Secrets have changed.
pub type ChangedPods = mpsc::Receiver<Text>;

/// Why there is no object, in the words that users find in events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("{kind} {} not found", Quoted(name))]
    NotFound { kind: &'static str, name: String },
    #[error("failed to sync {kind} cache: timed out waiting for the condition")]
    NotHeard { kind: &'static str },
    #[error("object {}/{} not registered", Quoted(namespace), Quoted(name))]
    NotRegistered { namespace: String, name: String },
}

impl ReferenceError {
    pub fn is_not_found(&self) -> bool {
        matches!(self, ReferenceError::NotFound { .. })
    }
}

impl References {
    /// Nothing is watched yet.
    pub fn new(client: &Client) -> (Arc<References>, ChangedPods) {
        let (changed, heard) = mpsc::channel(WAITING);
        let references = References {
            config_maps: Watched::new("configmap", client.clone(), changed.clone()),
            secrets: Watched::new("secret", client.clone(), changed),
        };
        (Arc::new(references), heard)
    }

    /// From now on all that a pod refers to is watched on its account, and nothing besides.
    pub fn register(&self, pod: &Pod) {
        let key = |name: &String| ObjectKey::new(pod.namespace(), name);
        self.config_maps
            .register(pod.uid(), names::config_maps(pod).iter().map(key).collect());
        self.secrets
            .register(pod.uid(), names::secrets(pod).iter().map(key).collect());
    }

    /// The pod is gone.
    pub fn forget(&self, uid: &str) {
        self.config_maps.register(uid, Vec::new());
        self.secrets.register(uid, Vec::new());
    }

    /// A ConfigMap that a registered pod refers to.
    pub async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<coracle_client::Cached<Typed<ConfigMap>>>, ReferenceError> {
        self.config_maps.get(&ObjectKey::new(namespace, name)).await
    }

    /// A Secret that a registered pod refers to.
    pub async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<coracle_client::Cached<Typed<Secret>>>, ReferenceError> {
        self.secrets.get(&ObjectKey::new(namespace, name)).await
    }
}
