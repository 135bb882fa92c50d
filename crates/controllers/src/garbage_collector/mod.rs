//! The garbage collector: deletes the dependents of deleted objects.
//!
//! Monitors watch the metadata of all deletable objects, `handlers` feeds changes into the `graph`
//! of owners and dependents and their effects into the queue. A worker takes an object, `plan`
//! decides what to ask the server and what to do with the object, `act` does it. The graph may be
//! stale, so it only selects what to verify: nothing is deleted unless the server itself confirmed
//! that it has no owner left.

pub mod absent;
mod act;
pub mod graph;
mod handlers;
pub mod identity;
pub mod node;
mod owners;
pub mod plan;
#[cfg(test)]
mod tests;

use std::fmt;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::discovery::Served;
use coracle_client::{Client, ObjectKey, Resource, WorkQueue};

pub use act::ActError;
use graph::Graph;
use handlers::GraphFeed;
use identity::Id;
use node::Node;
use plan::{Dependent, Item, Observed, Plan, Step};

use crate::framework::{
    Context, Controller, Feeds, Monitors, Observation, Requeue, Resources, Runner, allows,
    preferred,
};

/// The service account.
pub(crate) const ACCOUNT: &str = "generic-garbage-collector";

/// The controller.
pub struct GarbageCollector {
    feed: GraphFeed,
    queue: WorkQueue<Work>,
    resources: Resources,
    client: Client,
}

/// The work of a worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Decide whether an object may stay.
    Look(Id),
    /// Orphan the dependents of an object.
    Orphan(Id),
}

impl fmt::Display for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Work::Look(id) | Work::Orphan(id)) = self;
        id.fmt(out)
    }
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("garbage_collector");
    let recorder = context.recorder.clone().component(GarbageCollector::NAME);
    let feed = GraphFeed::new(queue.clone(), recorder);
    let handler = feed.clone();
    let mut monitors = Monitors::new(context, collectable, move |of, change| {
        handler.handle(of, change)
    });
    monitors.begin().await;

    let controller = GarbageCollector {
        feed,
        queue: queue.clone(),
        resources: context.resources(),
        client: context.client(ACCOUNT),
    };

    let nothing_more = Feeds::new();
    let work = Runner::new(controller, queue, context).run(nothing_more, workers);
    tokio::join!(work, monitors.follow());
}

/// The resources whose objects can own and be owned. Events are many, and own nothing.
fn collectable(served: &Served) -> Vec<&Resource> {
    let is_event = |resource: &Resource| {
        resource.plural == "events" && matches!(resource.group.as_str(), "" | "events.k8s.io")
    };
    let able = preferred(served)
        .into_iter()
        .filter(|one| allows(one, &["delete", "list", "watch"]));
    able.map(|one| &one.resource)
        .filter(|resource| !is_event(resource))
        .collect()
}

#[async_trait]
impl Controller for GarbageCollector {
    type Key = Work;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "garbage-collector-controller";

    fn observe(&self, key: &Work) -> Observation<Observed> {
        let graph = self.feed.graph();
        let (Work::Look(id) | Work::Orphan(id)) = key;
        let Some(node) = graph.get(id) else {
            return Observation::Absent;
        };
        let turn = match key {
            Work::Look(_) => Step::Look(item(&graph, node)),
            Work::Orphan(_) => Step::Orphan(dependents(&graph, node)),
        };

        let observed = Observed {
            identity: node.identity(),
            resource: node.resource().cloned(),
            turn,
        };

        Observation::Present {
            uid: Text::from(id.to_string()),
            observed,
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan::plan(observed)
    }

    async fn act(&self, _: &Work, observed: Observed, plan: Plan) -> Result<Requeue, ActError> {
        self.carry_out(&observed, plan).await
    }
}

fn item(graph: &Graph, node: &Node) -> Item {
    let uid = node.identity().uid;
    let deletes_dependents = node.deletes_dependents();
    let blocking = graph
        .dependents(node)
        .filter(|(_, dependent)| deletes_dependents && dependent.blocks(&uid));
    let blocking: Vec<(&Id, &Node)> = blocking.collect();
    let waiting = |dependent: &Node| dependent.deletes_dependents();

    Item {
        is_virtual: node.is_virtual(),
        is_being_deleted: node.is_being_deleted(),
        has_owners: !node.owners().is_empty(),
        deletes_dependents,
        is_blocked: !blocking.is_empty(),
        blocking: blocking
            .iter()
            .filter(|(_, one)| !waiting(one))
            .map(|(id, _)| (*id).clone())
            .collect(),
        has_dependents: graph.dependents(node).next().is_some(),
        is_waited_for: graph
            .dependents(node)
            .any(|(_, dependent)| waiting(dependent)),
    }
}

fn dependents(graph: &Graph, node: &Node) -> Vec<Dependent> {
    let of = |dependent: &Node| {
        let identity = dependent.identity();
        let key = ObjectKey {
            namespace: identity.namespace,
            name: identity.name,
        };

        dependent.resource().map(|resource| Dependent {
            resource: resource.clone(),
            key,
            uid: identity.uid,
        })
    };

    graph
        .dependents(node)
        .filter_map(|(_, dependent)| of(dependent))
        .collect()
}
