//! A request for a resource: calls the registry by verb and renders the response.

use std::sync::Arc;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::catalog::Subresource;
use coracle_api::codec::cbor;
use coracle_api::codec::media_type::PatchType;
use coracle_api::resource_version::ResourceVersion;
use http::{Method, StatusCode};

use super::{Server, body, checks};
use crate::ApiError;
use crate::admission::Warnings;
use crate::answer::{self, Answer};
use crate::cache::Entry;
use crate::registry::{
    Body, Call, Content, DeleteAdmission, Deleted, List, Part, RequiredVersion, Scope, Written,
};
use crate::render::{Rendering, Shown};
use crate::request::{
    DeleteOptions, ListOptions, Query, RequestBody, ResourceRequest, Verb, WriteOptions,
};
use crate::served::Served;

/// A checked request for a served resource, with the form of its response.
pub(super) struct Checked<'a> {
    /// The target of `Deref`.
    request: &'a ResourceRequest<'a>,
    served: &'a Served,
    subresource: Option<&'a Subresource>,
    pub(super) scope: Scope<'a>,
    rendering: Rendering,
}

impl<'a> std::ops::Deref for Checked<'a> {
    type Target = ResourceRequest<'a>;

    fn deref(&self) -> &ResourceRequest<'a> {
        self.request
    }
}

impl<'a> Checked<'a> {
    fn new(request: &'a ResourceRequest<'a>, served: &'a Served) -> Result<Checked<'a>, ApiError> {
        let (target, verb) = (request.target, request.info.verb);
        let resource = served.resource();
        let subresource = checks::subresource(served, target)?;
        let verbs = subresource.map_or(&resource.verbs, |subresource| &subresource.verbs);
        let is_served = verbs.iter().any(|served| served == verb.as_str());

        checks::check_shape(resource, target, verb)?;
        checks::check_has_names(resource, target)?;
        let fits = checks::shape_fits(resource, target, verb);
        if !is_served || !fits || request.head.method == Method::HEAD {
            return Err(ApiError::method_not_allowed());
        }
        checks::check_produced(request)?;

        let namespace = if resource.namespaced {
            target.namespace.as_str()
        } else {
            ""
        };
        let scope = Scope::of(served, namespace, request.caller);

        let rendering = Rendering::negotiate(
            request.accept(),
            request.query,
            request.user_agent(),
            checks::endpoint(served, subresource),
        )?;
        // What could not be answered is refused before anything is written.
        if !verb.is_read() {
            rendering.check(verb == Verb::DeleteCollection, &scope)?;
        }

        Ok(Checked {
            request,
            served,
            subresource,
            scope,
            rendering,
        })
    }

    /// The part of a stored object that is read or written; `None`: a subresource of another kind,
    /// or a resource that is not stored.
    fn part(&self) -> Option<Part> {
        let is_stored = self.served.resource().storage.is_some();
        Part::named(&self.target.subresource).filter(|_| is_stored)
    }
}

impl Server {
    pub(super) async fn handle_resource<B: RequestBody>(
        self: &Arc<Self>,
        request: &ResourceRequest<'_>,
        served: &Served,
        body: B,
    ) -> Result<Answer, ApiError> {
        let request = Checked::new(request, served)?;
        let verb = request.info.verb;
        self.registry.reach(RequiredVersion::before(verb)).await?;

        let Some(part) = request.part() else {
            if request.scope.resource.kind == "ComponentStatus" {
                return Box::pin(self.component_statuses(&request)).await;
            }
            return Box::pin(self.call(&request, body)).await;
        };
        match verb {
            Verb::Get => self.get(&request).await,
            Verb::List => self.list(&request).await,
            Verb::Watch => Box::pin(self.begin_watch(request)).await,
            Verb::Delete => Box::pin(self.delete(&request, body)).await,
            Verb::DeleteCollection => Box::pin(self.delete_collection(&request, body)).await,
            Verb::Create | Verb::Update | Verb::Patch => {
                let written = Box::pin(self.write(&request, part, body)).await?;
                self.written(&written, &request)
            }
            Verb::Method(_) => Err(ApiError::method_not_allowed()),
        }
    }

