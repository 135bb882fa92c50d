//! Applies watch events to the cache and the queue.

use std::sync::Arc;

use coracle_client::Change;

use super::Loop;
use super::watches::{Seen, Slim, before_and_after};
use crate::events::Event;
use crate::node::Node;
use crate::pod::Pod;
use crate::surroundings::Surroundings;

impl Loop {
    pub(super) fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Pod(change) => {
                let (old, new) = before_and_after(change);
                self.see_pod(old.map(|old| old.0.clone()), new.map(|new| new.0.clone()));
            }
            Seen::Node(change) => {
                let (old, new) = before_and_after(change);
                self.see_node(old.map(|old| old.0.clone()), new.map(|new| new.0.clone()));
            }
            Seen::Namespace(change) => {
                let changed = self.see_around(change, |around, _, name, object| {
                    around.set_namespace(name, object)
                });
                if changed {
                    // Affinity terms with namespace selectors may match now.
                    self.queue.happened(&Event::Anything, self.now());
                }
            }
            Seen::Service(change) => {
                self.see_around(change, |around, namespace, name, object| {
                    around.set_service(namespace, name, object);
                    false
                });
            }
            Seen::Group(group, change) => {
                self.see_around(change, |around, namespace, name, object| {
                    around.set_group(group, namespace, name, object);
                    false
                });
            }
            Seen::Budget(change) => {
                self.see_around(change, |around, namespace, name, object| {
                    around.set_budget(namespace, name, object);
                    false
                });
            }
        }
    }

    fn see_around(
        &mut self,
        change: Change<Slim>,
        set: impl FnOnce(&mut Surroundings, &str, &str, Option<&coracle_api::Value>) -> bool,
    ) -> bool {
        let (old, new) = before_and_after(change);
        let Some(key) = new
            .as_ref()
            .or(old.as_ref())
            .map(|object| object.key.clone())
        else {
            return false;
        };

        let object = new.as_ref().map(|object| &object.0);
        let mut namespaces_changed = false;
        self.cache.change_surroundings(|around| {
            namespaces_changed = set(around, &key.namespace, &key.name, object);
            namespaces_changed
        });

        namespaces_changed
    }

    fn see_node(&mut self, old: Option<Arc<Node>>, new: Option<Arc<Node>>) {
        let now = self.now();
        match (old, new) {
            // Heartbeats change nothing here.
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                self.cache.set_node(Arc::clone(&new));
                self.queue.happened(&Event::NodeChanged { old, new }, now);
            }
            (None, Some(new)) => {
                self.cache.set_node(Arc::clone(&new));
                self.queue.happened(&Event::NodeAdded(new), now);
            }
            (Some(old), None) => {
                self.cache.remove_node(&old.name);
                self.queue.happened(&Event::NodeRemoved(old), now);
            }
            (None, None) => {}
        }
    }

    fn see_pod(&mut self, old: Option<Arc<Pod>>, new: Option<Arc<Pod>>) {
        match (old, new) {
            (Some(old), Some(new)) if old.uid != new.uid => {
                self.pod_gone(&old);
                self.pod_there(None, new);
            }
            (old, Some(new)) if new.terminal => self.pod_gone(&old.unwrap_or(new)),
            (old, Some(new)) => self.pod_there(old, new),
            (Some(old), None) => self.pod_gone(&old),
            (None, None) => {}
        }
    }

    fn pod_there(&mut self, old: Option<Arc<Pod>>, new: Arc<Pod>) {
        let now = self.now();
        if new.is_assigned() {
            self.queue.remove(&new.uid);
            self.cache.set_pod(Arc::clone(&new));
            let event = match old.filter(|old| old.is_assigned()) {
                Some(old) => Event::PodChanged { old, new },
                None => Event::PodAdded(new),
            };
            self.queue.happened(&event, now);
            return;
        }

        if !self.queue.is_responsible_for(&new) {
            return;
        }

        if self.cache.is_assumed(&new.uid) {
            // It is being bound: its resources are free as soon as it is being deleted.
            if new.deleting {
                self.forget(&new.uid);
            }
            return;
        }

        let promise_ended = old.filter(|old| {
            !old.nominated_node.is_empty() && old.nominated_node != new.nominated_node
        });
        self.queue.set(new, now);

        if let Some(old) = promise_ended {
            let priority = old.priority;
            self.queue
                .happened_for(&Event::PodRemoved(old), now, |pod| pod.priority <= priority);
        }
    }

    fn pod_gone(&mut self, pod: &Arc<Pod>) {
        let now = self.now();
        self.queue.remove(&pod.uid);
        if let Some(known) = self.cache.remove_pod(&pod.uid) {
            self.queue.happened(&Event::PodRemoved(known), now);
        } else if pod.is_placed() {
            let priority = pod.priority;
            self.queue
                .happened_for(&Event::PodRemoved(Arc::clone(pod)), now, |other| {
                    other.priority <= priority
                });
        }
    }

    /// Removes an assumed pod, and wakes pods that could use its resources.
    pub(super) fn forget(&mut self, uid: &str) {
        if let Some(pod) = self.cache.forget(uid) {
            self.queue.happened(&Event::PodRemoved(pod), self.now());
        }
    }
}
