//! CertificateSigningRequests: [`approving`] approves what nodes may have, [`signing`] signs what
//! was approved, [`cleaner`] deletes old requests. [`request`] parses the requests for all three.

pub mod approving;
pub mod cleaner;
pub mod request;
pub mod signing;

use coracle_api::{Map, Value};
use coracle_client::{Informer, ObjectKey, Resource, Whole, WorkQueue};

use crate::framework::{Context, Feeds};

/// The service account of all three.
pub(crate) const ACCOUNT: &str = "certificate-controller";

fn resource() -> Resource {
    Resource::builtin("certificates.k8s.io", "v1", "certificatesigningrequests")
}

/// The informer of requests, and a queue of this name that it fills.
fn follow(
    context: &Context,
    queue: &'static str,
) -> (Informer<Whole>, WorkQueue<ObjectKey>, Feeds) {
    let (requests, queue) = (context.informers.of(&resource()), WorkQueue::new(queue));
    let mut feeds = Feeds::new();
    let concerned = queue.clone();
    feeds.follow(&requests, move |change| {
        if let Some(request) = change.object() {
            concerned.add(request.key.clone());
        }
    });
    (requests, queue, feeds)
}

/// The conditions of a request.
fn conditions(object: &Value) -> impl Iterator<Item = &Map> {
    let conditions = object
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    conditions.iter().filter_map(Value::as_object)
}

/// Whether a request has a condition of a kind.
fn has(object: &Value, kind: &str) -> bool {
    conditions(object).any(|condition| condition.text("type") == kind)
}

/// Adds a condition to a request.
fn add_condition(object: &mut Value, kind: &str, reason: &str, message: &str) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    let mut condition = Map::new();
    condition.insert("type", kind);
    condition.insert("status", "True");
    condition.insert("reason", reason);
    condition.insert("message", message);

    let conditions = members
        .object_mut("status")
        .get_or_insert_with("conditions", || Value::Array(Vec::new()));
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.push(Value::Object(condition));
    }
}
