//! Validating webhooks: all that are concerned are called at the same time.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::ApiError;
use futures_util::future::join_all;

use super::call::{Caller, objects};
use super::source::{Hook, Source};
use crate::admission::matching::{Match, Question, is_exempt_from_webhooks};
use crate::admission::{Attributes, Operation, Plugin, Setup};

pub(in crate::admission) struct ValidatingAdmissionWebhook {
    source: Source,
    caller: Caller,
}

impl ValidatingAdmissionWebhook {
    pub(in crate::admission) fn make(setup: &Setup<'_>) -> Arc<dyn Plugin> {
        Arc::new(ValidatingAdmissionWebhook {
            source: Source::new(setup.caches, "validatingwebhookconfigurations"),
            caller: Caller::new(setup, false),
        })
    }

    /// `place`: among the webhooks that are concerned.
    async fn ask(
        &self,
        place: usize,
        hook: &Hook,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        matched: Match<'_>,
    ) -> Result<(), ApiError> {
        let objects = objects(attributes, object, matched)
            .await
            .map_err(|error| ApiError::internal(error.message))?;
        let call = self.caller.call(hook, attributes, matched, &objects);
        let Err(failed) = self.caller.ask(hook, attributes, call).await else {
            return Ok(());
        };

        self.caller.follow(hook, failed)?;
        let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{place}");
        attributes.notes.audit.add(&key, &hook.name);
        Ok(())
    }
}

#[async_trait]
impl Plugin for ValidatingAdmissionWebhook {
    fn handles(&self, _: Operation) -> bool {
        true
    }

    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        if is_exempt_from_webhooks(attributes) {
            return Ok(());
        }
        let hooks = self.source.hooks();
        if hooks.is_empty() {
            return Ok(());
        }

        let question = Question::new(attributes, object);
        let mut concerned: Vec<(&Hook, Match<'_>)> = Vec::new();
        for hook in hooks.iter() {
            let matched = self.caller.concerns(hook, &question, attributes, object);
            concerned.extend(matched.await?.map(|matched| (&**hook, matched)));
        }

        let calls = concerned
            .into_iter()
            .enumerate()
            .map(|(place, (hook, matched))| self.ask(place, hook, attributes, object, matched));
        join_all(calls).await.into_iter().collect()
    }
}
