//! MutatingWebhookConfiguration and ValidatingWebhookConfiguration.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::selector::Values;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names, selector};
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::expressions::validate_conditions;
use super::rules::{FAILURE_POLICIES, MATCH_POLICIES, validate_rule};
use super::webhook_url::{validate_service, validate_url};
use super::{OWN, warnings};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::{internal, items, text, validate_one_of};
use crate::{OwnMetadata, Part};

/// Versions of AdmissionReview that this server supports.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const ALL_SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

pub(crate) static MUTATING: Behaviour = Behaviour {
    strategy: &MutatingWebhooks,
    printer: printer!(print_mutating_webhook_configuration),
    ..Behaviour::DEFAULT
};

struct MutatingWebhooks;

impl Strategy for MutatingWebhooks {
    type Object = MutatingWebhookConfiguration;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OWN
    }

    fn validate(
        &self,
        new: &View<'_, MutatingWebhookConfiguration>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_hooks(&hooks(items(&new.webhooks), new.tree), Demands::ALL, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, MutatingWebhookConfiguration>,
        old: &View<'_, MutatingWebhookConfiguration>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        OWN.validate(new.tree, cx, errors);
        let (now, before) = (
            hooks(items(&new.webhooks), new.tree),
            hooks(items(&old.webhooks), old.tree),
        );
        validate_hooks(&now, Demands::after(&now, &before), errors);
    }

    fn warnings(
        &self,
        new: &View<'_, MutatingWebhookConfiguration>,
        _: Option<&View<'_, MutatingWebhookConfiguration>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        warnings(new.tree)
    }
}

pub(crate) static VALIDATING: Behaviour = Behaviour {
    strategy: &ValidatingWebhooks,
    printer: printer!(print_validating_webhook_configuration),
    ..Behaviour::DEFAULT
};

struct ValidatingWebhooks;

impl Strategy for ValidatingWebhooks {
    type Object = ValidatingWebhookConfiguration;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OWN
    }

    fn validate(
        &self,
        new: &View<'_, ValidatingWebhookConfiguration>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_hooks(&hooks(items(&new.webhooks), new.tree), Demands::ALL, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ValidatingWebhookConfiguration>,
        old: &View<'_, ValidatingWebhookConfiguration>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        OWN.validate(new.tree, cx, errors);
        let (now, before) = (
            hooks(items(&new.webhooks), new.tree),
            hooks(items(&old.webhooks), old.tree),
        );
        validate_hooks(&now, Demands::after(&now, &before), errors);
    }

    fn warnings(
        &self,
        new: &View<'_, ValidatingWebhookConfiguration>,
        _: Option<&View<'_, ValidatingWebhookConfiguration>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        warnings(new.tree)
    }
}

/// The fields that webhooks of both kinds share.
struct Hook<'a> {
    name: &'a str,
    versions: &'a [String],
    client: &'a WebhookClientConfig,
    rules: &'a [RuleWithOperations],
    failure_policy: Option<&'a str>,
    match_policy: Option<&'a str>,
    side_effects: Option<&'a str>,
    timeout: Option<i32>,
    namespaces: Option<&'a LabelSelector>,
    objects: Option<&'a LabelSelector>,
    reinvocation: Option<&'a str>,
    conditions: &'a [MatchCondition],
}

trait Webhook {
    fn hook<'a>(&'a self, tree: Option<&'a Value>) -> Hook<'a>;
}

macro_rules! hook {
    ($from:ty, |$hook:ident| $reinvocation:expr) => {
        impl Webhook for $from {
            fn hook<'a>(&'a self, tree: Option<&'a Value>) -> Hook<'a> {
                let $hook = self;
                Hook {
                    name: &$hook.name,
                    versions: &$hook.admission_review_versions,
                    client: &$hook.client_config,
                    rules: items(&$hook.rules),
                    failure_policy: $hook.failure_policy.as_deref(),
                    match_policy: $hook.match_policy.as_deref(),
                    // Absent and empty are different.
                    side_effects: tree.and_then(|tree| tree.get("sideEffects")?.as_str()),
                    timeout: $hook.timeout_seconds,
                    namespaces: $hook.namespace_selector.as_ref(),
                    objects: $hook.object_selector.as_ref(),
                    reinvocation: $reinvocation,
                    conditions: items(&$hook.match_conditions),
                }
            }
        }
    };
}

hook!(MutatingWebhook, |hook| hook.reinvocation_policy.as_deref());
hook!(ValidatingWebhook, |_hook| None);

fn hooks<'a, W: Webhook>(webhooks: &'a [W], tree: &'a Value) -> Vec<Hook<'a>> {
    let trees = tree
        .get("webhooks")
        .and_then(Value::as_array)
        .unwrap_or_default();
    webhooks
        .iter()
        .enumerate()
        .map(|(index, webhook)| webhook.hook(trees.get(index)))
        .collect()
}

/// What is validated. An update does not require what the old configuration did not have either.
#[derive(Clone, Copy)]
struct Demands {
    conditions: bool,
    no_side_effects: bool,
    known_version: bool,
    unique_names: bool,
    values: Values,
}

impl Demands {
    const ALL: Demands = Demands {
        conditions: true,
        no_side_effects: true,
        known_version: true,
        unique_names: true,
        values: Values::Validated,
    };

    fn after(new: &[Hook<'_>], old: &[Hook<'_>]) -> Demands {
        let same_conditions = new.len() == old.len()
            && new
                .iter()
                .zip(old)
                .all(|(new, old)| new.conditions == old.conditions);

        let without = |hook: &Hook<'_>| {
            hook.side_effects
                .is_some_and(|found| NO_SIDE_EFFECTS.contains(&found))
        };

