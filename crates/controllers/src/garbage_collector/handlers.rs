//! Feeds changes into the graph, and their effects into the queue.

use std::sync::{Arc, MutexGuard};

use coracle_base::sync::Mutex;
use coracle_client::{Change, ObjectReference, Recorder, Resource, WorkQueue};

use super::Work;
use super::graph::{Effects, Graph};
use super::identity::Identity;
use crate::views::Owned;

/// The graph, its queue and its event recorder. Clones share them.
#[derive(Clone)]
pub(super) struct GraphFeed {
    graph: Arc<Mutex<Graph>>,
    queue: WorkQueue<Work>,
    recorder: Recorder,
}

impl GraphFeed {
    pub(super) fn new(queue: WorkQueue<Work>, recorder: Recorder) -> GraphFeed {
        GraphFeed {
            graph: Arc::default(),
            queue,
            recorder,
        }
    }

    pub(super) fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock()
    }

    /// Handles a change reported by an informer.
    pub(super) fn handle(&self, of: &Arc<Resource>, change: &Change<Owned>) {
        let effects = match change {
            Change::Added { object, .. } | Change::Updated { new: object, .. } => {
                self.graph().observed(of, object)
            }
            Change::Deleted { object, .. } => self.graph().deleted(object),
            Change::Synced => return,
        };
        self.pass_on(effects);
    }

    /// Handles that the server has no such object.
    pub(super) fn absent(&self, identity: &Identity) {
        let effects = self.graph().absent(identity);
        self.pass_on(effects);
    }

    fn pass_on(&self, effects: Effects) {
        for id in effects.look_at {
            self.queue.add(Work::Look(id));
        }

        if let Some(id) = effects.requeue_after {
            self.queue.add_rate_limited(Work::Look(id));
        }
        if let Some(id) = effects.orphan {
            self.queue.add(Work::Orphan(id));
        }

        for (dependent, owner) in &effects.misplaced {
            let about = ObjectReference {
                api_version: dependent.api_version.clone(),
                kind: dependent.kind.clone(),
                namespace: dependent.namespace.clone(),
                name: dependent.name.clone(),
                uid: dependent.uid.clone(),
                ..ObjectReference::default()
            };

            let message = format!(
                "ownerRef {owner} does not exist in namespace {:?}",
                dependent.namespace.as_str()
            );

            self.recorder
                .warning(&about, "OwnerRefInvalidNamespace", message);
        }
    }
}
