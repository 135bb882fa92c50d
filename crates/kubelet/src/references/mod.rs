//! Cache of the ConfigMaps and Secrets that pods of this node reference.
//!
//! Each object is watched by name while a pod references it: nodes may read only these, and a watch
//! avoids polling. `names` extracts the references of a pod; `watched` holds the objects of one
//! kind with their watches. When an object changes, the receiver of [`References::new`] gets the
//! affected pods, so that their volumes are updated.

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

/// Bound of the channel of changes.
const WAITING: usize = 100;

/// The objects that pods of this node reference.
pub struct References {
    config_maps: Watched<ConfigMap>,
    secrets: Watched<Secret>,
}

/// The UIDs of pods whose ConfigMaps or Secrets have changed.
pub type ChangedPods = mpsc::Receiver<Text>;

/// Why an object is not available. The texts are upstream's and appear in events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("{kind} {} not found", Quoted(name))]
    NotFound { kind: &'static str, name: String },
    #[error("failed to sync {kind} cache: timed out waiting for the condition")]
    NotSynced { kind: &'static str },
    #[error("object {}/{} not registered", Quoted(namespace), Quoted(name))]
    NotRegistered { namespace: String, name: String },
}

impl ReferenceError {
    pub fn is_not_found(&self) -> bool {
        matches!(self, ReferenceError::NotFound { .. })
    }
}

impl References {
    /// A cache without watches, and its change notifications.
    pub fn new(client: &Client) -> (Arc<References>, ChangedPods) {
        let (changed, changes) = mpsc::channel(WAITING);
        let references = References {
            config_maps: Watched::new("configmap", client.clone(), changed.clone()),
            secrets: Watched::new("secret", client.clone(), changed),
        };
        (Arc::new(references), changes)
    }

    /// Sets the objects that a pod references.
    pub fn register(&self, pod: &Pod) {
        let key = |name: &String| ObjectKey::new(pod.namespace(), name);
        self.config_maps
            .register(pod.uid(), names::config_maps(pod).iter().map(key).collect());
        self.secrets
            .register(pod.uid(), names::secrets(pod).iter().map(key).collect());
    }

    /// Removes a deleted pod.
    pub fn forget(&self, uid: &str) {
        self.config_maps.register(uid, Vec::new());
        self.secrets.register(uid, Vec::new());
    }

    /// A ConfigMap that a registered pod references.
    pub async fn config_map(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<coracle_client::Cached<Typed<ConfigMap>>>, ReferenceError> {
        self.config_maps.get(&ObjectKey::new(namespace, name)).await
    }

    /// A Secret that a registered pod references.
    pub async fn secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Arc<coracle_client::Cached<Typed<Secret>>>, ReferenceError> {
        self.secrets.get(&ObjectKey::new(namespace, name)).await
    }
}
