//! One webhook and one request: whether it is concerned, and what it says.

use std::sync::Arc;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::go_text::Quoted;
use coracle_expressions::admission::{Matched, Variables};
use coracle_kinds::ApiError;
use http::StatusCode;
use tokio::time::Instant;
use tracing::warn;

use super::metrics::{Called, WebhookMetrics};
use super::review::{self, BadAnswer, Objects, Response, ReviewVersion};
use super::source::Hook;
use crate::admission::expressions::{Asking, Seen};
use crate::admission::matching::{Match, Question};
use crate::admission::{Attributes, Setup};
use crate::authz::Authorization;
use crate::webhook::{CallError, Webhooks};

/// How large an answer may be beside what was sent.
const ROOM: usize = 8 << 20;

/// Why a webhook does not admit a request.
#[derive(Debug)]
pub(super) enum Failed {
    /// It was not called, or its answer is of no use: what follows is up to its failure policy.
    Call(CallError),
    /// It refuses the request.
    Refused(ApiError),
    /// It cannot be asked about this request, or what it wants cannot be done.
    Internal(ApiError),
}

/// Calls the webhooks of one plugin.
pub(super) struct Caller {
    webhooks: Arc<Webhooks>,
    authorization: Authorization,
    metrics: WebhookMetrics,
    /// Whether it changes objects.
    mutates: bool,
}

impl Caller {
    pub(super) fn new(setup: &Setup<'_>, mutates: bool) -> Caller {
        let webhooks = match mutates {
            true => setup.mutating_webhooks,
            false => setup.validating_webhooks,
        };
        Caller {
            webhooks: webhooks.clone(),
            authorization: setup.authorization.clone(),
            metrics: WebhookMetrics::new(setup.metrics),
            mutates,
        }
    }

