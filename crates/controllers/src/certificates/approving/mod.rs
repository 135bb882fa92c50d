//! The approver: approves client certificates for nodes if the requester is authorized.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::{Access, Cached, Error, Informer, ObjectKey, Resource, Whole};

use super::request::RequestError;
use super::{ACCOUNT, add_condition, follow, resource};
use crate::framework::{Context, Controller, Observation, Requeue, Runner};
use plan::AccessCheck;

/// The controller.
pub struct Approving {
    requests: Informer<Whole>,
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
pub async fn run(context: &Context) {
    let (requests, queue, feeds) = follow(context, "certificate");
    let client = context.client(ACCOUNT);
    let reviews = Resource::builtin("authorization.k8s.io", "v1", "subjectaccessreviews");

    let (access, reviews) = (client.resource(&resource()), client.resource(&reviews));
    Runner::new(
        Approving {
            requests,
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

#[async_trait]
impl Controller for Approving {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Whole>>;
    type Plan = Result<Vec<AccessCheck>, RequestError>;
    type Error = ActError;

    const NAME: &'static str = "certificatesigningrequest-approving-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Whole>>> {
        let Some(request) = self.requests.get(key) else {
            return Observation::Absent;
        };
        Observation::Present {
            uid: request.uid.clone(),
            observed: request,
        }
    }

    fn plan(request: &Arc<Cached<Whole>>, _: Timestamp) -> Self::Plan {
        plan::plan(request)
    }

    async fn act(
        &self,
        _: &ObjectKey,
        request: Arc<Cached<Whole>>,
        plan: Self::Plan,
    ) -> Result<Requeue, ActError> {
        let questions = plan?;
        for question in &questions {
            if self.allows(&request, *question).await? {
                let mut approved = Value::clone(&request.object);
                add_condition(&mut approved, "Approved", "AutoApproved", question.message);

                let written = self
                    .access
                    .clone()
                    .subresource("approval")
                    .update(&approved)
                    .await;

                return written.map(|_| Requeue::OnEvent).map_err(ActError::Write);
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
