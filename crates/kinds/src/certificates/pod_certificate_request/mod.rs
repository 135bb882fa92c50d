//! PodCertificateRequest: a kubelet requests a certificate for a pod, with a key that it proves to
//! have. The spec never changes; a signer writes the status once.

mod key;
mod status;

use coracle_api::field_error::{FieldError, FieldErrorKind, refuse, shown};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::names::{self, dns1123_subdomain};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use futures_util::future::BoxFuture;
use k8s_openapi::api::certificates::v1beta1::{PodCertificateRequest, PodCertificateRequestSpec};

use super::signer_name;
use crate::access::{Attributes, ResourceTarget};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Settle, Strategy, View};
use crate::validate::internal;
use crate::{ApiError, Part, keep_metadata};

const LONGEST_UID: usize = 128;
const LONGEST_ANNOTATIONS: usize = 256 << 10;
const SHORTEST_SECONDS: i32 = 60 * 60;
const LONGEST_SECONDS: i32 = 91 * 24 * 60 * 60;
/// Of certificates of Kubernetes' own signers.
const LONGEST_OWN_SECONDS: i32 = 24 * 60 * 60;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &PodCertificateRequests,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct PodCertificateRequests;

impl Strategy for PodCertificateRequests {
    type Object = PodCertificateRequest;

    /// A change of the status requires the right to sign.
    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        let old = old.filter(|_| cx.part == Part::Status)?;
        Some(Box::pin(async move {
            let mut found = Errors::new();
            status::validate(new, old, cx, &mut found);
            // What is wrong with the status itself is reported by the validation.
            if !found.is_empty() || new.get("status") == old.get("status") {
                return Ok(None);
            }

            let signer = old.at(&["spec", "signerName"]);
            let signer = signer.and_then(Value::as_str).unwrap_or_default();
            if may_sign(signer, cx).await {
                return Ok(None);
            }
            let why = format!(
                "User {:?} is not permitted to \"sign\" for signer {signer:?}",
                cx.user.name
            );
            found.push(FieldError::forbidden(&SPEC.field("signerName"), why));
            Err(ApiError::invalid(cx.kind, old.meta().name(), &found))
        }))
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(
        &self,
        new: &View<'_, PodCertificateRequest>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_spec(&new.spec, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, PodCertificateRequest>,
        old: &View<'_, PodCertificateRequest>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let (new, old) = (new.tree, old.tree);
        match cx.part {
            Part::Status => status::validate(new, old, cx, errors),
            _ if new.get("spec") != old.get("spec") => {
                let shown = shown_spec(new);
                errors.push(FieldError::invalid(&SPEC, shown, IMMUTABLE));
            }
            _ => {}
        }
    }
}

/// As for certificate signing requests: the signer itself, or all of its domain.
async fn may_sign(signer: &str, cx: &Context<'_>) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let all = format!("{domain}/*");
    for name in [signer, all.as_str()] {
        let target = ResourceTarget {
            group: "certificates.k8s.io",
            version: "*",
            resource: "signers",
            name,
            ..ResourceTarget::default()
        };
        let attributes = Attributes::on(cx.user, "sign", target);
        if cx.cluster.authorize(attributes).await {
            return true;
        }
    }
    false
}

/// An error that does not show the value.
fn without_value(at: &Path<'_>, why: impl Into<String>) -> FieldError {
    FieldError {
        kind: FieldErrorKind::Invalid,
        field: at.to_string(),
        bad_value: None,
        detail: why.into(),
    }
}

