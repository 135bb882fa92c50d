//! Mutating webhooks: one after the other, each sees what the one before has made.
//!
//! A webhook that wants it is called once more in the second run of the chain, if the object was
//! changed after its call.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::catalog::Kind;
use coracle_api::codec::json;
use coracle_api::go_text::Quoted;
use coracle_api::patch::json as json_patch;
use coracle_api::{Map, Value};
use coracle_kinds::ApiError;
use http::StatusCode;

use super::call::{Caller, Failed, objects};
use super::review::Response;
use super::source::{Hook, Source};
use crate::admission::invoked::Invoked;
use crate::admission::matching::{Match, Question, is_exempt_from_webhooks};
use crate::admission::{Attributes, Operation, Plugin, Setup, patched};
use crate::webhook::CallError;

const NAME: &str = "MutatingAdmissionWebhook";

pub(in crate::admission) struct MutatingAdmissionWebhook {
    source: Source,
    caller: Caller,
}

impl MutatingAdmissionWebhook {
    pub(in crate::admission) fn make(setup: &Setup<'_>) -> Arc<dyn Plugin> {
        Arc::new(MutatingAdmissionWebhook {
            source: Source::new(setup.caches, "mutatingwebhookconfigurations"),
            caller: Caller::new(setup, true),
        })
    }

    /// Calls one webhook, whose patch changes the object; `place`: among all webhooks.
    async fn call(
        &self,
        place: usize,
        hook: &Hook,
        object: &mut Value,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let reinvocation = &attributes.notes.reinvocation;
        let question_object = (!object.is_null()).then_some(&*object);
        let question = Question::new(attributes, question_object);
        let concerned = self
            .caller
            .concerns(hook, &question, attributes, question_object);
        let Some(matched) = concerned.await? else {
            return Ok(());
        };

        // A webhook that was not concerned in the first run is not called in the second.
        let is_called = !reinvocation.is_second()
            || reinvocation.remembered(NAME, |invoked: &mut Invoked| invoked.is_due(&hook.uid));
        if !is_called {
            return Ok(());
        }

        let notes = Annotations {
            hook,
            attributes,
            place: format!("round_{}_index_{place}", u8::from(reinvocation.is_second())),
        };
        let asked = self.patched(hook, object, attributes, matched, &notes);
        let result = self.caller.ask(hook, attributes, asked).await;

        let new = result.as_ref().ok().and_then(Option::as_ref);
        let changed = new.is_some_and(|new| new != object);
        notes.mutated(changed);
        reinvocation.remembered(NAME, |invoked: &mut Invoked| {
            if changed {
                invoked.changed();
            }
            if hook.is_reinvocable {
                invoked.add(&hook.uid);
            }
        });
        if changed {
            reinvocation.request();
        }

        match result {
            Ok(Some(new)) => *object = new,
            Ok(None) => {}
            Err(failed) => {
                self.caller.follow(hook, failed)?;
                notes.failed_open();
            }
        }
        Ok(())
    }

    /// The object as the webhook wants it; `None`: as it is.
    async fn patched(
        &self,
        hook: &Hook,
        object: &Value,
        attributes: &Attributes<'_>,
        matched: Match<'_>,
        notes: &Annotations<'_>,
    ) -> Result<Option<Value>, Failed> {
        let given = (!object.is_null()).then_some(object);
        let objects = objects(attributes, given, matched)
            .await
            .map_err(|error| Failed::Internal(ApiError::internal(error.message)))?;
        let response = self.caller.call(hook, attributes, matched, &objects);
        let Some(patch) = patch(&response.await?)? else {
            return Ok(None);
        };

        let shown = objects.object.ok_or_else(|| {
            internal(format!(
                "admission webhook {} attempted to modify the object, which is not supported for this operation",
                Quoted(&hook.name)
            ))
        })?;
        let new = applied(&patch.patch, &shown, attributes, matched.kind).map_err(internal)?;
        notes.patched(&patch.text);

        let new = attributes.taken_in(new, matched.kind).await;
        new.map(Some).map_err(Failed::Internal)
    }
}

