//! The approver: approves client certificates for nodes if the requester is authorized. Where its
//! settings say so, it approves serving certificates of nodes for their own addresses, too, and
//! nobody gets the client certificate of a node that exists but that node.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::{Access, Error, Informer, ObjectKey, Resource, Whole};

use super::request::RequestError;
use super::{ACCOUNT, add_condition, follow, has, resource};
use crate::framework::{Context, Controller, Observation, Requeue, Runner};
use plan::{AccessCheck, NodeFacts, Observed, Plan};

/// What is approved beyond upstream's rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Approve serving certificates that nodes request for their own names and addresses.
    pub serving: bool,
    /// Approve a client certificate for a node that exists only if that node requests it.
    pub known_nodes_are_taken: bool,
}

/// The controller.
pub struct Approving {
    config: Config,
    requests: Informer<Whole>,
    /// The nodes, where the settings need them.
    nodes: Option<Informer<Whole>>,
    access: Access,
    reviews: Access,
}

/// Why a request was not approved.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    /// The request is malformed.
    #[error("unable to parse csr")]
    Request(#[from] RequestError),
    /// The SubjectAccessReview failed.
    #[error("SubjectAccessReview failed")]
    Review(#[source] Error),
    /// The approval could not be written.
    #[error("error updating approval for csr")]
    Write(#[source] Error),
    /// The requester is not authorized; that may change.
    #[error("recognized csr as {0:?} but subject access review was not approved")]
    NotAllowed(Vec<&'static str>),
}

/// Runs the controller. Never returns.
pub async fn run(context: &Context, config: Config) {
    let (requests, queue, mut feeds) = follow(context, "certificate");
    let client = context.client(ACCOUNT);
    let reviews = Resource::builtin("authorization.k8s.io", "v1", "subjectaccessreviews");

    let all = Resource::builtin("", "v1", "nodes");
    let needs_nodes = config != Config::default();
    let nodes = needs_nodes.then(|| context.informers.of(&all));
    if let Some(nodes) = &nodes {
        // A node requests its serving certificate before it is registered.
        let (waiting, queue) = (requests.clone(), queue.clone());
        feeds.follow(nodes, move |_| {
            let all = waiting.list();
            let pending = all.iter().filter(|request| is_pending(&request.object));
            pending.for_each(|request| queue.add(request.key.clone()));
        });
    }

    let (access, reviews) = (client.resource(&resource()), client.resource(&reviews));
    Runner::new(
        Approving {
            config,
            requests,
            nodes,
            access,
            reviews,
        },
        queue,
        context,
    )
    .run(feeds, 1)
    .await;
}

impl Approving {
    /// What is known of the node that a request is about.
    fn node_facts(&self, request: &Value) -> NodeFacts {
        let Some(nodes) = &self.nodes else {
            return NodeFacts::default();
        };
        let nodes: Vec<Arc<Value>> = nodes
            .list()
            .iter()
            .map(|node| node.object.clone())
            .collect();
        NodeFacts::of(request, &nodes)
    }

    async fn approve(&self, request: &Value, message: &'static str) -> Result<Requeue, ActError> {
        let mut approved = request.clone();
        add_condition(&mut approved, "Approved", "AutoApproved", message);
        let access = self.access.clone().subresource("approval");
        let written = access.update(&approved).await;
        written.map(|_| Requeue::OnEvent).map_err(ActError::Write)
    }

    /// Whether the requester is authorized to create this subresource of requests.
    async fn allows(&self, object: &Value, question: AccessCheck) -> Result<bool, ActError> {
        let mut wanted = Map::new();
        for (name, text) in [
            ("group", "certificates.k8s.io"),
            ("version", "*"),
            ("resource", "certificatesigningrequests"),
            ("subresource", question.part),
            ("verb", "create"),
        ] {
            wanted.insert(name, text);
        }

        let mut spec = Map::new();
        spec.insert("resourceAttributes", wanted);

        for (from, to) in [
            ("username", "user"),
            ("uid", "uid"),
            ("groups", "groups"),
            ("extra", "extra"),
        ] {
            if let Some(value) = object.at(&["spec", from]) {
                spec.insert(to, value.clone());
            }
        }

        let mut review = Map::new();
        review.insert("apiVersion", "authorization.k8s.io/v1");
        review.insert("kind", "SubjectAccessReview");
        review.insert("spec", spec);
        let answer = self
            .reviews
            .create(&Value::Object(review))
            .await
            .map_err(ActError::Review)?;

        Ok(answer
            .at(&["status", "allowed"])
            .and_then(Value::as_bool)
            .unwrap_or_default())
    }
}

/// Whether nobody has decided about a request.
fn is_pending(request: &Value) -> bool {
    !has(request, "Approved") && !has(request, "Denied")
}

#[async_trait]
impl Controller for Approving {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Result<Plan, RequestError>;
    type Error = ActError;

    const NAME: &'static str = "certificatesigningrequest-approving-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(request) = self.requests.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: request.uid.clone(),
            observed: Observed {
                config: self.config,
                node: self.node_facts(&request.object),
                request: request.object.clone(),
            },
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Self::Plan {
        plan::plan(observed)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Self::Plan,
    ) -> Result<Requeue, ActError> {
        let request = &observed.request;
        let questions = match plan? {
            Plan::Approve(message) => return self.approve(request, message).await,
            Plan::NotYet(why) => {
                tracing::debug!(request = %key, why, "not approved; looking again when nodes change");
                return Ok(Requeue::OnEvent);
            }
            Plan::Ask(questions) => questions,
        };

        for question in &questions {
            if self.allows(request, *question).await? {
                return self.approve(request, question.message).await;
            }
        }

        match questions.is_empty() {
            true => Ok(Requeue::OnEvent),
            false => Err(ActError::NotAllowed(
                questions.iter().map(|question| question.part).collect(),
            )),
        }
    }
}