fn validate_spec(spec: &PodCertificateRequestSpec, errors: &mut Errors) {
    let signer = &spec.signer_name;
    signer_name::validate(signer, &SPEC.field("signerName"), errors);
    validate_annotations(spec, errors);

    for (names, name, uids, uid) in [
        ("podName", &spec.pod_name, "podUID", &spec.pod_uid),
        (
            "serviceAccountName",
            &spec.service_account_name,
            "serviceAccountUID",
            &spec.service_account_uid,
        ),
        ("nodeName", &spec.node_name, "nodeUID", &spec.node_uid),
    ] {
        refuse(&SPEC.field(names), name, dns1123_subdomain(name), errors);
        let at = SPEC.field(uids);
        if uid.is_empty() {
            errors.push(FieldError::invalid_str(&at, uid, "must not be empty"));
        }
        if uid.len() > LONGEST_UID {
            errors.push(FieldError::too_long(&at, LONGEST_UID));
        }
    }

    let at = SPEC.field("maxExpirationSeconds");
    let Some(seconds) = spec.max_expiration_seconds else {
        return errors.push(FieldError::required(&at, "must be set"));
    };
    let longest = match is_own_signer(signer) {
        true => LONGEST_OWN_SECONDS,
        false => LONGEST_SECONDS,
    };
    if !(SHORTEST_SECONDS..=longest).contains(&seconds) {
        let why = format!("must be in the range [{SHORTEST_SECONDS}, {longest}]");
        errors.push(FieldError::invalid(&at, seconds.to_string(), why));
    }

    key::validate(spec, errors);
}

/// A spec as errors show it: as upstream's struct.
fn shown_spec(request: &Value) -> String {
    const FIELDS: [(&str, &str, &str); 12] = [
        ("SignerName", "signerName", "\"\""),
        ("PodName", "podName", "\"\""),
        ("PodUID", "podUID", "\"\""),
        ("ServiceAccountName", "serviceAccountName", "\"\""),
        ("ServiceAccountUID", "serviceAccountUID", "\"\""),
        ("NodeName", "nodeName", "\"\""),
        ("NodeUID", "nodeUID", "\"\""),
        ("MaxExpirationSeconds", "maxExpirationSeconds", "null"),
        ("PKIXPublicKey", "pkixPublicKey", "null"),
        ("ProofOfPossession", "proofOfPossession", "null"),
        ("StubPKCS10Request", "stubPKCS10Request", "null"),
        (
            "UnverifiedUserAnnotations",
            "unverifiedUserAnnotations",
            "null",
        ),
    ];
    internal::object(&FIELDS.map(|(shown_name, name, absent)| {
        let found = request.at(&["spec", name]);
        (shown_name, found.map_or_else(|| absent.to_owned(), shown))
    }))
}

fn is_own_signer(signer: &str) -> bool {
    let host = signer.split('/').next().unwrap_or_default();
    host == "kubernetes.io" || host.ends_with(".kubernetes.io")
}

fn validate_annotations(spec: &PodCertificateRequestSpec, errors: &mut Errors) {
    let at = SPEC.field("unverifiedUserAnnotations");
    let Some(annotations) = &spec.unverified_user_annotations else {
        return;
    };
    for key in annotations.keys().map(|key| key.to_lowercase()) {
        let wrong = names::qualified_name(&key);
        if wrong.is_empty() && !key.contains('/') {
            let why = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid_str(&at, &key, why));
        }
        refuse(&at, &key, wrong, errors);
    }
    let size: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if size > LONGEST_ANNOTATIONS {
        errors.push(FieldError::too_long(&at, LONGEST_ANNOTATIONS));
    }
}

fn print_row(request: &PodCertificateRequest, _: Timestamp) -> Row {
    let spec = &request.spec;
    let conditions = request.status.iter().flat_map(|status| &status.conditions);
    let mut ended = conditions
        .flatten()
        .map(|condition| condition.type_.as_str())
        .filter(|kind| matches!(*kind, "Issued" | "Denied" | "Failed"));
    row![
        cells::name(&request.metadata),
        spec.pod_name.as_str(),
        spec.service_account_name.as_str(),
        spec.node_name.as_str(),
        spec.signer_name.as_str(),
        ended.next_back().unwrap_or("Pending"),
        cells::labels(spec.unverified_user_annotations.as_ref())
    ]
}
