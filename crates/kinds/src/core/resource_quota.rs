//! ResourceQuota: the total resources that a namespace may use.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::field_error::{FieldError, as_json};
use coracle_api::go_text::Quoted;
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, resource_name};
use k8s_openapi::api::core::v1::{
    ResourceQuota, ResourceQuotaSpec, ScopeSelector, ScopedResourceSelectorRequirement,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use crate::Part;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::resources::read;
use crate::validate::{items, resources};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ResourceQuotas,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct ResourceQuotas;

impl Strategy for ResourceQuotas {
    type Object = ResourceQuota;

    fn validate(&self, new: &View<'_, ResourceQuota>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(new, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ResourceQuota>,
        old: &View<'_, ResourceQuota>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            let Some(status) = &new.status else { return };
            validate_amounts(&status.hard, &STATUS.field("hard"), errors);
            return validate_amounts(&status.used, &STATUS.field("used"), errors);
        }

        validate_spec(new, errors);
        let scopes = |quota: &View<'_, ResourceQuota>| -> BTreeSet<String> {
            quota
                .spec
                .iter()
                .flat_map(|spec| items(&spec.scopes))
                .cloned()
                .collect()
        };

        if scopes(new) != scopes(old) {
            let found = new
                .tree
                .at(&["spec", "scopes"])
                .map_or_else(|| "null".to_owned(), as_json);
            errors.push(FieldError::invalid(&SPEC.field("scopes"), found, IMMUTABLE));
        }
    }

    fn warnings(
        &self,
        new: &View<'_, ResourceQuota>,
        old: Option<&View<'_, ResourceQuota>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        match (&new.spec, old) {
            (
                Some(ResourceQuotaSpec {
                    hard: Some(hard), ..
                }),
                None,
            ) => requests_beyond_limits(hard),
            _ => Vec::new(),
        }
    }
}

type Amounts = BTreeMap<String, Written>;

/// Warnings for quotas whose requests exceed their limits.
fn requests_beyond_limits(hard: &Amounts) -> Vec<String> {
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (full, limit_name) = (format!("requests.{resource}"), format!("limits.{resource}"));
        let bare = matches!(resource, "cpu" | "memory").then_some(resource);

        let request = hard
            .get_key_value(&full)
            .or_else(|| hard.get_key_value(bare?));
        if let (Some((name, request)), Some(limit)) = (request, hard.get(&limit_name)) {
            let (request, limit) = (read(request), read(limit));
            if request > limit {
                warnings.push(format!(
                    "ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})"
                ));
            }
        }
    }

    warnings
}

fn validate_amounts(amounts: &Option<Amounts>, at: &Path<'_>, errors: &mut Errors) {
    for (name, amount) in amounts.iter().flatten() {
        resources::validate_quota_resource_name(name, &at.key(name), errors);
        resources::validate_resource_amount(name, amount, &at.key(name), errors);
    }
}

fn validate_spec(quota: &View<'_, ResourceQuota>, errors: &mut Errors) {
    let Some(spec) = &quota.spec else { return };
    validate_amounts(&spec.hard, &SPEC.field("hard"), errors);
    validate_scopes(spec, errors);
    if let Some(selector) = &spec.scope_selector {
        validate_selector(selector, spec, errors);
    }
}

fn validate_scopes(spec: &ResourceQuotaSpec, errors: &mut Errors) {
    let at = SPEC.field("scopes");
    let scopes = items(&spec.scopes);

    let all = as_json(&Value::Array(scopes.iter().map(Value::string).collect()));
    for scope in scopes {
        if !is_scope(scope) {
            errors.push(FieldError::invalid(&at, all.clone(), "unsupported scope"));
        }

        for _ in 0..misfits(scope, spec) {
            errors.push(FieldError::invalid(
                &at,
                all.clone(),
                "unsupported scope applied to resource",
            ));
        }
    }

    validate_conflicts(scopes.iter().map(String::as_str), &at, &all, errors);
}