#[async_trait]
impl Plugin for MutatingAdmissionWebhook {
    fn handles(&self, _: Operation) -> bool {
        true
    }

    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if is_exempt_from_webhooks(attributes) {
            return Ok(());
        }
        let hooks = self.source.hooks();
        if hooks.is_empty() {
            return Ok(());
        }

        let reinvocation = &attributes.notes.reinvocation;
        if reinvocation.is_second() {
            reinvocation.remembered(NAME, |invoked: &mut Invoked| {
                invoked.compare(object);
            });
        }

        for (place, hook) in hooks.iter().enumerate() {
            self.call(place, hook, object, attributes).await?;
        }

        reinvocation.remembered(NAME, |invoked: &mut Invoked| {
            invoked.end(object);
        });
        Ok(())
    }
}

fn internal(why: String) -> Failed {
    Failed::Internal(ApiError::internal(why))
}

struct Patch {
    patch: json_patch::Patch,
    /// As the webhook sent it.
    text: Vec<u8>,
}

/// The patch of a response, if it has operations.
fn patch(response: &Response) -> Result<Option<Patch>, Failed> {
    if response.patch.is_empty() {
        return Ok(None);
    }
    let unusable = |why: String| Failed::Call(CallError::new(StatusCode::SERVICE_UNAVAILABLE, why));

    let patch = json_patch::decode_lenient(&response.patch).map_err(|error| {
        unusable(format!(
            "received undecodable patch in webhook response: {error}"
        ))
    })?;
    if patch.is_empty() {
        return Ok(None);
    }
    if response.patch_type != "JSONPatch" {
        let of = Quoted(&response.patch_type);
        return Err(unusable(format!("unsupported patch type {of}")));
    }

    Ok(Some(Patch {
        patch,
        text: response.patch.clone(),
    }))
}

/// A patched object, decoded by its type, which must be the same.
fn applied(
    patch: &json_patch::Patch,
    shown: &Value,
    attributes: &Attributes<'_>,
    kind: &Kind,
) -> Result<Value, String> {
    let text = json::to_vec(shown);
    let literal = json::parse_literal(&text).map_err(|error| error.to_string())?;
    let patched = patch.apply(literal).map_err(|error| error.to_string())?;
    patched::decode(&patched, attributes, kind).map(|decoded| decoded.value)
}

/// Annotations of one call in the audit log.
struct Annotations<'a> {
    hook: &'a Hook,
    attributes: &'a Attributes<'a>,
    /// The round and the place of the webhook.
    place: String,
}

impl Annotations<'_> {
    fn mutated(&self, mutated: bool) {
        let mut value = self.about();
        value.insert("mutated", mutated);
        self.add("mutation.webhook.admission.k8s.io", value);
    }

    fn patched(&self, patch: &[u8]) {
        let mut value = self.about();
        let patch = json::parse(patch).unwrap_or(Value::Null);
        value.insert("patch", patch);
        value.insert("patchType", "JSONPatch");
        self.add("patch.webhook.admission.k8s.io", value);
    }

    fn failed_open(&self) {
        let prefix = "failed-open.mutation.webhook.admission.k8s.io";
        let key = format!("{prefix}/{}", self.place);
        self.attributes.notes.audit.add(&key, &self.hook.name);
    }

    fn about(&self) -> Map {
        let mut about = Map::new();
        about.insert("configuration", self.hook.configuration.as_str());
        about.insert("webhook", self.hook.name.as_str());
        about
    }

    fn add(&self, prefix: &str, value: Map) {
        let key = format!("{prefix}/{}", self.place);
        let value = json::to_string(&Value::Object(value));
        self.attributes.notes.audit.add(&key, &value);
    }
}
