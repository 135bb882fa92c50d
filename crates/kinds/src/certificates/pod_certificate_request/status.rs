//! The status of a request: one condition ends it, and an issued certificate fits the request.

use coracle_api::field_error::{FieldError, shown};
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Path, Value, typed};
use k8s_openapi::api::certificates::v1beta1::PodCertificateRequest;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::super::pem_blocks;
use super::{key, without_value};
use crate::print::cells::moment;
use crate::strategy::{Context, Errors};
use crate::validate::{conditions, validate_one_of};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

const ENDS: [&str; 3] = ["Issued", "Denied", "Failed"];
const LONGEST_CHAIN: usize = 100 << 10;
const TEN_MINUTES: i64 = 10 * 60;
const FIVE_MINUTES: i64 = 5 * 60;

pub(super) fn validate(new: &Value, old: &Value, cx: &Context<'_>, errors: &mut Errors) {
    if !validate_conditions(new, errors) {
        return;
    }

    let status = |request: &Value| request.get("status").cloned().unwrap_or(Value::Null);
    if end(old).is_some() {
        if status(new) != status(old) {
            let why = "immutable after PodCertificateRequest is issued, denied, or failed";
            errors.push(without_value(&STATUS, why));
        }
        return;
    }

    match end(new) {
        Some("Issued") => {
            if let Err(error) = validate_issued(new, cx, errors) {
                errors.push(*error);
            }
        }
        Some(_) => {
            let status = new.get("status").and_then(Value::as_object);
            let mut others = status.into_iter().flat_map(|status| status.keys());
            if others.any(|name| name != "conditions") {
                let why = "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
                errors.push(without_value(&STATUS, why));
            }
        }
        None => {
            if status(new) != status(old) {
                let why = "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"";
                errors.push(without_value(&STATUS, why));
            }
        }
    }
}

/// The condition that ended a request.
fn end(request: &Value) -> Option<&str> {
    let part = |condition: &'_ Value, name: &str| {
        let found = condition.get(name).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    conditions_of(request).iter().find_map(|condition| {
        let kind = part(condition, "type");
        let known = ENDS.into_iter().find(|known| *known == kind);
        known.filter(|_| part(condition, "status") == "True")
    })
}

fn conditions_of(request: &Value) -> &[Value] {
    let found = request.at(&["status", "conditions"]);
    found.and_then(Value::as_array).unwrap_or_default()
}

fn validate_conditions(new: &Value, errors: &mut Errors) -> bool {
    let before = errors.len();
    let at = STATUS.field("conditions");
    let mut known = 0;
    for (index, condition) in conditions_of(new).iter().enumerate() {
        let part = |name: &str| {
            let found = condition.get(name).and_then(Value::as_str);
            found.unwrap_or_default()
        };
        // The path as upstream writes it.
        let place = format!("[{index}]");
        let place = at.field(&place);
        if !ENDS.contains(&part("type")) {
            let kind = part("type");
            errors.push(FieldError::not_supported(&place.field("type"), kind, &ENDS));
            continue;
        }

        known += 1;
        if known > 1 {
            let why = "There may be at most one condition with type \"Issued\", \"Denied\", or \"Failed\"";
            errors.push(FieldError::invalid_str(
                &place.field("type"),
                part("type"),
                why,
            ));
        }
        validate_one_of(part("status"), &["True"], &place.field("status"), errors);
    }

    conditions::validate(conditions_of(new), &at, errors);
    errors.len() == before
}

/// The first thing that is wrong with an issued certificate.
type Fault = Box<FieldError>;

fn fault(at: &str, value: impl Into<String>, why: &str) -> Fault {
    Box::new(FieldError::invalid(&STATUS.field(at), value.into(), why))
}

fn validate_issued(new: &Value, cx: &Context<'_>, errors: &mut Errors) -> Result<(), Fault> {
    let chain = new.at(&["status", "certificateChain"]);
    let text = chain.and_then(Value::as_str).unwrap_or_default();
    let of_chain = |why: &str| {
        let value = chain.map_or_else(|| "\"\"".to_owned(), shown);
        fault("certificateChain", value, why)
    };
    if text.len() > LONGEST_CHAIN {
        let at = STATUS.field("certificateChain");
        return Err(Box::new(FieldError::too_long(&at, LONGEST_CHAIN)));
    }

    let blocks = pem_blocks::blocks(text);
    let Some((leaf, rest)) = blocks.split_first() else {
        return Err(of_chain(
            "issued certificate chain must contain at least one certificate",
        ));
    };
    const ONLY: &str = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks";
    if leaf.label != "CERTIFICATE" {
        return Err(of_chain(ONLY));
    }
    let (_, leaf) = X509Certificate::from_der(&leaf.content)
        .map_err(|_| of_chain("leaf certificate does not parse as valid X.509"))?;
    validate_names(&leaf, errors);

    let Ok(request) = typed::from_tree::<PodCertificateRequest>(new) else {
        return Err(of_chain("the request cannot be read"));
    };
    if key::requested(&request.spec).as_deref() != Some(leaf.public_key().raw) {
        return Err(of_chain(
            "leaf certificate was not issued to the requested public key",
        ));
    }

    validate_times(&request, &leaf, cx, errors)?;
    for block in rest {
        if block.label != "CERTIFICATE" {
            return Err(of_chain(ONLY));
        }
        if X509Certificate::from_der(&block.content).is_err() {
            return Err(of_chain(
                "intermediate certificate does not parse as valid X.509",
            ));
        }
    }
    Ok(())
}