fn validate_selector(selector: &ScopeSelector, spec: &ResourceQuotaSpec, errors: &mut Errors) {
    let at = SPEC.field("scopeSelector");
    let at = at.field("matchExpressions");

    let requirements = items(&selector.match_expressions);
    for requirement in requirements {
        let (scope, operator) = (&requirement.scope_name, &requirement.operator);
        if !is_scope(scope) {
            errors.push(FieldError::invalid_str(
                &at.field("scopeName"),
                scope,
                "unsupported scope",
            ));
        }

        for _ in 0..misfits(scope, spec) {
            let detail = "unsupported scope applied to resource";
            errors.push(FieldError::invalid(&at, selector_shown(selector), detail));
        }

        if !matches!(scope.as_str(), "PriorityClass" | "VolumeAttributesClass")
            && is_scope(scope)
            && operator != "Exists"
        {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(FieldError::invalid_str(
                &at.field("operator"),
                operator,
                detail,
            ));
        }

        let values = items(&requirement.values);
        match operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(FieldError::required(&at.field("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let all = as_json(&Value::Array(values.iter().map(Value::string).collect()));
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(FieldError::invalid(&at.field("values"), all, detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid_str(
                    &at.field("operator"),
                    other,
                    detail,
                ));
            }
        }
    }

    let scopes = as_json(&Value::Array(
        items(&spec.scopes).iter().map(Value::string).collect(),
    ));
    let shown = if spec.scopes.is_none() {
        "null"
    } else {
        &scopes
    };

    validate_conflicts(
        requirements
            .iter()
            .map(|requirement| requirement.scope_name.as_str()),
        &at,
        shown,
        errors,
    );
}

/// A selector as errors show it: with upstream's internal field names, all of them.
fn selector_shown(selector: &ScopeSelector) -> String {
    let requirement = |requirement: &ScopedResourceSelectorRequirement| {
        let values = match &requirement.values {
            None => "null".to_owned(),
            Some(values) => as_json(&Value::Array(values.iter().map(Value::string).collect())),
        };

        format!(
            "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{values}}}",
            Quoted(&requirement.scope_name),
            Quoted(&requirement.operator)
        )
    };

    let requirements: Vec<String> = items(&selector.match_expressions)
        .iter()
        .map(requirement)
        .collect();

    format!("{{\"MatchExpressions\":[{}]}}", requirements.join(","))
}

fn validate_conflicts<'a>(
    scopes: impl Iterator<Item = &'a str>,
    at: &Path<'_>,
    shown: &str,
    errors: &mut Errors,
) {
    let scopes: BTreeSet<&str> = scopes.collect();
    for pair in [
        ["BestEffort", "NotBestEffort"],
        ["Terminating", "NotTerminating"],
    ] {
        if pair.iter().all(|scope| scopes.contains(scope)) {
            errors.push(FieldError::invalid(
                at,
                shown.to_owned(),
                "conflicting scopes",
            ));
        }
    }
}

fn is_scope(scope: &str) -> bool {
    matches!(
        scope,
        "Terminating"
            | "NotTerminating"
            | "BestEffort"
            | "NotBestEffort"
            | "PriorityClass"
            | "VolumeAttributesClass"
            | "CrossNamespacePodAffinity"
    )
}

/// How many of the bounded resources do not apply to a scope.
fn misfits(scope: &str, spec: &ResourceQuotaSpec) -> usize {
    let fits = |resource: &str| match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => {
            matches!(
                resource,
                "pods"
                    | "cpu"
                    | "memory"
                    | "limits.cpu"
                    | "limits.memory"
                    | "requests.cpu"
                    | "requests.memory"
            )
        }
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ => true,
    };

    let bounded = spec.hard.iter().flat_map(BTreeMap::keys);
    bounded
        .filter(|name| resource_name::is_known_to_quotas(name) && !fits(name))
        .count()
}

fn print_row(quota: &ResourceQuota, now: Timestamp) -> Row {
    let status = quota.status.as_ref();
    let hard = status
        .and_then(|status| status.hard.as_ref())
        .into_iter()
        .flatten();

    let used = |resource: &str| status.and_then(|status| status.used.as_ref()?.get(resource));
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in hard {
        let column = if resource.starts_with("limits.") {
            &mut limits
        } else {
            &mut requests
        };

        column.push(format!(
            "{resource}: {}/{}",
            cells::quantity(used(resource)),
            cells::quantity(Some(hard))
        ));
    }

    row![
        cells::name(&quota.metadata),
        requests.join(", "),
        limits.join(", "),
        cells::age(&quota.metadata, now)
    ]
}
