//! The versions of a definition, and the stored versions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use coracle_api::field_error::{FieldError, as_json};
use coracle_api::{Map, Path, Value};

use super::spec::{Requirements, validate_schema};
use super::view::Definition;
use super::{columns, names, subresources};
use crate::strategy::{Errors, SPEC};
use crate::validate::internal;

pub(super) fn validate(definition: &Definition<'_>, wanted: &Requirements, errors: &mut Errors) {
    let list = SPEC.field("versions");
    for (index, version) in definition.versions().enumerate() {
        let at = list.index(index);
        names::validate_label(version.text("name"), &at.field("name"), errors);
        validate_deprecation(version, &at.field("deprecationWarning"), errors);

        let schema = version
            .below("schema")
            .and_then(|schema| schema.get("openAPIV3Schema"));
        validate_schema(
            schema,
            definition.has_status(version),
            wanted.any_cost(version.text("name")),
            wanted,
            &at.field("schema"),
            errors,
        );

        subresources::validate(
            version.below("subresources"),
            &at.field("subresources"),
            errors,
        );

        columns::validate(version, &at, errors);
        columns::validate_selectable(version, version.below("schema"), &at, errors);
    }

    let mut known = BTreeSet::new();
    let unique = definition
        .versions()
        .filter(|version| !known.insert(version.text("name")))
        .count()
        == 0;

    let kept = definition
        .versions()
        .filter(|version| version.flag("storage"))
        .count();

    let mut refuse = |detail: &str| {
        errors.push(FieldError::invalid(
            &list,
            shown(definition.spec.get("versions")),
            detail,
        ));
    };

    if !unique {
        refuse("must contain unique version names");
    }

    if kept != 1 {
        refuse("must have exactly one version marked as storage version");
    }

    let first = definition.spec.text("version");
    if !first.is_empty() {
        names::validate_label(first, &SPEC.field("version"), errors);

        if definition
            .versions()
            .next()
            .is_some_and(|version| version.text("name") != first)
        {
            let detail = "must match the first version in spec.versions";
            errors.push(FieldError::invalid_str(
                &SPEC.field("version"),
                first,
                detail,
            ));
        }
    }
}

/// Validates the stored versions: all of them exist, and the storage version is among them.
pub(super) fn validate_stored(definition: &Definition<'_>, errors: &mut Errors) {
    let status = Path::Root.field("status");
    let at = status.field("storedVersions");
    let stored: Vec<&str> = definition.stored_versions().collect();
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        return errors.push(FieldError::invalid(&at, "null".to_owned(), detail));
    }

    // Duplicates are found once, in upstream too.
    let mut missing: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for (index, name) in stored.iter().enumerate() {
        missing.entry(name).or_default().push_back(index);
    }

    for version in definition.versions() {
        let name = version.text("name");
        match missing.get_mut(name).and_then(VecDeque::pop_front) {
            Some(_) => {}
            None if version.flag("storage") && !errors.is_full() => {
                let list = internal::list(stored.iter().map(|name| internal::text(name)));
                errors.push(FieldError::invalid(
                    &at,
                    list,
                    format!("must have the storage version {name}"),
                ));
            }
            None => {}
        }
    }

    let missing: BTreeMap<usize, &str> = missing
        .into_iter()
        .flat_map(|(name, places)| places.into_iter().map(move |index| (index, name)))
        .collect();

    for (index, name) in missing {
        let detail = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid_str(&at.index(index), name, detail));
    }
}

fn validate_deprecation(version: &Map, at: &Path<'_>, errors: &mut Errors) {
    let Some(warning) = version.str("deprecationWarning") else {
        return;
    };

    let mut refuse = |detail: String| errors.push(FieldError::invalid_str(at, warning, detail));
    if !version.flag("deprecated") {
        return refuse("can only be set for deprecated versions".to_owned());
    }

    if warning.len() > 256 {
        refuse("must be <= 256 characters long".to_owned());
    }
    if warning.is_empty() {
        refuse("must not be an empty string".to_owned());
    }

    let strange = warning
        .char_indices()
        .find(|(_, sign)| sign.is_control() || is_unseen(*sign));
    if let Some((index, _)) = strange {
        refuse(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {index}"
        ));
    }
}

/// White space that cannot be distinguished from a plain space.
fn is_unseen(sign: char) -> bool {
    sign != ' ' && sign.is_whitespace()
}

/// The versions as messages show them: by upstream's own names.
fn shown(versions: Option<&Value>) -> String {
    let Some(versions) = versions.and_then(Value::as_array) else {
        return "null".to_owned();
    };
    internal::list(versions.iter().filter_map(Value::as_object).map(|version| {
        let part = |name: &str| {
            internal::pointer(
                version
                    .get(name)
                    .filter(|value| !value.is_null())
                    .map(as_json),
            )
        };

        internal::object(&[
            ("Name", internal::text(version.text("name"))),
            ("Served", version.flag("served").to_string()),
            ("Storage", version.flag("storage").to_string()),
            ("Deprecated", version.flag("deprecated").to_string()),
            ("DeprecationWarning", part("deprecationWarning")),
            ("Schema", part("schema")),
            ("Subresources", part("subresources")),
            ("AdditionalPrinterColumns", part("additionalPrinterColumns")),
            ("SelectableFields", part("selectableFields")),
        ])
    }))
}