fn validate_names(leaf: &X509Certificate<'_>, errors: &mut Errors) {
    let at = STATUS.field("certificateChain");
    let names = leaf.subject_alternative_name().ok().flatten();
    for name in names.iter().flat_map(|names| &names.value.general_names) {
        let (found, why) = match name {
            GeneralName::DNSName("") => ("", "leaf certificate should not contain empty DNSName"),
            GeneralName::DNSName(name) if name.contains("..") => {
                (*name, "leaf certificate's DNSName should not contain '..'")
            }
            GeneralName::DNSName(name) if name.starts_with('.') || name.ends_with('.') => (
                *name,
                "leaf certificate's DNSName should not start or end with '.'",
            ),
            GeneralName::RFC822Name(name) if !is_address(name) => (
                *name,
                "leaf certificate should not contain invalid EmailAddress",
            ),
            _ => continue,
        };
        errors.push(FieldError::invalid_str(&at, found, why));
    }
}

fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
        && !text.contains(char::is_whitespace)
}

fn validate_times(
    request: &PodCertificateRequest,
    leaf: &X509Certificate<'_>,
    cx: &Context<'_>,
    errors: &mut Errors,
) -> Result<(), Fault> {
    let status = request.status.clone().unwrap_or_default();
    let consistent = "must be present and consistent with the issued certificate";
    let mut is_complete = true;
    for (name, time, why) in [
        ("notBefore", &status.not_before, consistent),
        ("notAfter", &status.not_after, consistent),
        (
            "beginRefreshAt",
            &status.begin_refresh_at,
            "must be present and in the range [notbefore+10min, notafter-10min]",
        ),
    ] {
        if time.is_none() {
            errors.push(FieldError::required(&STATUS.field(name), why));
            is_complete = false;
        }
    }
    let (Some(from), Some(until), Some(refresh)) = (
        &status.not_before,
        &status.not_after,
        &status.begin_refresh_at,
    ) else {
        debug_assert!(!is_complete);
        return Ok(());
    };

    let [from, until, refresh] = [from, until, refresh].map(|time| moment(&time.0));
    let of =
        |name: &str, time: Timestamp, why: &str| fault(name, format!("\"{}\"", Time(time)), why);
    let (leaf_from, leaf_until) = (
        leaf.validity().not_before.timestamp(),
        leaf.validity().not_after.timestamp(),
    );
    if from.unix_seconds() != leaf_from {
        let why = "must be set to the NotBefore time encoded in the leaf certificate";
        return Err(of("notBefore", from, why));
    }
    if (from.unix_seconds() - cx.now.unix_seconds()).abs() >= FIVE_MINUTES {
        let why = "must be set to within 5 minutes of kube-apiserver's current time";
        return Err(of("notBefore", from, why));
    }
    if until.unix_seconds() != leaf_until {
        let why = "must be set to the NotAfter time encoded in the leaf certificate";
        return Err(of("notAfter", until, why));
    }

    let lifetime = leaf_until - leaf_from;
    let longest = request.spec.max_expiration_seconds.unwrap_or_default();
    let in_chain = |why: &str| fault("certificateChain", lifetime.to_string(), why);
    if lifetime < i64::from(super::SHORTEST_SECONDS) {
        return Err(in_chain("leaf certificate lifetime must be >= 1 hour"));
    }
    if lifetime > i64::from(longest) {
        return Err(in_chain(&format!(
            "leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})"
        )));
    }
    if refresh.unix_seconds() < leaf_from + TEN_MINUTES {
        let why = "must be at least 10 minutes after status.notBefore";
        return Err(of("beginRefreshAt", refresh, why));
    }
    if refresh.unix_seconds() > leaf_until - TEN_MINUTES {
        let why = "must be at least 10 minutes before status.notAfter";
        return Err(of("beginRefreshAt", refresh, why));
    }
    Ok(())
}
