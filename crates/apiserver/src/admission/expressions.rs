//! What expressions of policies and webhooks see of a request, and how they ask the authorizer.
//!
//! [`Seen`] holds the values, in the version that a policy or webhook wants to see. [`Asking`] answers
//! authorization checks: most authorizers answer at once; where one asks somewhere else,
//! [`Asking::settle`] waits for its answer and evaluates again.

use std::borrow::Cow;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::catalog::{Kind, Resource};
use coracle_api::selector::FieldSelector;
use coracle_cel::eval::{Answer, Authorize};
use coracle_cel::value::{Authorizer, Check, Request, Verdict};
use coracle_expressions::admission::{
    Answers, Inputs, RequestFacts, Stopped, UserFacts, namespace_object,
};
use coracle_kinds::access::{AccessTarget, Attributes as AccessAttributes, ResourceTarget};
use coracle_kinds::{ApiError, User, builtin, service_account_groups};
use futures_util::FutureExt as _;
use tokio::sync::Semaphore;

use super::Attributes;
use super::matching::{Match, Question};
use crate::aside::aside;
use crate::authz::{Authorization, Decision};

/// The values that expressions see.
pub struct Seen<'a> {
    object: Option<Cow<'a, Value>>,
    old: Option<Cow<'a, Value>>,
    request: Value,
    request_resource: Arc<Check>,
    namespace: Option<Value>,
}

impl<'a> Seen<'a> {
    /// Of a request that matches as `matched`.
    ///
    /// # Errors
    /// An object cannot be converted, or the namespace does not exist.
    pub async fn of(
        attributes: &'a Attributes<'a>,
        object: Option<&'a Value>,
        matched: Match<'_>,
        question: &Question<'_>,
    ) -> Result<Seen<'a>, ApiError> {
        let options = attributes.options.object();
        let cx = &attributes.cx;
        let facts = RequestFacts {
            kind: kind_names(matched.kind),
            resource: resource_names(matched.resource),
            request_kind: kind_names(cx.kind),
            request_resource: resource_names(cx.resource),
            subresource: attributes.subresource,
            name: attributes.name,
            namespace: attributes.namespace(),
            operation: attributes.operation.as_str(),
            user: UserFacts {
                name: &cx.user.name,
                uid: &cx.user.uid,
                groups: &cx.user.groups,
                extra: &cx.user.extra,
            },
            dry_run: cx.dry_run,
            options: options.as_ref(),
        };

        let shown = async |object: Option<&'a Value>| match object {
            None => Ok(None),
            Some(object) => attributes.shown(object, matched.kind).await.map(Some),
        };
        Ok(Seen {
            object: shown(object).await?,
            old: shown(attributes.old).await?,
            request: facts.object(),
            request_resource: facts.request_resource(),
            namespace: namespace(attributes, question)?.map(|found| namespace_object(found)),
        })
    }

    /// For expressions with parameters, or without.
    pub fn inputs<'s>(
        &'s self,
        params: Option<&'s Value>,
        authorize: &'s Authorize<'s>,
    ) -> Inputs<'s> {
        Inputs {
            object: self.object.as_deref(),
            old_object: self.old.as_deref(),
            request: &self.request,
            namespace_object: self.namespace.as_ref(),
            params,
            request_resource: &self.request_resource,
            authorize,
        }
    }

    /// The object as it is shown to expressions; absent on a delete.
    pub fn object(&self) -> Option<&Value> {
        self.object.as_deref()
    }
}

/// The namespace that expressions see as `namespaceObject`: a namespace itself has none.
///
/// # Errors
/// It does not exist.
pub fn namespace<'q>(
    attributes: &Attributes<'_>,
    question: &'q Question<'_>,
) -> Result<Option<&'q Arc<Value>>, ApiError> {
    let is_namespace =
        attributes.cx.kind.group.is_empty() && attributes.cx.kind.name == "Namespace";
    if is_namespace || attributes.namespace().is_empty() {
        return Ok(None);
    }
    let name = attributes.namespace();
    let found = question.namespace();
    found
        .map(Some)
        .ok_or_else(|| ApiError::not_found(builtin("", "v1", "namespaces"), name))
}

