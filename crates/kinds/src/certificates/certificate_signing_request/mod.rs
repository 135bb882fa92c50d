//! CertificateSigningRequest: the server records the requesting user, the spec never changes, and
//! approval, denial and the certificate itself are each written through their own subresource.

mod print;

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, shown};
use coracle_api::time::Time;
use coracle_api::{Map, Path, Value, names};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};

use super::{pem, signer_name};
use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::internal;
use crate::{OwnMetadata, Part};

/// The key usages of a certificate.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// A signer that only existing requests may name.
const LEGACY: &str = "kubernetes.io/legacy-unknown";
/// The shortest validity that a request may ask for.
const SHORTEST_SECONDS: i32 = 600;

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &CertificateSigningRequests,
    printer: printer!(print::print_row),
    reset_fields: &[
        (Part::Main, &[&["spec"]]),
        (Part::Status, &[&["status", "conditions"]]),
        (Part::Approval, &[&["status", "certificate"]]),
    ],
    ..Behaviour::DEFAULT
};

struct CertificateSigningRequests;

impl Strategy for CertificateSigningRequests {
    type Object = CertificateSigningRequest;

    /// A request may have any name that fits into a path, which is validated for every kind.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(anything)
        }
    }

    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {
        let Some(request) = new.as_object_mut() else {
            return;
        };
        request.insert("status", Map::new());

        let spec = request.object_mut("spec");
        for name in ["username", "uid", "groups", "extra"] {
            spec.remove(name);
        }

        let user = cx.user;
        let list = |texts: &[String]| texts.iter().map(Value::string).collect::<Vec<Value>>();

        for (name, text) in [("username", &user.name), ("uid", &user.uid)] {
            if !text.is_empty() {
                spec.insert(name, text.as_str());
            }
        }

        if !user.groups.is_empty() {
            spec.insert("groups", list(&user.groups));
        }

        if !user.extra.is_empty() {
            let extra = user
                .extra
                .iter()
                .map(|(name, texts)| (name.as_str().into(), list(texts).into()));
            spec.insert("extra", extra.collect::<Map>());
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        match cx.part {
            Part::Status => {
                // A client that does not change the approval need not repeat it exactly.
                keep_conditions(new, old, "Approved");
                keep_conditions(new, old, "Denied");
                date_conditions(new, old, cx);
                carry(new, old, "spec");
            }
            Part::Approval => {
                date_conditions(new, old, cx);
                let conditions = new.at(&["status", "conditions"]).cloned();
                carry(new, old, "spec");
                carry(new, old, "status");

                if let Some(new) = new.as_object_mut() {
                    let status = new.object_mut("status");
                    match conditions {
                        Some(conditions) => status.insert("conditions", conditions),
                        None => status.remove("conditions"),
                    };
                }
            }
            _ => {
                carry(new, old, "spec");
                carry(new, old, "status");
            }
        }
    }

    fn validate(
        &self,
        new: &View<'_, CertificateSigningRequest>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_request(new, None, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, CertificateSigningRequest>,
        old: &View<'_, CertificateSigningRequest>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        validate_request(new, Some(old), errors);
        validate_change(new, old, cx.part, errors);
        self.own_metadata(cx.part)
            .validate_change(new.tree, old.tree, errors);
    }
}

fn anything(_: &str) -> names::Messages {
    names::Messages::default()
}

fn carry(new: &mut Value, old: &Value, name: &'static str) {
    let Some(new) = new.as_object_mut() else {
        return;
    };
    match old.get(name) {
        Some(value) => new.insert(name, value.clone()),
        None => new.remove(name),
    };
}

fn of_kind<'a>(conditions: &'a [Value], kind: &'a str) -> impl Iterator<Item = (usize, &'a Value)> {
    let is_it =
        move |condition: &Value| condition.get("type").and_then(Value::as_str) == Some(kind);
    conditions
        .iter()
        .enumerate()
        .filter(move |(_, condition)| is_it(condition))
}

fn conditions_of(request: &Value) -> &[Value] {
    request
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap_or_default()
}

