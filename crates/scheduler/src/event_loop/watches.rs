//! The informers of the scheduler: what it watches, and which fields are kept.

use std::sync::Arc;

use coracle_api::typed::TypedError;
use coracle_api::{Map, Value};
use coracle_client::{
    Cached, Change, Informer, Informers, Projection, Resource, Selection, Subscription,
};

use crate::node::Node;
use crate::pod::Pod;
use crate::related::Group;

/// A change reported by an informer.
pub(super) enum WatchEvent {
    Pod(Change<Shared<Pod>>),
    Node(Change<Shared<Node>>),
    Namespace(Change<Trimmed>),
    Service(Change<Trimmed>),
    Group(Group, Change<Trimmed>),
    Budget(Change<Trimmed>),
}

/// An object in the form that the cache and the queue share.
pub(super) struct Shared<T>(pub(super) Arc<T>);

impl Projection for Shared<Pod> {
    fn project(object: &Arc<Value>) -> Result<Shared<Pod>, TypedError> {
        Ok(Shared(Arc::new(Pod::from_object(object))))
    }
}

impl Projection for Shared<Node> {
    fn project(object: &Arc<Value>) -> Result<Shared<Node>, TypedError> {
        Ok(Shared(Arc::new(Node::from_object(object))))
    }
}

/// Labels, selector and allowed disruptions: the fields of related objects that matter.
pub(super) struct Trimmed(pub(super) Value);

impl Projection for Trimmed {
    fn project(object: &Arc<Value>) -> Result<Trimmed, TypedError> {
        let mut kept = Map::new();
        for (section, members) in KEPT_FIELDS {
            let all = object.get(section).and_then(Value::as_object);
            let few = members
                .iter()
                .filter_map(|name| Some((*name, all?.get(name)?.clone())));
            few.for_each(|(name, value)| drop(kept.object_mut(section).insert(name, value)));
        }
        Ok(Trimmed(Value::Object(kept)))
    }
}

const KEPT_FIELDS: [(&str, &[&str]); 3] = [
    ("metadata", &["name", "namespace", "labels"]),
    ("spec", &["selector"]),
    ("status", &["disruptionsAllowed", "disruptedPods"]),
];

/// One subscription, and whether its initial list is complete.
struct Subscribed<T: Projection> {
    changes: Subscription<T>,
    synced: bool,
}

impl<T: Projection> Subscribed<T> {
    fn new(informer: &Informer<T>) -> Subscribed<T> {
        Subscribed {
            changes: informer.subscribe(),
            synced: false,
        }
    }

    async fn next(&mut self) -> Change<T> {
        let change = self.changes.next().await;
        self.synced |= matches!(change, Change::Synced);
        change
    }
}

pub(super) struct Watches {
    pods: Subscribed<Shared<Pod>>,
    nodes: Subscribed<Shared<Node>>,
    namespaces: Subscribed<Trimmed>,
    services: Subscribed<Trimmed>,
    controllers: Subscribed<Trimmed>,
    replica_sets: Subscribed<Trimmed>,
    stateful_sets: Subscribed<Trimmed>,
    budgets: Subscribed<Trimmed>,
}

impl Watches {
    pub(super) fn new(informers: &Informers) -> Watches {
        let all = |group, plural| {
            informers.of::<Trimmed>(Selection::all(&Resource::builtin(group, "v1", plural)))
        };

        // Ended pods use no resources of their nodes.
        let pods = Selection::all(&Resource::builtin("", "v1", "pods"))
            .fields("status.phase!=Succeeded,status.phase!=Failed");
        let nodes = Selection::all(&Resource::builtin("", "v1", "nodes"));
        Watches {
            pods: Subscribed::new(&informers.of(pods)),
            nodes: Subscribed::new(&informers.of(nodes)),
            namespaces: Subscribed::new(&all("", "namespaces")),
            services: Subscribed::new(&all("", "services")),
            controllers: Subscribed::new(&all("", "replicationcontrollers")),
            replica_sets: Subscribed::new(&all("apps", "replicasets")),
            stateful_sets: Subscribed::new(&all("apps", "statefulsets")),
            budgets: Subscribed::new(&all("policy", "poddisruptionbudgets")),
        }
    }

    pub(super) fn are_synced(&self) -> bool {
        let related = [
            &self.namespaces,
            &self.services,
            &self.controllers,
            &self.replica_sets,
            &self.stateful_sets,
            &self.budgets,
        ];
        self.pods.synced && self.nodes.synced && related.iter().all(|followed| followed.synced)
    }

    /// The next change: nodes before pods, because capacity may have shrunk.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> WatchEvent {
        tokio::select! {
            biased;
            change = self.namespaces.next() => WatchEvent::Namespace(change),
            change = self.services.next() => WatchEvent::Service(change),
            change = self.controllers.next() => WatchEvent::Group(Group::ReplicationController, change),
            change = self.replica_sets.next() => WatchEvent::Group(Group::ReplicaSet, change),
            change = self.stateful_sets.next() => WatchEvent::Group(Group::StatefulSet, change),
            change = self.budgets.next() => WatchEvent::Budget(change),
            change = self.nodes.next() => WatchEvent::Node(change),
            change = self.pods.next() => WatchEvent::Pod(change),
        }
    }
}

/// One version of an object, if there is one.
type Version<T> = Option<Arc<Cached<T>>>;

/// The old and the new version of an object.
pub(super) fn before_and_after<T>(change: Change<T>) -> (Version<T>, Version<T>) {
    match change {
        Change::Added { object, .. } => (None, Some(object)),
        Change::Updated { old, new } => (Some(old), Some(new)),
        Change::Deleted { object, .. } => (Some(object), None),
        Change::Synced => (None, None),
    }
}
