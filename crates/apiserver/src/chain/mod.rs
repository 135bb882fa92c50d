//! The filters that every request passes before the handler, and every response after it.
//!
//! Outermost first: audit id, panic recovery, deadline, authentication, flow classification,
//! authorization. Responses get the headers that all responses have.

mod browsers;
mod deadline;
mod impersonation;
mod panics;

pub use browsers::Browsers;
pub use impersonation::LastModes;

use std::sync::Arc;
use std::time::Duration;

use coracle_client::World;
use http::request::Parts;
use http::{HeaderName, HeaderValue, StatusCode, Version, header};
use tokio::time::Instant;

use crate::ApiError;
use crate::access::Access;
use crate::aggregation::limited::{self, Forwarded};
use crate::answer::{self, Answer};
use crate::authn::{Caller, Peer, Presented, User};
use crate::authz::attributes_of;
use crate::flow::{Class, Flow};
use crate::handler::Server;
use crate::lifecycle::Lifecycle;
use crate::metrics::{Filter, Metrics};
use crate::render::Form;
use crate::request::RequestBody;
use crate::request::{Query, Request, RequestInfo, Verb};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

pub struct Chain {
    pub server: Arc<Server>,
    pub flow: Arc<Flow>,
    pub lifecycle: Arc<Lifecycle>,
    /// How long a short request may take.
    pub request_timeout: Duration,
    pub metrics: Arc<Metrics>,
    pub world: World,
    pub last_modes: LastModes,
    pub browsers: Browsers,
}

/// The parsed head of a request.
struct Head {
    parts: Parts,
    query: Query,
    info: RequestInfo,
    /// For refusals.
    form: Form,
    began: Instant,
    audit_id: HeaderValue,
}

