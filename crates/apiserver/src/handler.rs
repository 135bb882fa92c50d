//! The road of one request: path, user, resource, verb, answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Resource, Subresource};
use coracle_api::codec::media_type::{self, Endpoint, PatchType};
use coracle_api::go_text::Quoted;
use coracle_api::names;
use coracle_api::resource_version::ResourceVersion;
use coracle_client::Journal;
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use http_body_util::{BodyExt, Limited};

use crate::ApiError;
use crate::answer::{self, Answer};
use crate::authn::Caller;
use crate::bodies::{Bodies, Counted, NoRoom};
use crate::cache::Entry;
use crate::connect::{Ask, Connect, What};
use crate::deprecation;
use crate::health::Health;
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::openapi::OpenApi;
use crate::registry::{self, Call, Content, Deleted, List, Part, Registry, Scope, Wanted, Written};
use crate::render::{Form, Rendering, Shown};
use crate::request::{DeleteOptions, ListOptions, Query, RequestInfo, Target, WriteOptions};
use crate::served::Served;

/// The largest body of a write.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// What answers about objects may be written in; the last two are for watches.
const PRODUCED: [&str; 5] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

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
    /// Answers a request of somebody who may make it.
    pub async fn handle<B: RequestBody>(
        self: &Arc<Self>,
        head: &Parts,
        info: &RequestInfo,
        query: &Query,
        caller: &Caller,
        body: B,
    ) -> Answer {
        let user_agent = text_header(&head.headers, header::USER_AGENT);
        let plain = Form::negotiate(
            text_header(&head.headers, header::ACCEPT),
            query,
            user_agent,
        );

        // Refusals have one shape only: a client that accepts nothing but another one is told in
        // JSON.
        let form = plain.clone().unwrap_or(Form::JSON);

        let result = match &info.target {
            None => self.plain(head, &info.path, query, plain).await,
            Some(target) if let Some(what) = What::of(target) => {
                let ask = Ask {
                    head,
                    info,
                    target,
                    caller,
                    query,
                };

                // Boxed: few requests are such, and all others would be twice as large for it.
                check_name(&target.name).and(Box::pin(self.connect.answer(what, &ask, body)).await)
            }
            Some(target) => match self.find(target).await {
                Some(served) => {
                    let holding = self.bodies.holding(&caller.user.name);
                    let body = Counted::new(body, holding.clone());
                    let result = self
                        .resource(head, info, target, &served, caller, query, body)
                        .await;
                    deprecation::noted(target, &served, result)
                }
                None if has_group(&target.group) => Err(ApiError::no_such_resource()),
                None => return answer::no_such_page(),
            },
        };

        result.unwrap_or_else(|error| answer::error(&error, form))
    }

    /// The resource of a path. What is not known may be a custom resource that is not known yet: of
    /// a definition that this server has not come to again since it began, or that another server
    /// has just accepted.
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

    /// Of custom resources, if the path has the parts that it must have.
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

    #[expect(
        clippy::too_many_arguments,
        reason = "what a request consists of, handed on once"
    )]
    async fn resource<B: RequestBody>(
        self: &Arc<Self>,
        head: &Parts,
        info: &RequestInfo,
        target: &Target,
        served: &Served,
        caller: &Caller,
        query: &Query,
        body: B,
    ) -> Result<Answer, ApiError> {
        let headers = &head.headers;
        let resource = served.resource();
        let subresource = subresource(served, target)?;
        let verbs = subresource.map_or(&resource.verbs, |subresource| &subresource.verbs);
        let allowed = verbs.iter().any(|verb| verb == info.verb);
        check_shape(resource, target, info.verb)?;

        if !allowed || !shape_fits(resource, target, info.verb) || head.method == Method::HEAD {
            return Err(ApiError::method_not_allowed());
        }

        check_produced(headers, info.verb)?;

        let scope = Scope::of(
            served,
            if resource.namespaced {
                &target.namespace
            } else {
                ""
            },
            caller,
        );
        check_terminating(&scope, info.verb)?;

        let rendering = rendering(headers, query, endpoint(served, subresource))?;
        if !matches!(info.verb, "get" | "list" | "watch") {
            rendering.check(info.verb == "deletecollection", &scope)?;
        }

        self.registry.reach(Wanted::before(info.verb)).await?;
        let Some(part) = Part::named(&target.subresource).filter(|_| resource.storage.is_some())
        else {
            let call = self
                .call(&scope, subresource, target, info.verb, headers, query, body)
                .await?;
            let (scope, reply) = (call.scope, call.serve().await?);
            let answer = self.shown(reply.code, Shown::Tree(&reply.object), &scope, &rendering)?;
            return Ok(answer::with_warnings(answer, &reply.warnings));
        };

        match info.verb {
            "get" => {
                let entry = self
                    .registry
                    .read(&scope, &target.name, wanted_version(query)?)
                    .await?;
                self.shown(StatusCode::OK, Shown::Entry(&entry), &scope, &rendering)
            }
            "list" => {
                let list = self
                    .registry
                    .list(&scope, &ListOptions::parse(query)?)
                    .await?;
                self.listed(list, &scope, served, &rendering, headers)
            }
            "watch" => {
                let mut options = ListOptions::parse(query)?;
                if target.old_style_watch {
                    options.only_object(&target.name)?;
                }
                self.watch(&scope, served, &options, rendering, &head.extensions)
                    .await
            }
            "delete" => {
                let options = delete_options(query, headers, body).await?;
                let deleted = self.registry.delete(&scope, &target.name, &options).await?;
                let answer = self.deleted(&deleted, &scope, &rendering)?;
                Ok(answer::with_warnings(
                    answer,
                    &scope.delete_notices(&options),
                ))
            }
            "deletecollection" => {
                let (how, which) = (
                    delete_options(query, headers, body).await?,
                    ListOptions::parse(query)?,
                );

                let list = self
                    .registry
                    .delete_collection(&scope, &which, &how)
                    .await?;
                let answer = self.listed(list, &scope, served, &rendering, headers)?;
                Ok(answer::with_warnings(answer, &scope.delete_notices(&how)))
            }
            verb => {
                let result = self
                    .write(verb, &scope, &target.name, part, headers, query, body)
                    .await?;
                let status = if result.created {
                    StatusCode::CREATED
                } else {
                    StatusCode::OK
                };

                let answer = self.shown(status, Shown::Entry(&result.entry), &scope, &rendering)?;
                Ok(answer::with_warnings(answer, &result.warnings))
            }
        }
    }

    /// A request to a subresource of a kind of its own, or to a resource that is not kept.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a request consists of, handed on once"
    )]
    async fn call<'a, B: RequestBody>(
        &'a self,
        scope: &Scope<'a>,
        subresource: Option<&'a Subresource>,
        target: &'a Target,
        verb: &'static str,
        headers: &HeaderMap,
        query: &Query,
        body: B,
    ) -> Result<Call<'a>, ApiError> {
        let (options, content) = match verb {
            "create" | "update" => {
                let kind = if verb == "create" {
                    "CreateOptions"
                } else {
                    "UpdateOptions"
                };
                let options = WriteOptions::parse(query, kind, false)?;
                (options, Content::Object(write_body(headers, body).await?))
            }
            "patch" => {
                let kind = patch_type(headers, scope)?;
                let options = WriteOptions::parse(query, "PatchOptions", kind == PatchType::Apply)?;
                (options, Content::Patch(kind, read(body).await?))
            }
            _ => (WriteOptions::default(), Content::Nothing),
        };

        let (parent, scope) = (*scope, scope.with_kind_of(subresource));
        let (name, subresource) = (target.name.as_str(), target.subresource.as_str());
        Ok(Call {
            registry: &self.registry,
            parent,
            scope,
            name,
            subresource,
            verb,
            options,
            content,
        })
    }

    fn shown(
        &self,
        status: StatusCode,
        shown: Shown<'_>,
        scope: &Scope<'_>,
        rendering: &Rendering,
    ) -> Result<Answer, ApiError> {
        let content = rendering.object(shown, scope, (self.registry.now)())?;
        Ok(answer::bytes(
            status,
            rendering.form.media_type.as_str(),
            content,
        ))
    }

    /// What is left of a deleted object, or that it is gone.
    fn deleted(
        &self,
        deleted: &Deleted,
        scope: &Scope<'_>,
        rendering: &Rendering,
    ) -> Result<Answer, ApiError> {
        let (Deleted::Pending(entry) | Deleted::Shown(entry) | Deleted::Gone(entry)) = deleted;
        let success = matches!(deleted, Deleted::Gone(_)).then(|| success(entry, scope));
        let shown = success.as_ref().map_or(Shown::Entry(entry), Shown::Tree);
        self.shown(StatusCode::OK, shown, scope, rendering)
    }

    fn listed(
        &self,
        list: List,
        scope: &Scope<'_>,
        served: &Served,
        rendering: &Rendering,
        headers: &HeaderMap,
    ) -> Result<Answer, ApiError> {
        let gzip = answer::takes_gzip(headers);
        let now = (self.registry.now)();

        let list = match rendering.long_list(list, served, gzip, now) {
            Ok(pieces) => {
                return Ok(answer::pieces(
                    rendering.form.media_type.as_str(),
                    pieces?,
                    gzip,
                ));
            }
            Err(list) => list,
        };
        let content = rendering.list(&list, scope, now)?;

        Ok(answer::bytes(
            StatusCode::OK,
            rendering.form.media_type.as_str(),
            content,
        ))
    }

    /// Create, update and patch.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a write consists of, handed on once"
    )]
    async fn write<B: RequestBody>(
        &self,
        verb: &str,
        scope: &Scope<'_>,
        name: &str,
        part: Part,
        headers: &HeaderMap,
        query: &Query,
        body: B,
    ) -> Result<Written, ApiError> {
        let options = |kind, apply| WriteOptions::parse(query, kind, apply);
        match verb {
            "create" => {
                let options = options("CreateOptions", false)?;
                let body = write_body(headers, body).await?;
                self.registry.create(scope, &body, &options).await
            }
            "update" => {
                let options = options("UpdateOptions", false)?;
                let body = write_body(headers, body).await?;
                self.registry
                    .update(scope, name, part, &body, &options)
                    .await
            }
            "patch" => {
                let kind = patch_type(headers, scope)?;
                let options = options("PatchOptions", kind == PatchType::Apply)?;

                let body = read(body).await?;
                match kind {
                    PatchType::Apply => {
                        self.registry
                            .apply(scope, name, part, &body, &options)
                            .await
                    }
                    _ => {
                        self.registry
                            .patch(scope, name, part, kind, &body, &options)
                            .await
                    }
                }
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

/// The version that a get will be content with.
fn wanted_version(query: &Query) -> Result<Wanted, ApiError> {
    let text = query.get("resourceVersion").unwrap_or_default();
    let version = text.parse::<ResourceVersion>();
    let version = version.map_err(|error| ApiError::unexplained(error.to_string()))?;
    Ok(Wanted::version(!text.is_empty(), version.0))
}

/// The subresource that a path is about, if it is about one.
fn subresource<'r>(
    served: &'r Served,
    target: &Target,
) -> Result<Option<&'r Subresource>, ApiError> {
    let resource = served.resource();

    if target.subresource.is_empty() {
        return Ok(None);
    }

    let found = resource
        .subresources
        .iter()
        .find(|subresource| subresource.name == target.subresource);

    // What follows a subresource is for those that lead on to somebody else, who have been told
    // apart before.
    found
        .filter(|_| target.rest.is_empty())
        .map(Some)
        .ok_or_else(|| match served {
            Served::BuiltIn(_) => ApiError::no_such_resource(),
            Served::Custom(..) => ApiError::not_found(resource, &target.name),
        })
}

/// Whether there is such a path at all: objects of namespaces are named below one, others never
/// are.
fn check_shape(resource: &Resource, target: &Target, verb: &str) -> Result<(), ApiError> {
    // Collections have a name only because a selector says so.
    let named = !target.name.is_empty() && !matches!(verb, "list" | "watch" | "deletecollection");
    let placed = !target.namespace.is_empty();
    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    match resource.namespaced {
        true if named && !placed => Err(ApiError::no_such_resource()),
        false if placed && !is_namespace => Err(ApiError::no_such_resource()),
        _ if named => check_name(&target.name),
        _ => Ok(()),
    }
}

/// A name becomes a part of the object's key in the store.
fn check_name(name: &str) -> Result<(), ApiError> {
    match names::path_segment_name(name)[..] {
        [] => Ok(()),
        ref wrong => Err(ApiError::bad_request(format!(
            "Name parameter invalid: {}: {}",
            Quoted(name),
            wrong.join(";")
        ))),
    }
}

/// Whether the path has the parts that the verb needs on this resource.
fn shape_fits(resource: &Resource, target: &Target, verb: &str) -> bool {
    let named = !target.name.is_empty();
    match verb {
        "create" => {
            named != target.subresource.is_empty()
                && (!resource.namespaced || !target.namespace.is_empty())
        }
        "deletecollection" => !resource.namespaced || !target.namespace.is_empty(),
        "get" | "update" | "patch" | "delete" => {
            named && (!resource.namespaced || !target.namespace.is_empty())
        }
        _ => true,
    }
}

/// A patch whose type nobody knows is refused before anybody looks at it. What a strategic merge
/// goes by, custom resources do not have.
fn patch_type(headers: &HeaderMap, scope: &Scope<'_>) -> Result<PatchType, ApiError> {
    let known = PatchType::of(text_header(headers, header::CONTENT_TYPE));
    if scope.custom.is_some() {
        return known.filter(|known| *known != PatchType::StrategicMerge).ok_or_else(|| {
            ApiError::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )
        });
    }

    known.ok_or_else(|| {
        let mut error = ApiError::unsupported_media_type("415: Unsupported Media Type");
        error.details = Some(Box::default());
        error
    })
}

