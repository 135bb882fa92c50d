//! Applies watch events to the cache and the queue.

use std::sync::Arc;

use coracle_client::Change;

use super::EventLoop;
use super::watches::{Trimmed, WatchEvent, before_and_after};
use crate::events::Event;
use crate::node::Node;
use crate::pod::Pod;
use crate::related::RelatedObjects;

impl EventLoop {
    pub(super) fn handle_change(&mut self, change: WatchEvent) {
        match change {
            WatchEvent::Pod(change) => {
                let (old, new) = before_and_after(change);
                self.handle_pod(old.map(|old| old.0.clone()), new.map(|new| new.0.clone()));
            }
            WatchEvent::Node(change) => {
                let (old, new) = before_and_after(change);
                self.handle_node(old.map(|old| old.0.clone()), new.map(|new| new.0.clone()));
            }
            WatchEvent::Namespace(change) => {
                let changed = self.handle_related(change, |related, _, name, object| {
                    related.set_namespace(name, object)
                });
                if changed {
                    // Affinity terms with namespace selectors may match now.
                    self.queue
                        .handle_event(&Event::NamespaceChanged, self.now());
                }
            }
            WatchEvent::Service(change) => {
                self.handle_related(change, |related, namespace, name, object| {
                    related.set_service(namespace, name, object);
                    false
                });
            }
            WatchEvent::Group(group, change) => {
                self.handle_related(change, |related, namespace, name, object| {
                    related.set_group(group, namespace, name, object);
                    false
                });
            }
            WatchEvent::Budget(change) => {
                self.handle_related(change, |related, namespace, name, object| {
                    related.set_budget(namespace, name, object);
                    false
                });
            }
        }
    }

    fn handle_related(
        &mut self,
        change: Change<Trimmed>,
        set: impl FnOnce(&mut RelatedObjects, &str, &str, Option<&coracle_api::Value>) -> bool,
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
        self.cache.change_related(|related| {
            namespaces_changed = set(related, &key.namespace, &key.name, object);
            namespaces_changed
        });

        namespaces_changed
    }

    fn handle_node(&mut self, old: Option<Arc<Node>>, new: Option<Arc<Node>>) {
        let now = self.now();
        match (old, new) {
            // Heartbeats change nothing here.
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                self.cache.set_node(Arc::clone(&new));
                self.queue
                    .handle_event(&Event::NodeChanged { old, new }, now);
            }
            (None, Some(new)) => {
                self.cache.set_node(Arc::clone(&new));
                self.queue.handle_event(&Event::NodeAdded(new), now);
            }
            (Some(old), None) => {
                self.cache.remove_node(&old.name);
                self.queue.handle_event(&Event::NodeRemoved(old), now);
            }
            (None, None) => {}
        }
    }

    fn handle_pod(&mut self, old: Option<Arc<Pod>>, new: Option<Arc<Pod>>) {
        match (old, new) {
            (Some(old), Some(new)) if old.uid != new.uid => {
                self.pod_removed(&old);
                self.pod_assigned(None, new);
            }
            (old, Some(new)) if new.terminal => self.pod_removed(&old.unwrap_or(new)),
            (old, Some(new)) => self.pod_assigned(old, new),
            (Some(old), None) => self.pod_removed(&old),
            (None, None) => {}
        }
    }

    fn pod_assigned(&mut self, old: Option<Arc<Pod>>, new: Arc<Pod>) {
        let now = self.now();
        if new.is_assigned() {
            self.queue.remove(&new.uid);
            self.cache.set_pod(Arc::clone(&new));
            let event = match old.filter(|old| old.is_assigned()) {
                Some(old) => Event::PodChanged { old, new },
                None => Event::PodAdded(new),
            };
            self.queue.handle_event(&event, now);
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
                .handle_event_for(&Event::PodRemoved(old), now, |pod| pod.priority <= priority);
        }
    }

    fn pod_removed(&mut self, pod: &Arc<Pod>) {
        let now = self.now();
        self.queue.remove(&pod.uid);
        if let Some(known) = self.cache.remove_pod(&pod.uid) {
            self.queue.handle_event(&Event::PodRemoved(known), now);
        } else if pod.is_placed() {
            let priority = pod.priority;
            self.queue
                .handle_event_for(&Event::PodRemoved(Arc::clone(pod)), now, |other| {
                    other.priority <= priority
                });
        }
    }

    /// Removes an assumed pod, and wakes pods that could use its resources.
    pub(super) fn forget(&mut self, uid: &str) {
        if let Some(pod) = self.cache.forget(uid) {
            self.queue.handle_event(&Event::PodRemoved(pod), self.now());
        }
    }
}