fn kind_names(kind: &Kind) -> [&str; 3] {
    [&kind.group, &kind.version, &kind.name]
}

fn resource_names(resource: &Resource) -> [&str; 3] {
    [&resource.group, &resource.version, &resource.plural]
}

/// The authorizer, as the expressions of one request ask it. Each question is answered once.
pub struct Asking<'a> {
    authorization: &'a Authorization,
    user: &'a User,
    answers: Answers,
}

impl<'a> Asking<'a> {
    pub fn new(authorization: &'a Authorization, user: &'a User) -> Asking<'a> {
        Asking {
            authorization,
            user,
            answers: Answers::default(),
        }
    }

    /// Evaluates until every authorization check is answered.
    ///
    /// # Errors
    /// Those of `work`, but never [`Stopped::Pending`].
    pub async fn settle<T>(
        &self,
        work: impl Fn(&Authorize<'_>) -> Result<T, Stopped>,
    ) -> Result<T, Stopped> {
        loop {
            match work(&|check| self.answer(check)) {
                Err(Stopped::Pending(check)) => self.ask(&check).await,
                settled => return settled,
            }
        }
    }

    /// The same for work that may take long: it leaves its worker thread to other requests, and
    /// waits for a permit.
    ///
    /// # Errors
    /// Those of `work`, but never [`Stopped::Pending`].
    pub async fn settle_aside<T>(
        &self,
        permits: &Semaphore,
        work: impl Fn(&Authorize<'_>) -> Result<T, Stopped>,
    ) -> Result<T, Stopped> {
        loop {
            let permit = permits.acquire().await;
            let result = aside(|| work(&|check| self.answer(check)));
            drop(permit);
            match result {
                Err(Stopped::Pending(check)) => self.ask(&check).await,
                settled => return settled,
            }
        }
    }

    async fn ask(&self, check: &Arc<Check>) {
        let verdict = self.decide(check).await;
        self.answers.add(Check::clone(check), verdict);
    }

    fn answer(&self, check: &Check) -> Answer {
        let known = self.answers.get(check);
        if let Answer::Decided(_) = known {
            return known;
        }
        match self.decide(check).now_or_never() {
            None => Answer::Later,
            Some(verdict) => {
                self.answers.add(check.clone(), verdict.clone());
                Answer::Decided(verdict)
            }
        }
    }

    async fn decide(&self, check: &Check) -> Verdict {
        let account;
        let user = match &check.user {
            Authorizer::Requester => self.user,
            Authorizer::ServiceAccount { namespace, name } => {
                account = service_account(namespace, name);
                &account
            }
        };
        let target = match &check.request {
            Request::Path(path) => AccessTarget::Path(path),
            Request::Resource {
                group,
                resource,
                subresource,
                namespace,
                name,
                field_selector,
                ..
            } => AccessTarget::Resource(ResourceTarget {
                group,
                version: "*",
                resource,
                subresource,
                namespace,
                name,
                // One that cannot be parsed restricts nothing.
                field_selector: match field_selector.parse::<FieldSelector>() {
                    Ok(_) => field_selector,
                    Err(_) => "",
                },
            }),
        };

        let verb = check.verb.as_str();
        let attributes = AccessAttributes { user, verb, target };
        let (allowed, reason) = match self.authorization.decide(&attributes).await {
            Decision::Allow(grant) => (true, grant.reason(user).to_string()),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => (false, reason),
        };
        Verdict {
            allowed,
            reason,
            error: None,
        }
    }
}

fn service_account(namespace: &str, name: &str) -> User {
    User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        groups: service_account_groups(namespace).to_vec(),
        ..User::default()
    }
}
