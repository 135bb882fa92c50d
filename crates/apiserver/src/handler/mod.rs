//! Answers an authorized request: finds what its path names and dispatches by verb.
//!
//! [`resource`] serves objects through the registry, with [`checks`] before anything is written and
//! [`body`] for what the request carries. Streams and proxies go to [`crate::connect`], paths that
//! are not about a resource to [`crate::plain`].

mod body;
mod checks;
mod resource;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::catalog::BUILTIN;
use coracle_client::Journal;

use crate::ApiError;
use crate::answer::{self, Answer};
use crate::bodies::{Bodies, Counted};
use crate::connect::{Connect, What};
use crate::deprecation;
use crate::health::Health;
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::registry::{Registry, Wanted};
use crate::render::Form;
use crate::request::{Request, ResourceRequest, Target};
use crate::served::Served;

/// Everything a request needs.
pub struct Server {
    pub registry: Arc<Registry>,
    pub openapi: OpenApi,
    /// `host:port`, as discovery tells it to clients.
    pub address: String,
    pub health: Health,
    pub lifecycle: Arc<Lifecycle>,
    pub metrics: Arc<Metrics>,
    /// What leads to nodes and pods.
    pub connect: Connect,
    /// How long a watch lasts at least that does not say; at most twice as long.
    pub min_watch: Duration,
    /// What components of the same process have noted of objects.
    pub journal: Journal,
    /// What is held of requests under way.
    pub(crate) bodies: Arc<Bodies>,
}

/// A body of bytes, wherever it comes from.
pub trait RequestBody:
    http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static
{
}
impl<B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static> RequestBody for B {}

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Server {
    /// Answers a request that authorization has allowed.
    pub async fn handle<B: RequestBody>(
        self: &Arc<Self>,
        request: &Request<'_>,
        body: B,
    ) -> Answer {
        let plain = Form::negotiate(request.accept(), request.query, request.user_agent());
        // A Status has one shape: a client that accepts only another one gets it as JSON.
        let form = plain.clone().unwrap_or(Form::JSON);

        let result = match &request.info.target {
            None => self.plain(request, plain).await,
            Some(target) => {
                let request = ResourceRequest {
                    request: *request,
                    target,
                };
                self.handle_target(&request, body).await
            }
        };

        result.unwrap_or_else(|error| answer::error(&error, form))
    }

    async fn handle_target<B: RequestBody>(
        self: &Arc<Self>,
        request: &ResourceRequest<'_>,
        body: B,
    ) -> Result<Answer, ApiError> {
        let target = request.target;
        if let Some(what) = What::of(target) {
            checks::check_name(&target.name)?;
            // Boxed: few requests are such, and the future of all others would be twice as large.
            return Box::pin(self.connect.answer(what, request, body)).await;
        }

        let Some(served) = self.find(target).await else {
            return match has_group(&target.group) {
                true => Err(ApiError::no_such_resource()),
                false => Ok(answer::no_such_page()),
            };
        };

        let held = self.bodies.holding(&request.caller.user.name);
        let body = Counted::new(body, held.clone());
        let result = self.handle_resource(request, &served, body).await;
        deprecation::noted(target, &served, result)
    }

    /// The resource that a path names. One that is not in the cache may be a custom resource whose
    /// definition has not reached it yet: right after a start, or when another server has just
    /// accepted it. So the cache catches up with the store before the answer is no.
    async fn find(&self, target: &Target) -> Option<Served> {
        if BUILTIN
            .resource(&target.group, &target.version, &target.resource)
            .is_none()
        {
            self.registry.reach(Wanted::Any).await.ok()?;
        }
        if let Some(found) = self.known(target) {
            return Some(found);
        }
        self.registry.reach(Wanted::Newest).await.ok()?;
        self.known(target)
    }

    /// The resource in the cache, if its scope fits the path.
    fn known(&self, target: &Target) -> Option<Served> {
        let caches = &self.registry.caches;
        let served = Served::find(caches, &target.group, &target.version, &target.resource)?;
        let fits = match &served {
            Served::BuiltIn(_) => true,
            Served::Custom(custom, version) => match custom.resource(*version).namespaced {
                true => !target.namespace.is_empty() || target.name.is_empty(),
                false => target.namespace.is_empty(),
            },
        };
        fits.then_some(served)
    }
}

pub(crate) fn has_group(name: &str) -> bool {
    coracle_api::catalog::groups()
        .iter()
        .any(|known| known.name == name)
}
