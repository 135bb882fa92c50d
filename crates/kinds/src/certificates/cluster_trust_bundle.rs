//! ClusterTrustBundle: CA certificates, of a signer or of nobody in particular.

use std::collections::BTreeMap;

use coracle_api::field_error::FieldError;
use coracle_api::meta::validate::Prefix;
use coracle_api::names::{Messages, dns1123_subdomain};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::certificates::v1beta1::ClusterTrustBundle;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{pem_blocks, signer_name};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{text, validate_immutable};
use crate::{OwnMetadata, Part};

const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");

const LONGEST_BUNDLE: usize = 1 << 20;

/// All but the name, which depends on the signer.
const REST_OF_METADATA: OwnMetadata = OwnMetadata {
    prefix: Prefix::Unchecked,
    ..OwnMetadata::named(any_name)
};

fn any_name(_: &str) -> Messages {
    Messages::new()
}

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ClusterTrustBundles,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct ClusterTrustBundles;

impl Strategy for ClusterTrustBundles {
    type Object = ClusterTrustBundle;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_create: false,
            on_update: false,
            ..REST_OF_METADATA
        }
    }

    fn validate(&self, new: &View<'_, ClusterTrustBundle>, cx: &Context<'_>, errors: &mut Errors) {
        validate_name_and_signer(new, cx, errors);
        let at = SPEC.field("trustBundle");
        validate_bundle(&new.spec.trust_bundle, &at, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ClusterTrustBundle>,
        old: &View<'_, ClusterTrustBundle>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_name_and_signer(new, cx, errors);
        if new.spec.trust_bundle != old.spec.trust_bundle {
            let at = SPEC.field("trustBundle");
            validate_bundle(&new.spec.trust_bundle, &at, errors);
        }
        REST_OF_METADATA.validate_change(new.tree, old.tree, errors);
        validate_immutable(new.tree, old.tree, &["spec", "signerName"], "\"\"", errors);
    }
}

fn validate_name_and_signer(
    new: &View<'_, ClusterTrustBundle>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let signer = text(&new.spec.signer_name);
    let meta: &Value = new.tree;
    for (field, found) in [
        ("generateName", meta.meta().generate_name()),
        ("name", meta.meta().name()),
    ] {
        if !found.is_empty() {
            for why in name_faults(found, signer, field == "generateName") {
                errors.push(FieldError::invalid_str(&METADATA.field(field), found, why));
            }
        }
    }
    REST_OF_METADATA.validate(new.tree, cx, errors);

    if !signer.is_empty() {
        signer_name::validate(signer, &SPEC.field("signerName"), errors);
    }
}

/// A bundle of a signer has its name as prefix, and others have no prefix.
fn name_faults(name: &str, signer: &str, is_prefix: bool) -> Vec<String> {
    let rest = if signer.is_empty() {
        if name.contains(':') {
            let why = "ClusterTrustBundle without signer name must not have \":\" in its name";
            return vec![why.to_owned()];
        }
        name
    } else {
        let prefix = format!("{}:", signer.replace('/', ":"));
        match name.strip_prefix(&prefix) {
            Some(rest) => rest,
            None => {
                return vec![format!(
                    "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
                )];
            }
        }
    };

    let messages = match is_prefix {
        true => coracle_api::names::generate_name(rest, dns1123_subdomain),
        false => dns1123_subdomain(rest),
    };
    messages.iter().map(ToString::to_string).collect()
}

/// CA certificates, each of them once, and nothing else.
fn validate_bundle(bundle: &str, at: &Path<'_>, errors: &mut Errors) {
    if bundle.len() > LONGEST_BUNDLE {
        return errors.push(FieldError::too_long(at, LONGEST_BUNDLE));
    }

    let mut refuse = |why: String| {
        errors.push(FieldError::invalid_str(at, "<value omitted>", why));
    };
    let mut places: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    let mut is_wrong = false;
    for (index, block) in pem_blocks::blocks(bundle).into_iter().enumerate() {
        let fault = match block {
            block if block.label != "CERTIFICATE" => {
                Some(format!("has bad block type: {}", block.label))
            }
            block if block.has_headers => Some("has PEM block headers".to_owned()),
            block => match certificate_fault(&block.content) {
                None => {
                    places.entry(block.content).or_default().push(index);
                    None
                }
                fault => fault.map(str::to_owned),
            },
        };
        if let Some(fault) = fault {
            refuse(format!("entry {index} {fault}"));
            is_wrong = true;
        }
    }

    if is_wrong {
        return;
    }
    if places.is_empty() {
        refuse("at least one trust anchor must be provided".to_owned());
    }
    for indices in places.into_values().filter(|indices| indices.len() > 1) {
        let all: Vec<String> = indices.iter().map(ToString::to_string).collect();
        refuse(format!(
            "duplicate trust anchor (indices [{}])",
            all.join(" ")
        ));
    }
}

fn certificate_fault(der: &[u8]) -> Option<&'static str> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else {
        return Some("does not parse as X.509");
    };
    match certificate.basic_constraints() {
        Ok(Some(constraints)) if constraints.value.ca => None,
        _ => Some("does not have the CA bit set"),
    }
}

fn print_row(bundle: &ClusterTrustBundle, _: Timestamp) -> Row {
    let signer = match text(&bundle.spec.signer_name) {
        "" => cells::NONE,
        signer => signer,
    };
    row![cells::name(&bundle.metadata), signer]
}