    async fn get(&self, request: &Checked<'_>) -> Result<Answer, ApiError> {
        let wanted = required_version(request.query)?;
        let name = &request.target.name;
        let entry = self.registry.read(&request.scope, name, wanted).await?;
        self.shown(StatusCode::OK, Shown::Entry(&entry), request)
    }

    async fn list(&self, request: &Checked<'_>) -> Result<Answer, ApiError> {
        let options = ListOptions::parse(request.query)?;
        let list = self.registry.list(&request.scope, &options).await?;
        self.listed(list, request)
    }

    async fn begin_watch(self: &Arc<Self>, request: Checked<'_>) -> Result<Answer, ApiError> {
        let mut options = ListOptions::parse(request.query)?;
        if request.target.old_style_watch {
            options.only_object(&request.target.name)?;
        }

        let Checked {
            request,
            served,
            scope,
            rendering,
            ..
        } = request;
        self.watch(
            &scope,
            served,
            &options,
            rendering,
            &request.head.extensions,
        )
        .await
    }

    async fn delete<B: RequestBody>(
        &self,
        request: &Checked<'_>,
        body: B,
    ) -> Result<Answer, ApiError> {
        let options = self.delete_options(request, body).await?;
        let (scope, name) = (&request.scope, &request.target.name);
        let warnings = Warnings::default();
        let deleted = self.registry.delete(scope, name, &options, &warnings).await;

        let mut notices = scope.delete_notices(&options);
        notices.extend(warnings.take());
        let deleted = deleted.map_err(|refused| refused.after(notices.clone()))?;
        let answer = self.deleted(&deleted, request)?;
        Ok(answer::with_warnings(answer, &notices))
    }

    async fn delete_collection<B: RequestBody>(
        &self,
        request: &Checked<'_>,
        body: B,
    ) -> Result<Answer, ApiError> {
        let options = self.delete_options(request, body).await?;
        let selected = ListOptions::parse(request.query)?;
        let scope = &request.scope;
        let warnings = Warnings::default();
        let list = self
            .registry
            .delete_collection(
                scope,
                &selected,
                &options,
                DeleteAdmission::As("", &warnings),
            )
            .await;

        let mut notices = scope.delete_notices(&options);
        notices.extend(warnings.take());
        let list = list.map_err(|refused| refused.after(notices.clone()))?;
        let answer = self.listed(list, request)?;
        Ok(answer::with_warnings(answer, &notices))
    }

    /// The options of a delete: its body, or else its query.
    async fn delete_options<B: RequestBody>(
        &self,
        request: &Checked<'_>,
        body: B,
    ) -> Result<DeleteOptions, ApiError> {
        let bytes = self.read_body(request, body).await?;
        body::delete_options(request, bytes)
    }

    /// The options and the body of a write. Options are refused before the body is read.
    async fn written_content<B: RequestBody>(
        &self,
        request: &Checked<'_>,
        body: B,
    ) -> Result<(WriteOptions, Content), ApiError> {
        let parse = |kind, apply| WriteOptions::parse(request.query, kind, apply);

        match request.info.verb {
            verb @ (Verb::Create | Verb::Update) => {
                let options = match verb {
                    Verb::Create => parse("CreateOptions", false)?,
                    _ => parse("UpdateOptions", false)?,
                };
                let media_type = body::media_type(request)?;
                let bytes = self.read_body(request, body).await?;
                Ok((options, Content::Object(Body { bytes, media_type })))
            }
            Verb::Patch => {
                let kind = checks::patch_type(request, &request.scope)?;
                let options = parse("PatchOptions", kind.is_apply())?;
                let bytes = self.read_body(request, body).await?;

                let patch = match kind {
                    PatchType::ApplyCbor => {
                        Content::Patch(PatchType::Apply, configuration(&bytes)?)
                    }
                    kind => Content::Patch(kind, bytes),
                };
                Ok((options, patch))
            }
            _ => Ok((WriteOptions::default(), Content::Nothing)),
        }
    }

    async fn read_body<B: RequestBody>(
        &self,
        request: &Checked<'_>,
        body: B,
    ) -> Result<Bytes, ApiError> {
        let bytes = body::read(body).await?;
        let verb = match request.info.verb {
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::DeleteCollection => "delete_collection",
            _ => "delete",
        };
        self.metrics.read_body(request.served, verb, bytes.len());
        Ok(bytes)
    }

