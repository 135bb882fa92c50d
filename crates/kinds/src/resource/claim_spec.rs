//! The spec of a claim: of a ResourceClaim, or of a template.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::dns1123_label;
use k8s_openapi::api::resource::v1::{
    DeviceClaim, DeviceClaimConfiguration, DeviceConstraint, DeviceRequest, DeviceSelector,
    DeviceToleration,
};

use super::{
    MOST_CONFIGURATIONS, taint, validate_class_name, validate_configuration,
    validate_fully_qualified_name, validate_list, validate_selectors, validate_set,
};
use crate::strategy::{Context, Errors};
use crate::validate::internal_form::{Fields, Form};
use crate::validate::{items, text};

const MOST_REQUESTS: usize = 32;
const MOST_CONSTRAINTS: usize = 32;
const MOST_ALTERNATIVES: usize = 8;

const NOT_A_REQUEST: &str = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
const ONE_KIND_OF_REQUEST: &str = "exactly one of `exactly` or `firstAvailable` is required";

/// The label of namespaces whose claims may have administrative access to devices.
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// Validates the requests, constraints and configurations of a claim.
pub(super) fn validate(claim: &DeviceClaim, at: &Path<'_>, errors: &mut Errors) {
    let names = RequestNames::of(claim);
    validate_set(
        items(&claim.requests),
        MOST_REQUESTS,
        |request| request.name.as_str(),
        &at.field("requests"),
        errors,
        validate_request,
    );

    validate_list(
        items(&claim.constraints),
        MOST_CONSTRAINTS,
        &at.field("constraints"),
        errors,
        |constraint, at, errors| validate_constraint(constraint, &names, at, errors),
    );

    validate_list(
        items(&claim.config),
        MOST_CONFIGURATIONS,
        &at.field("config"),
        errors,
        |config, at, errors| validate_claim_configuration(config, &names, at, errors),
    );
}

/// Requests for administrative access are for labelled namespaces only.
pub(super) fn validate_admin_access(claim: &DeviceClaim, cx: &Context<'_>, errors: &mut Errors) {
    let asks = |request: &DeviceRequest| {
        let exactly = request.exactly.as_ref();
        exactly.is_some_and(|exactly| exactly.admin_access == Some(true))
    };
    let Some(index) = items(&claim.requests).iter().position(asks) else {
        return;
    };

    let at = Path::Root.field("spec.devices.requests");
    validate_admin_namespace(&at.index(index).field("adminAccess"), cx, errors);
}

/// Validates that the namespace of the claim has the label.
pub(super) fn validate_admin_namespace(at: &Path<'_>, cx: &Context<'_>, errors: &mut Errors) {
    let namespaces = crate::builtin("", "v1", "namespaces");
    let namespace = cx.cluster.get(namespaces, cx.namespace);
    let Some(namespace) = namespace else {
        let why = format!(
            "could not retrieve namespace to verify admin access: namespaces \"{}\" not found",
            cx.namespace
        );
        return errors.push(FieldError::internal(at, why));
    };

    if namespace.meta().label(ADMIN_LABEL) != Some("true") {
        let why = format!(
            "admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
        );
        errors.push(FieldError::forbidden(at, why));
    }
}

/// The names of a claim's requests, each with those of its alternatives.
pub(super) struct RequestNames<'a>(BTreeMap<&'a str, BTreeSet<&'a str>>);

impl<'a> RequestNames<'a> {
    pub(super) fn of(claim: &'a DeviceClaim) -> RequestNames<'a> {
        let names = items(&claim.requests).iter().map(|request| {
            let alternatives = items(&request.first_available).iter();
            let alternatives = alternatives.map(|alternative| alternative.name.as_str());
            (request.name.as_str(), alternatives.collect())
        });
        RequestNames(names.collect())
    }

    /// Validates a reference to a request, or to one of its alternatives.
    pub(super) fn validate(&self, name: &str, at: &Path<'_>, errors: &mut Errors) {
        let parts: Vec<&str> = name.split('/').collect();
        if parts.len() > 2 {
            return errors.push(FieldError::invalid_str(at, name, NOT_A_REQUEST));
        }

        for part in &parts {
            refuse(at, part, dns1123_label(part), errors);
        }

        let alternatives = self.0.get(parts[0]);
        let found = match parts.get(1) {
            None => alternatives.is_some(),
            Some(part) => alternatives.is_some_and(|names| names.contains(part)),
        };
        if !found {
            errors.push(FieldError::invalid_str(at, name, NOT_A_REQUEST));
        }
    }

    /// Validates a list of references.
    pub(super) fn validate_all(&self, names: &[String], at: &Path<'_>, errors: &mut Errors) {
        validate_set(
            names,
            MOST_REQUESTS,
            String::as_str,
            at,
            errors,
            |name, at, errors| self.validate(name, at, errors),
        );
    }
}

fn validate_request(request: &DeviceRequest, at: &Path<'_>, errors: &mut Errors) {
    let name = &request.name;
    refuse(&at.field("name"), name, dns1123_label(name), errors);

    let alternatives = items(&request.first_available);
    match (&request.exactly, alternatives) {
        (None, []) => errors.push(FieldError::required(at, ONE_KIND_OF_REQUEST)),
        (Some(_), [_, ..]) => {
            let why = format!("{ONE_KIND_OF_REQUEST}, but multiple fields are set");
            errors.push(FieldError::invalid(at, "null".to_owned(), why));
        }
        (None, alternatives) => validate_set(
            alternatives,
            MOST_ALTERNATIVES,
            |alternative| alternative.name.as_str(),
            &at.field("firstAvailable"),
            errors,
            |alternative, at, errors| {
                let name = &alternative.name;
                refuse(&at.field("name"), name, dns1123_label(name), errors);
                let asked = DeviceRequestFields {
                    class: &alternative.device_class_name,
                    selectors: items(&alternative.selectors),
                    mode: text(&alternative.allocation_mode),
                    count: alternative.count.unwrap_or_default(),
                    tolerations: items(&alternative.tolerations),
                };
                asked.validate(at, errors);
            },
        ),
        (Some(exactly), []) => {
            let asked = DeviceRequestFields {
                class: &exactly.device_class_name,
                selectors: items(&exactly.selectors),
                mode: text(&exactly.allocation_mode),
                count: exactly.count.unwrap_or_default(),
                tolerations: items(&exactly.tolerations),
            };
            asked.validate(&at.field("exactly"), errors);
        }
    }
}

/// What a request and an alternative have in common.
struct DeviceRequestFields<'a> {
    class: &'a str,
    selectors: &'a [DeviceSelector],
    mode: &'a str,
    count: i64,
    tolerations: &'a [DeviceToleration],
}

