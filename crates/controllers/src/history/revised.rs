//! The common base of the DaemonSet and StatefulSet controllers: sets of pods with revisions.

use std::sync::Arc;

use coracle_client::{
    Access, Cached, Informer, ObjectKey, Projection, Recorder, Resource, WorkQueue,
};

use super::act::REVISIONS;
use super::{Revision, Revisions};
use crate::framework::{Context, Feeds};
use crate::own_writes::OwnWrites;
use crate::pods::{self, PodControl, PodOwner, Unobserved};
use crate::views::{BY_CONTROLLER, Pod, orphans_of};

/// What differs between the two controllers.
pub struct Names {
    /// The resource of the sets: `daemonsets`. Own writes of them are noted under this.
    pub plural: &'static str,
    /// The service account.
    pub account: &'static str,
    /// The component in events.
    pub component: &'static str,
    /// The label of revisions with the hash.
    pub hash: &'static str,
}

/// Sets with their pods and revisions.
pub struct Revised<S: PodOwner> {
    /// The informer of the sets.
    pub sets: Informer<S>,
    /// Writes them.
    pub access: Access,
    /// Writes their pods.
    pub control: PodControl,
    /// Writes their revisions.
    pub history: Revisions,
    /// Expected creations and deletions.
    pub unobserved: Arc<Unobserved>,
    /// Own writes.
    pub written: Arc<OwnWrites>,
    /// Records events.
    pub recorder: Recorder,
    pods: Informer<Pod>,
    revisions: Informer<Revision>,
    plural: &'static str,
}

impl<S: PodOwner> Revised<S> {
    /// Creates the base. A set is woken when it changes, and when a pod or a revision of it does.
    pub fn follow(
        context: &Context,
        names: &Names,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> Revised<S> {
        let sets_of = Resource::builtin("apps", "v1", names.plural);
        let pods_of = Resource::builtin("", "v1", "pods");
        let revisions_of = Resource::builtin("apps", "v1", REVISIONS);
        let sets: Informer<S> = context.informers.of(&sets_of);
        let pods: Informer<Pod> = context.informers.of(&pods_of);
        let revisions: Informer<Revision> = context.informers.of(&revisions_of);
        pods.ensure_index(BY_CONTROLLER, Pod::by_controller);
        revisions.ensure_index(BY_CONTROLLER, Revision::by_controller);

        let (unobserved, written) = (
            Arc::new(Unobserved::default()),
            Arc::new(OwnWrites::default()),
        );
        pods::follow_owners(feeds, &sets, &unobserved, queue);
        let woken = queue.clone();
        pods::follow_pods(feeds, &sets, &pods, &unobserved, move |key| {
            woken.add(key.clone())
        });

        follow_revisions(feeds, &sets, &revisions, queue);
        let client = context.client(names.account);
        let access = client.resource(&sets_of);
        let pod_access = client.resource(&pods_of);

        let recorder = context.recorder.clone().component(names.component);
        let control = PodControl::new(
            access.clone(),
            pod_access,
            unobserved.clone(),
            written.clone(),
            recorder.clone(),
        );

        let history = Revisions::new(
            access.clone(),
            client.resource(&revisions_of),
            written.clone(),
            names.hash,
        );

        let plural = names.plural;
        Revised {
            sets,
            access,
            control,
            history,
            unobserved,
            written,
            recorder,
            pods,
            revisions,
            plural,
        }
    }

    /// Whether own writes for a set have not been observed yet.
    pub fn is_behind(&self, key: &ObjectKey) -> bool {
        let held = [
            (self.plural, self.sets.version()),
            ("pods", self.pods.version()),
            (REVISIONS, self.revisions.version()),
        ];
        self.written.is_behind(key, &held)
    }

    /// The pods of a set, and those that it may adopt.
    pub fn pods_of(&self, set: &Cached<S>) -> Vec<Arc<Cached<Pod>>> {
        found(&self.pods, set)
    }

    /// The revisions of a set, and those that it may adopt.
    pub fn revisions_of(&self, set: &Cached<S>) -> Vec<Arc<Cached<Revision>>> {
        found(&self.revisions, set)
    }
}

fn found<T: Projection, S>(all: &Informer<T>, set: &Cached<S>) -> Vec<Arc<Cached<T>>> {
    let own = [set.uid.to_string(), orphans_of(&set.key.namespace)];
    let of = |value: &String| {
        all.by_index(BY_CONTROLLER, value)
            .expect("the index is created with the informer")
    };
    own.iter().flat_map(of).collect()
}

fn follow_revisions<S: PodOwner>(
    feeds: &mut Feeds,
    sets: &Informer<S>,
    revisions: &Informer<Revision>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (all, woken) = (sets.clone(), queue.clone());
    feeds.follow(revisions, move |change| {
        let Some(revision) = change.object() else {
            return;
        };
        let owner = revision
            .controller
            .as_ref()
            .filter(|owner| owner.kind == S::KIND);
        let Some(owner) = owner else { return };

        let key = ObjectKey::new(&revision.key.namespace, &owner.name);
        if all.get(&key).is_some_and(|set| set.uid == owner.uid) {
            woken.add(key);
        }
    });
}