fn conditions_mut(request: &mut Value) -> Option<&mut Vec<Value>> {
    request
        .as_object_mut()?
        .below_mut("status")?
        .get_mut("conditions")?
        .as_array_mut()
}

/// Carries over the conditions of one kind, if there are as many.
fn keep_conditions(new: &mut Value, old: &Value, kind: &str) {
    let places: Vec<usize> = of_kind(conditions_of(new), kind)
        .map(|(place, _)| place)
        .collect();
    let kept: Vec<Value> = of_kind(conditions_of(old), kind)
        .map(|(_, condition)| condition.clone())
        .collect();
    if let Some(conditions) = conditions_mut(new).filter(|_| places.len() == kept.len()) {
        for (place, condition) in places.into_iter().zip(kept) {
            conditions[place] = condition;
        }
    }
}

/// Sets the update and transition times of conditions.
fn date_conditions(new: &mut Value, old: &Value, cx: &Context<'_>) {
    let now = Time(cx.now).text();
    let before: Vec<Map> = conditions_of(old)
        .iter()
        .filter_map(Value::as_object)
        .cloned()
        .collect();

    let conditions = conditions_mut(new)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut);

    for condition in conditions {
        if condition.text("lastUpdateTime").is_empty() {
            condition.insert("lastUpdateTime", now.clone());
        }

        if condition.text("lastTransitionTime").is_empty() {
            let same = |old: &&Map| {
                ["type", "status"]
                    .iter()
                    .all(|name| old.text(name) == condition.text(name))
                    && !old.text("lastTransitionTime").is_empty()
            };

            let since = before
                .iter()
                .find(same)
                .map(|old| old.text("lastTransitionTime").into());
            condition.insert("lastTransitionTime", since.unwrap_or_else(|| now.clone()));
        }
    }
}

/// Validates a request; faults that it had before are accepted.
fn validate_request(
    new: &View<'_, CertificateSigningRequest>,
    old: Option<&View<'_, CertificateSigningRequest>>,
    errors: &mut Errors,
) {
    let spec = &new.spec;
    if let Some(fault) = pem::request_fault(&spec.request.0) {
        let found = new
            .tree
            .at(&["spec", "request"])
            .map_or_else(|| "null".to_owned(), shown);
        errors.push(FieldError::invalid(&SPEC.field("request"), found, fault));
    }

    validate_usages(new, old, errors);
    let at = SPEC.field("signerName");
    if spec.signer_name == LEGACY && old.is_none_or(|old| old.spec.signer_name != LEGACY) {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid_str(&at, &spec.signer_name, detail));
    } else {
        signer_name::validate(&spec.signer_name, &at, errors);
    }

    if let Some(seconds) = spec
        .expiration_seconds
        .filter(|seconds| *seconds < SHORTEST_SECONDS)
    {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(
            &SPEC.field("expirationSeconds"),
            seconds.to_string(),
            detail,
        ));
    }

    validate_conditions(new, old, errors);
    let certificate = certificate(new);
    let is_known = old.is_some_and(|old| self::certificate(old) == certificate);

    let fault = certificate
        .filter(|text| !text.is_empty() && !is_known)
        .and_then(pem::certificates_fault);
    if let Some(fault) = fault {
        let shown = internal::text("<certificate data>");
        errors.push(FieldError::invalid(
            &STATUS.field("certificate"),
            shown,
            fault,
        ));
    }
}

