//! Answers an authorized request: finds what its path names and dispatches by verb.
//!
//! [`resource`] serves objects through the registry, with [`checks`] before anything is written and
//! [`body`] for what the request carries. Streams and proxies go to [`crate::connect`], paths that
//! are not about a resource to [`crate::plain`].

mod body;
mod checks;
mod component_status;
mod resource;

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::Timestamp;
use coracle_client::Journal;
use coracle_serving::Flag;
use http_body::Body as _;

use crate::ApiError;
use crate::aggregation::Aggregation;
use crate::answer::{self, Answer};
use crate::byte_budget::{ByteBudget, Counted};
use crate::connect::{Connect, Streamed, Subresource};
use crate::deprecation;
use crate::health::Health;
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::registry::{Registry, RequiredVersion};
use crate::render::Form;
use crate::request::{Request, RequestBody, ResourceRequest, Target, Verb};
use crate::served::Served;

/// The memory that a chunked response is counted with: one item of a list can be this large.
const LARGE_PIECE: usize = 1 << 20;

/// Smaller responses are not counted.
const LEAST_COUNTED: usize = 4 << 10;

/// Everything a request needs.
pub struct Server {
    pub registry: Arc<Registry>,
    pub openapi: OpenApi,
    /// `host:port`, as discovery returns it to clients.
    pub address: String,
    pub health: Health,
    pub lifecycle: Arc<Lifecycle>,
    pub metrics: Arc<Metrics>,
    /// Connects clients to nodes and pods.
    pub connect: Connect,
    /// The groups and versions of other servers.
    pub aggregation: Arc<Aggregation>,
    /// The shortest duration of a watch without a timeout; the longest is twice as long.
    pub min_watch: Duration,
    /// What components of the same process have noted of objects.
    pub journal: Journal,
    /// What `/metrics/slis` shows.
    pub slis: coracle_metrics::Registry,
    /// What `/flagz` shows.
    pub flags: Vec<Flag>,
    pub started: Timestamp,
    /// Bytes of bodies of requests in flight.
    pub(crate) bodies: Arc<ByteBudget>,
    /// Bytes of responses that clients have not read yet.
    pub(crate) answers: Arc<ByteBudget>,
}

impl Server {
    /// Serves a request that is authorized.
    pub async fn handle<B: RequestBody>(
        self: &Arc<Self>,
        request: &Request<'_>,
        body: B,
    ) -> Answer {
        if let Some(remote) = self.aggregation.server_at(&request.info.path) {
            return Box::pin(self.aggregation.forward(&remote, request, body)).await;
        }

        let plain = Form::negotiate(request.accept(), request.query, request.user_agent());
        // A Status has one shape: a client that accepts only another one gets it as JSON.
        let form = plain.clone().unwrap_or(Form::JSON);

        let result = match &request.info.target {
            None => Box::pin(self.plain(request, plain)).await,
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
        if let Some(subresource) = Subresource::of(target) {
            checks::check_name(&target.name)?;
            // Boxed: few requests are such, and the future of all others would be twice as large.
            return Box::pin(self.connect.answer(subresource, request, body)).await;
        }

        let Some(served) = self.find(target).await else {
            let definitions = self.registry.caches.definitions();
            return match definitions.served().has_group(&target.group) {
                true => Err(ApiError::no_such_resource()),
                false => Ok(answer::no_such_page()),
            };
        };

        let held = self.bodies.reservation(&request.caller.user.name);
        let body = Counted::new(body, held.clone());
        let result = self.handle_resource(request, &served, body).await;
        let result = result.and_then(|answer| self.hold(answer, request));
        let result = result.map(|answer| match request.info.verb {
            Verb::Watch => {
                let connect = &self.connect;
                connect.over_websocket(request.head, answer, Streamed::Events)
            }
            _ => answer,
        });
        deprecation::noted(&served, result)
    }

    /// Counts a large response as held for its user until it has been read. A chunked one holds a
    /// chunk at a time. Watches are not counted: their events are shared by all watchers.
    fn hold(&self, answer: Answer, request: &Request<'_>) -> Result<Answer, ApiError> {
        let bytes = match answer.body().size_hint().exact() {
            Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
            None if request.info.verb == Verb::Watch => 0,
            None => LARGE_PIECE,
        };
        if bytes < LEAST_COUNTED {
            return Ok(answer);
        }

        let reservation = self.answers.reservation(&request.caller.user.name);
        match reservation.add(bytes) {
            Ok(()) => Ok(answer::holding(answer, reservation)),
            // A write is done by now and must be answered; it was bounded by its body.
            Err(_) if !request.info.verb.is_read() => Ok(answer),
            Err(error) => Err(ApiError::too_many_requests(error.to_string())),
        }
    }

    /// The resource that a path names. One that is not in the cache may be a custom resource whose
    /// definition has not reached it yet: right after a start, or when another server has just
    /// accepted it. So the cache catches up with the store before the answer is no.
    async fn find(&self, target: &Target) -> Option<Served> {
        if self.known(target).is_none() {
            self.registry.reach(RequiredVersion::Any).await.ok()?;
        }
        if let Some(found) = self.known(target) {
            return Some(found);
        }
        self.registry.reach(RequiredVersion::Newest).await.ok()?;
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