/// A definition that goes takes no new objects.
fn check_terminating(scope: &Scope<'_>, verb: &str) -> Result<(), ApiError> {
    match scope.custom {
        Some((custom, _)) if custom.is_terminating && verb == "create" => {
            let mut error = ApiError::method_not_allowed();
            error.message =
                "create not allowed while custom resource definition is terminating".to_owned();
            Err(error)
        }
        _ => Ok(()),
    }
}

pub(crate) fn has_group(name: &str) -> bool {
    coracle_api::catalog::groups()
        .iter()
        .any(|known| known.name == name)
}

async fn write_body<B: RequestBody>(
    headers: &HeaderMap,
    body: B,
) -> Result<registry::Body, ApiError> {
    let media_type = media_type::body(text_header(headers, header::CONTENT_TYPE))
        .map_err(|refused| ApiError::unsupported_media_type(refused.to_string()))?;
    Ok(registry::Body {
        bytes: read(body).await?,
        media_type,
    })
}

async fn read<B: RequestBody>(body: B) -> Result<Bytes, ApiError> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiError::too_large(MAX_BODY))
        }
        Err(error) if error.is::<NoRoom>() => Err(ApiError::too_many_requests(error.to_string())),
        Err(error) => Err(ApiError::bad_request(format!(
            "the body could not be read: {error}"
        ))),
    }
}

