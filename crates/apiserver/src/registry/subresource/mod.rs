//! Requests that are not a read or write of a stored object: subresources with a kind of their own
//! (`binding`, `eviction`, `scale`, `token`), and resources whose objects are answered and not
//! stored (reviews).
//!
//! The handler of the path has parsed the request and read its body into a [`Call`]; [`Call::serve`]
//! runs the handler that the kind's behaviour names. It returns a [`Reply`] or a refusal. Handlers
//! change objects through the registry, like any other write.

mod access_review;
mod binding;
mod eviction;
mod review;
mod rules_review;
mod scale;
mod self_subject_review;
mod token_request;
mod token_review;

use bytes::Bytes;
use coracle_api::codec::media_type::PatchType;
use coracle_api::{Map, Value};
use coracle_kinds::{ApiError, Handler};
use http::StatusCode;

use super::{Body, Registry, Scope, patch};
use crate::request::{Verb, WriteOptions};

/// A request of this sort.
pub struct Call<'a> {
    pub registry: &'a Registry,
    /// The resource of the path.
    pub parent: Scope<'a>,
    /// The same with the kind of its subresource, which is that of bodies and responses.
    pub scope: Scope<'a>,
    /// Of the object; empty where the path names none.
    pub name: &'a str,
    /// Empty: the resource itself.
    pub subresource: &'a str,
    pub verb: Verb,
    pub options: WriteOptions,
    pub content: Content,
}

/// What a call brings.
pub enum Content {
    Nothing,
    Object(Body),
    Patch(PatchType, Bytes),
}

/// What a call is answered with.
pub struct Reply {
    pub code: StatusCode,
    pub object: Value,
    pub warnings: Vec<String>,
}

impl Call<'_> {
    /// Runs the handler of the request. `scale` is served for every kind that has it; the other
    /// handlers are those that the kind's line in the table of kinds names.
    pub async fn serve(&self) -> Result<Reply, ApiError> {
        let handler = match (self.subresource, self.verb) {
            ("scale", Verb::Get | Verb::Update | Verb::Patch) => return scale::serve(self).await,
            (subresource, Verb::Create) => self.scope.behaviour.handler(subresource),
            _ => None,
        };

        match handler.ok_or_else(ApiError::no_such_resource)? {
            Handler::Binding => binding::create(self).await,
            Handler::Eviction => eviction::create(self).await,
            Handler::TokenRequest => token_request::create(self).await,
            Handler::TokenReview => token_review::create(self).await,
            Handler::SelfSubjectReview => self_subject_review::create(self).await,
            Handler::AccessReview => access_review::create(self).await,
            Handler::RulesReview => rules_review::create(self).await,
        }
    }

    /// The object that was sent, or the result of a patch on `current`, and warnings for the
    /// client. Apply is not handled here: it needs the field owners.
    pub fn object(&self, current: Option<&Value>) -> Result<(Value, Vec<String>), ApiError> {
        match (&self.content, current) {
            (Content::Object(body), _) => body.object(&self.scope, self.options.field_validation),
            (Content::Patch(kind, body), Some(current)) if *kind != PatchType::Apply => {
                patch::patched(
                    *kind,
                    body,
                    current,
                    &self.scope,
                    self.options.field_validation,
                    self.registry.now,
                )
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

impl Reply {
    /// Success without an object to return.
    pub fn created(warnings: Vec<String>) -> Reply {
        let mut status = Map::new();
        status.insert("apiVersion", "v1");
        status.insert("kind", "Status");
        status.insert("metadata", Value::object());
        status.insert("status", "Success");
        status.insert("code", i64::from(StatusCode::CREATED.as_u16()));
        Reply {
            code: StatusCode::CREATED,
            object: Value::Object(status),
            warnings,
        }
    }
}