    /// Create, update and patch of a stored object.
    async fn write<B: RequestBody>(
        &self,
        request: &Checked<'_>,
        part: Part,
        body: B,
    ) -> Result<Written, ApiError> {
        let (options, content) = self.written_content(request, body).await?;
        let (scope, name) = (&request.scope, request.target.name.as_str());
        let registry = &self.registry;

        match content {
            Content::Object(body) if request.info.verb == Verb::Create => {
                registry.create(scope, &body, &options).await
            }
            Content::Object(body) => registry.update(scope, name, part, &body, &options).await,
            Content::Patch(PatchType::Apply, body) => {
                registry.apply(scope, name, part, &body, &options).await
            }
            Content::Patch(kind, body) => {
                registry
                    .patch(scope, name, part, kind, &body, &options)
                    .await
            }
            Content::Nothing => Err(ApiError::method_not_allowed()),
        }
    }

    /// A request to a subresource of another kind, or to a resource that is not stored.
    async fn call<B: RequestBody>(
        &self,
        request: &Checked<'_>,
        body: B,
    ) -> Result<Answer, ApiError> {
        let (options, content) = self.written_content(request, body).await?;
        let call = Call {
            registry: &self.registry,
            parent: request.scope,
            scope: request.scope.with_kind_of(request.subresource),
            name: request.target.name.as_str(),
            subresource: request.target.subresource.as_str(),
            verb: request.info.verb,
            options,
            content,
        };

        let reply = call.serve().await?;
        let shown = Shown::Tree(&reply.object);
        let answer = self.shown_as(reply.code, shown, &call.scope, &request.rendering)?;
        Ok(answer::with_warnings(answer, &reply.warnings))
    }

    fn written(&self, written: &Written, request: &Checked<'_>) -> Result<Answer, ApiError> {
        let status = if written.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };

        let answer = self.shown(status, Shown::Entry(&written.entry), request)?;
        Ok(answer::with_warnings(answer, &written.warnings))
    }

    /// The object after a delete, or a Status if it is removed.
    fn deleted(&self, deleted: &Deleted, request: &Checked<'_>) -> Result<Answer, ApiError> {
        let (Deleted::Pending(entry) | Deleted::Shown(entry) | Deleted::Gone(entry)) = deleted;
        let success = matches!(deleted, Deleted::Gone(_)).then(|| success(entry, &request.scope));
        let shown = success.as_ref().map_or(Shown::Entry(entry), Shown::Tree);
        self.shown(StatusCode::OK, shown, request)
    }

    pub(super) fn listed(&self, list: List, request: &Checked<'_>) -> Result<Answer, ApiError> {
        let rendering = &request.rendering;
        let media_type = rendering.form.media_type.as_str();
        let gzip = answer::takes_gzip(&request.head.headers);
        let now = (self.registry.now)();

        match rendering.long_list(list, request.served, gzip, now) {
            Ok(pieces) => Ok(answer::pieces(media_type, pieces?, gzip)),
            Err(list) => {
                let content = rendering.list(&list, &request.scope, now)?;
                Ok(answer::bytes(StatusCode::OK, media_type, content))
            }
        }
    }

    pub(super) fn shown(
        &self,
        status: StatusCode,
        shown: Shown<'_>,
        request: &Checked<'_>,
    ) -> Result<Answer, ApiError> {
        self.shown_as(status, shown, &request.scope, &request.rendering)
    }

    fn shown_as(
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
}

/// An apply configuration in CBOR, as JSON.
fn configuration(body: &[u8]) -> Result<Bytes, ApiError> {
    let text = cbor::to_json(body);
    let text = text.map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")));
    text.map(Bytes::from)
}

/// The least version that a get accepts.
fn required_version(query: &Query) -> Result<RequiredVersion, ApiError> {
    let text = query.get("resourceVersion").unwrap_or_default();
    let version = text.parse::<ResourceVersion>();
    let version = version.map_err(|error| ApiError::unexplained(error.to_string()))?;
    Ok(RequiredVersion::version(!text.is_empty(), version.0))
}

/// The Status of an object that was removed.
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