async fn delete_options<B: RequestBody>(
    query: &Query,
    headers: &HeaderMap,
    body: B,
) -> Result<DeleteOptions, ApiError> {
    let bytes = read(body).await?;
    if bytes.is_empty() {
        return DeleteOptions::parse(query, None);
    }
    let media_type = media_type::body(text_header(headers, header::CONTENT_TYPE))
        .map_err(|refused| ApiError::unsupported_media_type(refused.to_string()))?;
    let value = registry::Body { bytes, media_type }.delete_options()?;
    DeleteOptions::parse(query, Some(&value))
}

/// Whether the path answers in anything that the client accepts, at a first look.
fn check_produced(headers: &HeaderMap, verb: &str) -> Result<(), ApiError> {
    let streams = verb == "list" || verb == "watch";
    let produced = if streams {
        &PRODUCED[..]
    } else {
        &PRODUCED[..3]
    };
    media_type::produces(text_header(headers, header::ACCEPT), produced)
        .map_err(|refused| ApiError::not_acceptable_here(refused.to_string()))
}

fn rendering(
    headers: &HeaderMap,
    query: &Query,
    endpoint: Endpoint,
) -> Result<Rendering, ApiError> {
    let user_agent = text_header(headers, header::USER_AGENT);
    Rendering::negotiate(
        text_header(headers, header::ACCEPT),
        query,
        user_agent,
        endpoint,
    )
}

/// Which forms and shapes answers about a resource can have.
fn endpoint(served: &Served, subresource: Option<&Subresource>) -> Endpoint {
    if let Served::Custom(..) = served {
        return Endpoint::Custom;
    }
    let is_listed = || served.resource().verbs.iter().any(|verb| verb == "list");
    match subresource.map_or_else(is_listed, |subresource| subresource.has_table) {
        true => Endpoint::BuiltIn,
        false => Endpoint::WithoutTable,
    }
}

/// What is left to say of an object that is gone.
fn success(entry: &Entry, scope: &Scope<'_>) -> Value {
    let object = entry.value(scope.storage_version.of);
    let details = crate::status::Details {
        name: object.meta().name().to_string(),
        group: scope.resource.group.to_string(),
        kind: scope.resource.plural.to_string(),
        uid: object.meta().uid().to_string(),
        causes: Vec::new(),
    };

    let mut status = coracle_api::Map::new();
    status.insert("apiVersion", "v1");
    status.insert("kind", "Status");
    status.insert("metadata", Value::object());
    status.insert("status", "Success");
    status.insert("details", details.to_map());

    Value::Object(status)
}

fn text_header(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
