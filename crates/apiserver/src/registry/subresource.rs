//! Requests that the road of an object does not serve: subresources with a kind of their own
//! (`binding`, `eviction`), and resources that are answered without being kept (`bindings`).
//!
//! The handler has taken the request apart and read its body into a [`Call`]; [`Call::serve`] is
//! the table of who answers it. What comes back is a [`Reply`], or a refusal. Whoever changes an
//! object on the way does so through the registry, like everybody.

use bytes::Bytes;
use coracle_api::codec::media_type::PatchType;
use coracle_api::{Map, Value};
use http::StatusCode;

use super::core::{self, pod};
use super::{Body, Registry, Scope, authentication, authorization, patch, scale};
use crate::ApiError;
use crate::request::{Verb, WriteOptions};

/// A request of this sort.
pub struct Call<'a> {
    pub registry: &'a Registry,
    /// The resource of the path.
    pub parent: Scope<'a>,
    /// The same with the kind of its subresource: bodies and answers are of that.
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
    /// Who answers what.
    pub async fn serve(&self) -> Result<Reply, ApiError> {
        let resource = self.scope.resource;
        match (
            resource.group.as_str(),
            resource.plural.as_str(),
            self.subresource,
            self.verb,
        ) {
            ("", "pods", "binding", Verb::Create) | ("", "bindings", "", Verb::Create) => {
                pod::binding::create(self).await
            }
            ("", "pods", "eviction", Verb::Create) => pod::eviction::create(self).await,
            (_, _, "scale", Verb::Get | Verb::Update | Verb::Patch) => scale::serve(self).await,
            ("", "serviceaccounts", "token", Verb::Create) => {
                core::token_request::create(self).await
            }
            (
                "authorization.k8s.io",
                "subjectaccessreviews" | "localsubjectaccessreviews" | "selfsubjectaccessreviews",
                "",
                Verb::Create,
            ) => authorization::access_review::create(self).await,
            ("authorization.k8s.io", "selfsubjectrulesreviews", "", Verb::Create) => {
                authorization::rules_review::create(self).await
            }
            ("authentication.k8s.io", "selfsubjectreviews", "", Verb::Create) => {
                authentication::self_subject_review::create(self).await
            }
            ("authentication.k8s.io", "tokenreviews", "", Verb::Create) => {
                authentication::token_review::create(self).await
            }
            _ => Err(ApiError::no_such_resource()),
        }
    }

    /// The object that was sent, or that a patch makes of `current`, and what the client is to be
    /// warned of. Configurations to apply are for whoever knows the owners.
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
    /// Something was done, and there is nothing to show for it.
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
