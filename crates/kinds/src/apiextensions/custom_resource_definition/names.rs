//! The names of custom resources.

use coracle_api::field_error::FieldError;
use coracle_api::names::dns1035_label;
use coracle_api::{Map, Path};

use crate::strategy::Errors;

/// Validates those names that are given.
pub(super) fn validate(names: &Map, at: &Path<'_>, errors: &mut Errors) {
    for field in ["plural", "singular"] {
        if !names.text(field).is_empty() {
            validate_label(names.text(field), &at.field(field), errors);
        }
    }

    for field in ["kind", "listKind"] {
        let name = names.text(field);
        let messages = dns1035_label(&name.to_lowercase());
        if !name.is_empty() && !messages.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                messages.join(",")
            );
            errors.push(FieldError::invalid_str(&at.field(field), name, detail));
        }
    }

    validate_labels(names, "shortNames", at, errors);
    let kind = names.text("kind");
    if !kind.is_empty() && kind == names.text("listKind") {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid_str(&at.field("listKind"), kind, detail));
    }

    validate_labels(names, "categories", at, errors);
}

/// Validates that the mandatory names are given.
pub(super) fn require(names: &Map, at: &Path<'_>, errors: &mut Errors) {
    for field in ["plural", "singular", "kind", "listKind"] {
        if names.text(field).is_empty() {
            errors.push(FieldError::required(&at.field(field), ""));
        }
    }
}

/// Validates a label; its faults are joined into one error.
pub(super) fn validate_label(found: &str, at: &Path<'_>, errors: &mut Errors) {
    let messages = dns1035_label(found);
    if !messages.is_empty() {
        errors.push(FieldError::invalid_str(at, found, messages.join(",")));
    }
}

fn validate_labels(names: &Map, field: &str, at: &Path<'_>, errors: &mut Errors) {
    let at = at.field(field);
    for (index, name) in names.items(field).iter().enumerate() {
        validate_label(name.as_str().unwrap_or_default(), &at.index(index), errors);
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;
    use crate::validate::check_causes;

    #[test]
    fn names_are_validated_where_they_are_given() {
        let check = |text: &str, expected: &[&str]| {
            let names = json::parse(text.as_bytes()).unwrap();
            let mut errors = Errors::new();
            validate(
                names.as_object().unwrap(),
                &Path::Root.field("n"),
                &mut errors,
            );
            check_causes(&errors, expected);
        };

        check(
            r#"{"plural":"things","kind":"Thing","listKind":"ThingList","shortNames":["t"]}"#,
            &[],
        );

        check("{}", &[]);
        check(
            r#"{"plural":"Things","kind":"thing kind","listKind":"thing kind","shortNames":["ok",""],"categories":["A"]}"#,
            &[
                "n.plural: Invalid value: \"Things\": a DNS-1035 label",
                "n.kind: Invalid value: \"thing kind\": may have mixed case",
                "n.listKind: Invalid value: \"thing kind\": may have mixed case",
                "n.shortNames[1]: Invalid value: \"\": a DNS-1035 label",
                "n.listKind: Invalid value: \"thing kind\": kind and listKind may not be the same",
                "n.categories[0]: Invalid value: \"A\"",
            ],
        );
    }
}