        let known = |hook: &Hook<'_>| hook.versions.is_empty() || knows_version(hook);
        let names: BTreeSet<&str> = old.iter().map(|hook| hook.name).collect();
        let bad = |selector: Option<&LabelSelector>| {
            let mut faults = Errors::new();
            selector::validate(selector, Values::Validated, &Path::Root, &mut faults);
            !faults.is_empty()
        };

        let was_bad = old
            .iter()
            .any(|hook| bad(hook.namespaces) || bad(hook.objects));

        Demands {
            conditions: !same_conditions,
            no_side_effects: old.iter().all(without),
            known_version: old.iter().all(known),
            unique_names: names.len() == old.len(),
            values: if was_bad {
                Values::Kept
            } else {
                Values::Validated
            },
        }
    }
}

fn knows_version(hook: &Hook<'_>) -> bool {
    hook.versions
        .iter()
        .any(|version| REVIEWS.contains(&version.as_str()))
}

fn validate_hooks(hooks: &[Hook<'_>], demands: Demands, errors: &mut Errors) {
    let at = Path::Root.field("webhooks");
    let mut names = BTreeSet::new();
    for (index, hook) in hooks.iter().enumerate() {
        let at = at.index(index);
        validate_hook(hook, demands, &at, errors);
        validate_versions(hook, demands, &at.field("admissionReviewVersions"), errors);

        if demands.unique_names && !hook.name.is_empty() && !names.insert(hook.name) {
            errors.push(FieldError::duplicate(
                &at.field("name"),
                internal::text(hook.name),
            ));
        }
    }
}

fn validate_hook(hook: &Hook<'_>, demands: Demands, at: &Path<'_>, errors: &mut Errors) {
    match hook.name {
        "" => errors.push(FieldError::required(&at.field("name"), "")),
        name => refuse(
            &at.field("name"),
            name,
            names::fully_qualified_name(name),
            errors,
        ),
    }

    for (index, rule) in hook.rules.iter().enumerate() {
        validate_rule(rule, &at.field("rules").index(index), errors);
    }

    let policies = [
        ("failurePolicy", hook.failure_policy, &FAILURE_POLICIES),
        ("matchPolicy", hook.match_policy, &MATCH_POLICIES),
    ];

    for (name, found, known) in policies {
        if let Some(found) = found {
            validate_one_of(found, known, &at.field(name), errors);
        }
    }

    let known: &[&str] = if demands.no_side_effects {
        &NO_SIDE_EFFECTS
    } else {
        &ALL_SIDE_EFFECTS
    };

    match hook.side_effects {
        None => {
            let detail = format!("must specify one of {}", known.join(", "));
            errors.push(FieldError::required(&at.field("sideEffects"), detail));
        }
        Some(found) => validate_one_of(found, known, &at.field("sideEffects"), errors),
    }

    if let Some(timeout) = hook.timeout.filter(|timeout| !(1..=30).contains(timeout)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(
            &at.field("timeoutSeconds"),
            timeout.to_string(),
            detail,
        ));
    }

    selector::validate(
        hook.namespaces,
        demands.values,
        &at.field("namespaceSelector"),
        errors,
    );

    selector::validate(
        hook.objects,
        demands.values,
        &at.field("objectSelector"),
        errors,
    );

    if let Some(policy) = hook.reinvocation {
        validate_one_of(
            policy,
            &["IfNeeded", "Never"],
            &at.field("reinvocationPolicy"),
            errors,
        );
    }

    validate_client(hook.client, &at.field("clientConfig"), errors);

    if demands.conditions {
        validate_conditions(hook.conditions, false, &at.field("matchConditions"), errors);
    }
}

fn validate_client(client: &WebhookClientConfig, at: &Path<'_>, errors: &mut Errors) {
    match (&client.url, &client.service) {
        (Some(url), None) => validate_url(url, &at.field("url"), errors),
        (None, Some(service)) => {
            let names = (service.name.as_str(), service.namespace.as_str());
            let path = service.path.is_some().then(|| text(&service.path));
            validate_service(
                names,
                path,
                service.port.unwrap_or_default(),
                &at.field("service"),
                errors,
            );
        }
        _ => errors.push(FieldError::required(
            at,
            "exactly one of url or service is required",
        )),
    }
}

fn validate_versions(hook: &Hook<'_>, demands: Demands, at: &Path<'_>, errors: &mut Errors) {
    if hook.versions.is_empty() {
        let detail = format!("must specify one of {}", REVIEWS.join(", "));
        return errors.push(FieldError::required(at, detail));
    }

    let mut seen = BTreeSet::new();
    for (index, version) in hook.versions.iter().enumerate() {
        if !seen.insert(version) {
            errors.push(FieldError::invalid_str(
                &at.index(index),
                version,
                "duplicate version",
            ));
            continue;
        }

        refuse(
            &at.index(index),
            version,
            names::dns1035_label(version),
            errors,
        );
    }

    if demands.known_version && !knows_version(hook) {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(FieldError::invalid(
            at,
            internal::texts(Some(hook.versions)),
            detail,
        ));
    }
}

fn print_mutating_webhook_configuration(
    configuration: &MutatingWebhookConfiguration,
    now: Timestamp,
) -> Row {
    let webhooks = configuration.webhooks.iter().flatten().count();
    row![
        cells::name(&configuration.metadata),
        cells::count(webhooks),
        cells::age(&configuration.metadata, now)
    ]
}

fn print_validating_webhook_configuration(
    configuration: &ValidatingWebhookConfiguration,
    now: Timestamp,
) -> Row {
    let webhooks = configuration.webhooks.iter().flatten().count();
    row![
        cells::name(&configuration.metadata),
        cells::count(webhooks),
        cells::age(&configuration.metadata, now)
    ]
}
