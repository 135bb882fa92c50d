//! The informers of the scheduler: what it watches, and which fields are kept.

use std::sync::Arc;

use coracle_api::typed::TypedError;
use coracle_api::{Map, Value};
use coracle_client::{
    Cached, Change, Informer, Informers, Projection, Resource, Selection, Subscription,
};

use crate::node::Node;
use crate::pod::Pod;
use crate::surroundings::Group;

/// A change reported by an informer.
pub(super) enum Seen {
    Pod(Change<Held<Pod>>),
    Node(Change<Held<Node>>),
    Namespace(Change<Slim>),
    Service(Change<Slim>),
    Group(Group, Change<Slim>),
    Budget(Change<Slim>),
}

/// An object in the form that the cache and the queue share.
pub(super) struct Held<T>(pub(super) Arc<T>);

impl Projection for Held<Pod> {
    fn project(object: &Arc<Value>) -> Result<Held<Pod>, TypedError> {
        Ok(Held(Arc::new(Pod::from_object(object))))
    }
}

impl Projection for Held<Node> {
    fn project(object: &Arc<Value>) -> Result<Held<Node>, TypedError> {
        Ok(Held(Arc::new(Node::from_object(object))))
    }
}

/// Labels, selector and allowed disruptions: the fields of related objects that matter.
pub(super) struct Slim(pub(super) Value);

impl Projection for Slim {
    fn project(object: &Arc<Value>) -> Result<Slim, TypedError> {
        let mut kept = Map::new();
        for (part, members) in KEPT {
            let all = object.get(part).and_then(Value::as_object);
            let few = members
                .iter()
                .filter_map(|name| Some((*name, all?.get(name)?.clone())));
            few.for_each(|(name, value)| drop(kept.object_mut(part).insert(name, value)));
        }
        Ok(Slim(Value::Object(kept)))
    }
}

const KEPT: [(&str, &[&str]); 3] = [
    ("metadata", &["name", "namespace", "labels"]),
    ("spec", &["selector"]),
    ("status", &["disruptionsAllowed", "disruptedPods"]),
];

/// One subscription, and whether its initial list is complete.
struct Followed<T: Projection> {
    changes: Subscription<T>,
    synced: bool,
}

impl<T: Projection> Followed<T> {
    fn new(informer: &Informer<T>) -> Followed<T> {
        Followed {
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
    pods: Followed<Held<Pod>>,
    nodes: Followed<Held<Node>>,
    namespaces: Followed<Slim>,
    services: Followed<Slim>,
    controllers: Followed<Slim>,
    replica_sets: Followed<Slim>,
    stateful_sets: Followed<Slim>,
    budgets: Followed<Slim>,
}

impl Watches {
    pub(super) fn new(informers: &Informers) -> Watches {
        let all = |group, plural| {
            informers.of::<Slim>(Selection::all(&Resource::builtin(group, "v1", plural)))
        };

        // Ended pods use no resources of their nodes.
        let pods = Selection::all(&Resource::builtin("", "v1", "pods"))
            .fields("status.phase!=Succeeded,status.phase!=Failed");
        let nodes = Selection::all(&Resource::builtin("", "v1", "nodes"));
        Watches {
            pods: Followed::new(&informers.of(pods)),
            nodes: Followed::new(&informers.of(nodes)),
            namespaces: Followed::new(&all("", "namespaces")),
            services: Followed::new(&all("", "services")),
            controllers: Followed::new(&all("", "replicationcontrollers")),
            replica_sets: Followed::new(&all("apps", "replicasets")),
            stateful_sets: Followed::new(&all("apps", "statefulsets")),
            budgets: Followed::new(&all("policy", "poddisruptionbudgets")),
        }
    }

    pub(super) fn are_synced(&self) -> bool {
        let around = [
            &self.namespaces,
            &self.services,
            &self.controllers,
            &self.replica_sets,
            &self.stateful_sets,
            &self.budgets,
        ];
        self.pods.synced && self.nodes.synced && around.iter().all(|followed| followed.synced)
    }

    /// The next change: nodes before pods, because capacity may have shrunk.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(super) async fn next(&mut self) -> Seen {
        tokio::select! {
            biased;
            change = self.namespaces.next() => Seen::Namespace(change),
            change = self.services.next() => Seen::Service(change),
            change = self.controllers.next() => Seen::Group(Group::ReplicationController, change),
            change = self.replica_sets.next() => Seen::Group(Group::ReplicaSet, change),
            change = self.stateful_sets.next() => Seen::Group(Group::StatefulSet, change),
            change = self.budgets.next() => Seen::Budget(change),
            change = self.nodes.next() => Seen::Node(change),
            change = self.pods.next() => Seen::Pod(change),
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