fn validate_usages(
    new: &View<'_, CertificateSigningRequest>,
    old: Option<&View<'_, CertificateSigningRequest>>,
    errors: &mut Errors,
) {
    let usages =
        |request: &CertificateSigningRequest| request.spec.usages.clone().unwrap_or_default();
    let unknown = |usages: &[String]| usages.iter().any(|usage| !USAGES.contains(&usage.as_str()));
    let repeated = |usages: &[String]| usages.iter().collect::<BTreeSet<_>>().len() < usages.len();
    let (now, before) = (usages(new), old.map(|old| usages(old)).unwrap_or_default());

    let at = SPEC.field("usages");
    if now.is_empty() {
        errors.push(FieldError::required(&at, ""));
    }

    if !unknown(&before) {
        for (index, usage) in now
            .iter()
            .enumerate()
            .filter(|(_, usage)| !USAGES.contains(&usage.as_str()))
        {
            errors.push(FieldError::not_supported(&at.index(index), usage, &USAGES));
        }
    }

    if !repeated(&before) {
        let mut seen = BTreeSet::new();
        for (index, usage) in now
            .iter()
            .enumerate()
            .filter(|(_, usage)| !seen.insert(*usage))
        {
            errors.push(FieldError::duplicate(
                &at.index(index),
                internal::text(usage),
            ));
        }
    }
}

fn conditions(request: &CertificateSigningRequest) -> &[CertificateSigningRequestCondition] {
    request
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}

fn certificate(request: &CertificateSigningRequest) -> Option<&[u8]> {
    Some(&request.status.as_ref()?.certificate.as_ref()?.0)
}

fn validate_conditions(
    new: &View<'_, CertificateSigningRequest>,
    old: Option<&View<'_, CertificateSigningRequest>>,
    errors: &mut Errors,
) {
    let before = old.map(|old| conditions(old)).unwrap_or_default();
    let had = |kind: &str| before.iter().any(|condition| condition.type_ == kind);

    let kinds: BTreeSet<&str> = before
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect();
    let (had_both, had_repeated) = (had("Approved") && had("Denied"), kinds.len() < before.len());

    let all = STATUS.field("conditions");
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (index, condition) in conditions(new).iter().enumerate() {
        let (at, kind) = (all.index(index), condition.type_.as_str());
        if kind.is_empty() && !had("") {
            errors.push(FieldError::required(&at.field("type"), ""));
        }

        // Approved, Denied and Failed can only be True.
        let allowed: &[&str] = match kind {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };

        match condition.status.as_str() {
            "" => errors.push(FieldError::required(&at.field("status"), "")),
            status if allowed.contains(&status) => {}
            status => errors.push(FieldError::not_supported(
                &at.field("status"),
                status,
                allowed,
            )),
        }

        let opposite = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };

        if !opposite.is_empty() && seen.contains(opposite) && !had_both {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid_str(&all, kind, detail));
        }

        if !seen.insert(kind) && !had_repeated {
            errors.push(FieldError::duplicate(
                &at.field("type"),
                internal::text(kind),
            ));
        }
    }
}

/// Validates what a write through a subresource may change.
fn validate_change(
    new: &View<'_, CertificateSigningRequest>,
    old: &View<'_, CertificateSigningRequest>,
    part: Part,
    errors: &mut Errors,
) {
    let at = STATUS.field("conditions");
    let of = |request: &View<'_, CertificateSigningRequest>, kind: &str| -> Vec<Value> {
        of_kind(conditions_of(request.tree), kind)
            .map(|(_, condition)| condition.clone())
            .collect()
    };

    for kind in ["Approved", "Denied", "Failed"] {
        if of(new, kind).len() < of(old, kind).len() {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(&at, detail));
        }
    }

    for kind in ["Approved", "Denied"]
        .into_iter()
        .filter(|_| part != Part::Approval)
    {
        let (now, before) = (of(new, kind), of(old, kind));
        if now.len() > before.len() {
            let detail = format!("updates may not add a condition of type {kind:?}");
            errors.push(FieldError::forbidden(&at, detail));
        } else if now.len() == before.len() && now != before {
            let detail = format!("updates may not modify a condition of type {kind:?}");
            errors.push(FieldError::forbidden(&at, detail));
        }
    }

    let at = STATUS.field("certificate");
    let before = certificate(old).unwrap_or_default();
    if certificate(new).unwrap_or_default() != before {
        if part != Part::Status {
            errors.push(FieldError::forbidden(
                &at,
                "updates may not set certificate content",
            ));
        } else if !before.is_empty() {
            errors.push(FieldError::forbidden(
                &at,
                "updates may not modify existing certificate content",
            ));
        }
    }
}