    /// The type of admission, as upstream's metrics have it.
    fn of(&self) -> &'static str {
        if self.mutates { "admit" } else { "validating" }
    }

    /// Whether a webhook is asked about a request, and about which kind.
    ///
    /// # Errors
    /// That cannot be found out.
    pub(super) async fn concerns<'a>(
        &self,
        hook: &Hook,
        question: &Question<'a>,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Match<'a>>, ApiError> {
        let Some(matched) = hook.criteria.matches(question)? else {
            return Ok(None);
        };
        if hook.conditions.is_empty() {
            return Ok(Some(matched));
        }

        let began = Instant::now();
        let seen = Seen::of(attributes, object, matched, question).await?;
        let asking = Asking::new(&self.authorization, attributes.cx.user);
        let variables = Variables::default();
        let result = asking
            .settle(|authorize| {
                let inputs = seen.inputs(None, authorize);
                hook.conditions.hold(&inputs, &variables)
            })
            .await
            .unwrap_or_else(|stopped| Matched::Failed(stopped.to_string()));

        let outcome = match &result {
            Matched::Yes => "included",
            Matched::No(_) => "excluded",
            Matched::Failed(_) => "failed",
        };
        let of = if self.mutates { "admit" } else { "validate" };
        let operation = attributes.operation;
        self.metrics
            .conditions(&hook.name, operation, of, began.elapsed(), outcome);

        match result {
            Matched::Yes => Ok(Some(matched)),
            Matched::No(_) => Ok(None),
            Matched::Failed(_) if hook.fails_open => Ok(None),
            Matched::Failed(why) => {
                let (resource, name) = (attributes.cx.resource, attributes.name);
                Err(ApiError::forbidden(resource, name, &why))
            }
        }
    }

    /// Asks a webhook, and counts it.
    pub(super) async fn ask<T>(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        work: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, Failed> {
        let began = Instant::now();
        let result = work.await;
        let called = Called {
            name: &hook.name,
            operation: attributes.operation,
            of: self.of(),
            fails_open: hook.fails_open,
        };
        self.metrics
            .called(&called, began.elapsed(), result.as_ref().err());
        result
    }

    /// What a webhook says of the objects of a request.
    pub(super) async fn call(
        &self,
        hook: &Hook,
        attributes: &Attributes<'_>,
        matched: Match<'_>,
        objects: &Objects<'_>,
    ) -> Result<Response, Failed> {
        if attributes.cx.dry_run {
            check_dry_run(hook)?;
        }

        let version = ReviewVersion::of(&hook.review_versions).ok_or_else(|| {
            let why = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            let why = format!("could not create admission objects: {why}");
            Failed::Call(CallError::new(StatusCode::BAD_REQUEST, why))
        })?;
        let uid = self.webhooks.world().uid().to_string();
        let body = Bytes::from(review::request(version, &uid, attributes, matched, objects));

        let client = self.webhooks.client(&hook.client).await.map_err(|why| {
            let why = format!("could not get REST client: {why}");
            Failed::Call(CallError::new(StatusCode::INTERNAL_SERVER_ERROR, why))
        })?;
        let limit = body.len().saturating_mul(2).saturating_add(ROOM);
        let not_called = |why: &str, code| {
            Failed::Call(CallError {
                message: format!("failed to call webhook: {why}"),
                code,
            })
        };
        let answer = client.post(body, hook.timeout, limit).await;
        let answer = answer.map_err(|error| not_called(&error.message, error.code))?;

        let response = review::response(&answer, version, &uid, self.mutates);
        let response = response.map_err(|bad| match bad {
            BadAnswer::Undecodable(why) => not_called(&why, 503),
            BadAnswer::Invalid(why) => Failed::Call(CallError {
                message: format!("received invalid webhook response: {why}"),
                code: 503,
            }),
        })?;

        for (key, value) in &response.annotations {
            let key = format!("{}/{key}", hook.name);
            attributes.notes.audit.add(&key, value);
        }
        for warning in &response.warnings {
            attributes.notes.warnings.add(warning.clone());
        }

        match response.allowed {
            true => Ok(response),
            false => Err(Failed::Refused(review::refused(
                &hook.name,
                response.result,
            ))),
        }
    }

    /// What follows from a failure: the error of the request, or nothing where the webhook fails open.
    pub(super) fn follow(&self, hook: &Hook, failed: Failed) -> Result<Ignored, ApiError> {
        match failed {
            Failed::Call(error) => {
                let why = format!(
                    "failed calling webhook {}: {}",
                    Quoted(&hook.name),
                    error.message
                );
                if hook.fails_open {
                    warn!(
                        webhook = hook.name,
                        error = why,
                        "webhook failed, ignoring it"
                    );
                    return Ok(Ignored);
                }
                warn!(
                    webhook = hook.name,
                    error = why,
                    "webhook failed, refusing the request"
                );
                Err(ApiError::internal(why))
            }
            Failed::Refused(error) | Failed::Internal(error) => Err(error),
        }
    }
}

/// A failure of a webhook that fails open.
pub(super) struct Ignored;

/// A webhook with side effects must not see a dry run.
fn check_dry_run(hook: &Hook) -> Result<(), Failed> {
    match hook.side_effects.as_deref() {
        Some("None" | "NoneOnDryRun") => Ok(()),
        None => Err(Failed::Call(CallError::new(
            StatusCode::BAD_REQUEST,
            "Webhook SideEffects is nil",
        ))),
        Some(_) => Err(Failed::Internal(ApiError::bad_request(format!(
            "admission webhook {} does not support dry run",
            Quoted(&hook.name)
        )))),
    }
}

/// The objects of a request as a webhook sees them.
pub(super) async fn objects<'a>(
    attributes: &'a Attributes<'_>,
    object: Option<&'a Value>,
    matched: Match<'_>,
) -> Result<Objects<'a>, ApiError> {
    let shown = async |object: Option<&'a Value>| match object {
        None => Ok(None),
        Some(object) => attributes.shown(object, matched.kind).await.map(Some),
    };
    Ok(Objects {
        object: shown(object).await?,
        old: shown(attributes.old).await?,
    })
}