impl DeviceRequestFields<'_> {
    fn validate(&self, at: &Path<'_>, errors: &mut Errors) {
        validate_class_name(self.class, &at.field("deviceClassName"), errors);
        validate_selectors(self.selectors, &at.field("selectors"), errors);

        let count = self.count.to_string();
        let place = at.field("count");
        match self.mode {
            "All" if self.count != 0 => {
                let why = "must not be specified when allocationMode is 'All'";
                errors.push(FieldError::invalid(&place, count, why));
            }
            "All" => {}
            "ExactCount" if self.count <= 0 => {
                errors.push(FieldError::invalid(
                    &place,
                    count,
                    "must be greater than zero",
                ));
            }
            "ExactCount" => {}
            mode => {
                let place = at.field("allocationMode");
                errors.push(FieldError::not_supported(
                    &place,
                    mode,
                    &["All", "ExactCount"],
                ));
            }
        }

        let at = at.field("tolerations");
        for (index, toleration) in self.tolerations.iter().enumerate() {
            taint::validate_toleration(toleration, &at.index(index), errors);
        }
    }
}

fn validate_constraint(
    constraint: &DeviceConstraint,
    names: &RequestNames<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    names.validate_all(items(&constraint.requests), &at.field("requests"), errors);
    if let Some(name) = &constraint.match_attribute {
        validate_fully_qualified_name(name, &at.field("matchAttribute"), errors);
    } else if let Some(name) = &constraint.distinct_attribute {
        validate_fully_qualified_name(name, &at.field("distinctAttribute"), errors);
    } else {
        // The words are upstream's.
        let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
        errors.push(FieldError::required(at, why));
    }
}

fn validate_claim_configuration(
    config: &DeviceClaimConfiguration,
    names: &RequestNames<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    names.validate_all(items(&config.requests), &at.field("requests"), errors);
    validate_configuration(config.opaque.as_ref(), false, at, errors);
}

/// The spec as errors show it.
pub(super) const FORM: Form = Form::Struct(&[("Devices", "devices", Form::Struct(CLAIM))]);

const CLAIM: Fields = &[
    ("Requests", "requests", Form::List(&REQUEST)),
    ("Constraints", "constraints", Form::List(&CONSTRAINT)),
    ("Config", "config", Form::List(&CONFIGURATION)),
];

const REQUEST: Form = Form::Struct(&[
    ("Name", "name", Form::Text),
    ("Exactly", "exactly", Form::Pointer(EXACTLY)),
    ("FirstAvailable", "firstAvailable", Form::List(&ALTERNATIVE)),
]);

const EXACTLY: Fields = &[
    ("DeviceClassName", "deviceClassName", Form::Text),
    ("Selectors", "selectors", SELECTORS),
    ("AllocationMode", "allocationMode", Form::Text),
    ("Count", "count", Form::Number),
    ("AdminAccess", "adminAccess", Form::Same),
    ("Tolerations", "tolerations", TOLERATIONS),
    ("Capacity", "capacity", CAPACITY),
];

const ALTERNATIVE: Form = Form::Struct(&[
    ("Name", "name", Form::Text),
    ("DeviceClassName", "deviceClassName", Form::Text),
    ("Selectors", "selectors", SELECTORS),
    ("AllocationMode", "allocationMode", Form::Text),
    ("Count", "count", Form::Number),
    ("Tolerations", "tolerations", TOLERATIONS),
    ("Capacity", "capacity", CAPACITY),
]);

const SELECTORS: Form = Form::List(&Form::Struct(&[(
    "CEL",
    "cel",
    Form::Pointer(&[("Expression", "expression", Form::Text)]),
)]));

pub(super) const TOLERATIONS: Form = Form::List(&Form::Struct(&[
    ("Key", "key", Form::Text),
    ("Operator", "operator", Form::Text),
    ("Value", "value", Form::Text),
    ("Effect", "effect", Form::Text),
    ("TolerationSeconds", "tolerationSeconds", Form::Same),
]));

const CAPACITY: Form = Form::Pointer(&[("Requests", "requests", Form::Same)]);

const CONSTRAINT: Form = Form::Struct(&[
    ("Requests", "requests", Form::Same),
    ("MatchAttribute", "matchAttribute", Form::Same),
    ("DistinctAttribute", "distinctAttribute", Form::Same),
]);

const CONFIGURATION: Form = Form::Struct(&[
    ("Requests", "requests", Form::Same),
    ("Opaque", "opaque", OPAQUE),
]);

pub(super) const OPAQUE: Form = Form::Pointer(&[
    ("Driver", "driver", Form::Text),
    ("Parameters", "parameters", Form::Same),
]);
