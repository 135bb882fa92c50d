//! The names of signers: a domain, and a path in it.

use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::{Path, names};

use crate::strategy::Errors;

const LONGEST_DOMAIN: usize = 253;
const LONGEST: usize = LONGEST_DOMAIN + 1 + LONGEST_DOMAIN + 1 + 63;

const FORM: &str =
    "must be a fully qualified domain and path of the form 'example.com/signer-name'";

/// Validates the name of a signer.
pub(super) fn validate(name: &str, at: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.push(FieldError::required(at, ""));
    }

    let parts: Vec<&str> = name.split('/').collect();
    let [domain, path] = parts.as_slice() else {
        return errors.push(FieldError::invalid_str(at, name, FORM));
    };
    if domain.len() > LONGEST_DOMAIN {
        errors.push(FieldError::too_long(at, LONGEST_DOMAIN));
    }

    validate_labels(domain, names::dns1123_label, at, errors);

    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid_str(at, domain, detail));
    }

    validate_labels(path, names::dns1123_subdomain, at, errors);

    if name.len() > LONGEST {
        errors.push(FieldError::too_long(at, LONGEST));
    }
}

/// Only the first invalid label is reported: the errors of several would be the same.
fn validate_labels(part: &str, rule: names::Rule, at: &Path<'_>, errors: &mut Errors) {
    let wrong = part
        .split('.')
        .map(|label| (label, rule(label)))
        .find(|(_, messages)| !messages.is_empty());

    if let Some((label, messages)) = wrong {
        let tell = |message: &_| {
            FieldError::invalid_str(
                at,
                part,
                format!("validating label {}: {message}", Quoted(label)),
            )
        };
        errors.extend(messages.iter().map(tell));
    }
}
