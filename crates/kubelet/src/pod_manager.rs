//! The pod manager: the pods of this node with their desired, observed and reported state. The
//! kubelet API (logs, exec, `/pods`) reads it. No I/O.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use coracle_api::Text;
use coracle_base::sync::Mutex;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use crate::observed::Observed;
use crate::pod::PodView;

/// All pods of this node. Clones share state.
#[derive(Clone, Default)]
pub struct PodManager {
    pods: Arc<Mutex<BTreeMap<Text, Entry>>>,
}

/// One pod.
#[derive(Clone)]
pub struct Entry {
    /// The desired state, from the API server or a manifest.
    pub pod: Arc<Pod>,
    /// The last observed state in the runtime.
    pub observed: Arc<Observed>,
    /// The last computed status; none: not synced yet.
    pub status: Option<Arc<PodStatus>>,
}

impl PodManager {
    /// Adds or updates a pod.
    pub fn set(&self, pod: Arc<Pod>) {
        let mut pods = self.lock();
        match pods.get_mut(pod.uid()) {
            Some(entry) => entry.pod = pod,
            None => {
                let uid = Text::new(pod.uid());
                pods.insert(
                    uid,
                    Entry {
                        pod,
                        observed: Arc::default(),
                        status: None,
                    },
                );
            }
        }
    }

    /// Sets the observed state of a known pod.
    pub fn set_observed(&self, uid: &str, observed: Arc<Observed>) {
        if let Some(entry) = self.lock().get_mut(uid) {
            entry.observed = observed;
        }
    }

    /// Sets the status of a known pod.
    pub fn set_status(&self, uid: &str, status: Arc<PodStatus>) {
        if let Some(entry) = self.lock().get_mut(uid) {
            entry.status = Some(status);
        }
    }

    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    pub fn contains(&self, uid: &str) -> bool {
        self.lock().contains_key(uid)
    }

    pub fn get(&self, uid: &str) -> Option<Entry> {
        self.lock().get(uid).cloned()
    }

    /// The pod of this name; of two, the one that is not being deleted.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Entry> {
        let pods = self.lock();
        let named = pods.values().filter(|entry| {
            entry.pod.namespace() == namespace && PodView::name(entry.pod.as_ref()) == name
        });
        named
            .min_by_key(|entry| entry.pod.is_being_deleted())
            .cloned()
    }

    pub fn list(&self) -> Vec<Entry> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Text, Entry>> {
        self.pods.lock()
    }
}