impl Chain {
    pub async fn answer<B: RequestBody>(
        self: &Arc<Self>,
        request: http::Request<B>,
        peer: &Peer,
    ) -> Answer {
        let audit_id = self.audit_id(request.headers().get(AUDIT_ID));
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let origin = self.browsers.origin(request.headers());
        let mut answer = match Browsers::preflight(&method, origin.as_ref()) {
            Some(answer) => answer,
            None => match panics::caught(self.pass(request, peer, &audit_id)).await {
                Ok(answer) => answer,
                Err(panic) => panics::answer(&panic, &method, &uri, &audit_id),
            },
        };

        let headers = answer.headers_mut();
        self.browsers.tell(origin, headers);
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));

        headers.insert(AUDIT_ID, audit_id);

        answer
    }

    async fn pass<B: RequestBody>(
        self: &Arc<Self>,
        request: http::Request<B>,
        peer: &Peer,
        audit_id: &HeaderValue,
    ) -> Answer {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let info = RequestInfo::new(&parts.method, parts.uri.path(), &query);

        let text = |name| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let form = Form::negotiate(text(header::ACCEPT), &query, text(header::USER_AGENT));
        let form = form.unwrap_or(Form::JSON);

        let began = Instant::now();
        let caches = &self.server.registry.caches;
        let measured = self
            .metrics
            .request(&info, &query, &parts.headers, caches, began);
        let mut answer = self
            .in_time(
                Head {
                    parts,
                    query,
                    info,
                    form,
                    began,
                    audit_id: audit_id.clone(),
                },
                body,
                peer,
            )
            .await;

        if let Some(measured) = measured {
            measured.answered(answer.status().as_u16());
            answer.extensions_mut().insert(measured);
        }

        answer
    }

    /// A short request is given up when its time is over.
    async fn in_time<B: RequestBody>(self: &Arc<Self>, head: Head, body: B, peer: &Peer) -> Answer {
        if head.info.is_long_running() {
            return self.authenticate_and_serve(head, body, peer).await;
        }

        if !self.lifecycle.accepts() {
            return answer::error(&ApiError::shutting_down(), Form::JSON);
        }

        match deadline::of(&head.query, self.request_timeout) {
            Err(error) => answer::error(&error, head.form),
            Ok(within) => {
                let deadline = head.began + within;
                let answered = self.authenticate_and_serve(head, body, peer);
                let mut answer = tokio::time::timeout(within, answered)
                    .await
                    .unwrap_or_else(|_| deadline::passed());
                match answer.extensions_mut().remove::<Forwarded>() {
                    Some(Forwarded) => limited::until(answer, deadline),
                    None => answer,
                }
            }
        }
    }

    async fn authenticate_and_serve<B: RequestBody>(
        self: &Arc<Self>,
        mut head: Head,
        body: B,
        peer: &Peer,
    ) -> Answer {
        let presented = Presented {
            peer,
            headers: &head.parts.headers,
            now: (self.world.now)(),
        };
        let user = self.access().authentication.user(&presented).await;
        let known = user.as_deref().ok();
        let authenticated = Instant::now();
        let took = authenticated.duration_since(head.began);
        self.metrics.authenticated(known, took);
        self.metrics.filtered(Filter::Authentication, took);

        let user = match user {
            Ok(user) => user,
            Err(error) => {
                let mut answer = answer::error(&error, head.form);
                close_if_expensive(head.parts.version, &mut answer);
                return answer;
            }
        };

        self.access()
            .authentication
            .remove_credentials(&mut head.parts.headers);
        let is_anonymous = user.is_anonymous();
        let version = head.parts.version;
        let mut answer = match self.impersonated(user, &mut head).await {
            Err(error) => no_sniff(answer::error(&error, head.form)),
            Ok(user) => {
                let took = authenticated.elapsed();
                self.metrics.filtered(Filter::Impersonation, took);
                self.allowed(user, &head, body).await
            }
        };

        if is_anonymous {
            close_if_expensive(version, &mut answer);
        }

        answer
    }

    /// The effective user of the request.
    async fn impersonated(&self, user: Arc<User>, head: &mut Head) -> Result<Arc<User>, ApiError> {
        let Some(wanted) = impersonation::wanted(&mut head.parts.headers)? else {
            return Ok(user);
        };
        let attributes = attributes_of(&user, &head.info, &head.query);
        let authorization = &self.access().authorization;
        let last = &self.last_modes;
        Box::pin(impersonation::allowed(
            &wanted,
            &attributes,
            authorization,
            last,
        ))
        .await
    }

    async fn allowed<B: RequestBody>(
        self: &Arc<Self>,
        user: Arc<User>,
        head: &Head,
        body: B,
    ) -> Answer {
        let impersonated = Instant::now();
        let class = self.classify(&user, &head.info);
        let classified = Instant::now();
        let took = classified.duration_since(impersonated);
        self.metrics.filtered(Filter::FlowControl, took);

        let attributes = attributes_of(&user, &head.info, &head.query);
        let allowed = self.access().authorization.check(&attributes).await;
        let took = classified.elapsed();
        self.metrics.authorized(allowed.is_ok(), took);
        if allowed.is_ok() {
            self.metrics.filtered(Filter::Authorization, took);
        }

        let mut answer = match allowed {
            Err(error) => no_sniff(answer::error(&error, head.form)),
            Ok(()) => {
                let user_agent = head.parts.headers.get(header::USER_AGENT);
                let user_agent = user_agent
                    .and_then(|value| value.to_str().ok())
                    .unwrap_or_default();
                let caller = Caller {
                    user,
                    user_agent: user_agent.to_string(),
                };

                let request = Request {
                    head: &head.parts,
                    info: &head.info,
                    query: &head.query,
                    caller: &caller,
                    audit_id: &head.audit_id,
                };
                self.server.handle(&request, body).await
            }
        };

        if let Some(class) = class {
            self.metrics.dispatched(&class.flow);
            answer
                .headers_mut()
                .insert(FLOW_SCHEMA, class.flow_schema_uid.clone());
            answer
                .headers_mut()
                .insert(PRIORITY_LEVEL, class.priority_level_uid.clone());
        }

        answer
    }

    fn access(&self) -> &Access {
        &self.server.registry.access
    }

    /// Of requests that last, only watches belong to a flow.
    fn classify(&self, user: &User, info: &RequestInfo) -> Option<Arc<Class>> {
        (!info.is_long_running() || info.verb == Verb::Watch)
            .then(|| self.flow.classify(user, info))
    }

    /// What the client calls its request, or a new name for it.
    fn audit_id(&self, given: Option<&HeaderValue>) -> HeaderValue {
        match given {
            Some(given) if !given.is_empty() => given.clone(),
            _ => {
                let id = self.world.uid().to_string();
                HeaderValue::from_str(&id).expect("a UUID is digits and dashes")
            }
        }
    }
}

/// Marks a response after which the connection is closed.
#[derive(Clone, Copy, Debug)]
pub struct LastAnswer;

/// HTTP/2 is expensive: an unauthenticated client does not keep such a connection.
fn close_if_expensive(version: Version, answer: &mut Answer) {
    if version == Version::HTTP_2 {
        answer.extensions_mut().insert(LastAnswer);
    }
}

/// An error in plain text, whatever the client accepts.
fn plain_text(status: StatusCode, text: &str) -> Answer {
    no_sniff(answer::text(status, text))
}

/// A response whose content type browsers must not guess.
fn no_sniff(mut answer: Answer) -> Answer {
    let nosniff = HeaderValue::from_static("nosniff");
    answer
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    answer
}
