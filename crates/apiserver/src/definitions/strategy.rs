//! The strategy of custom resources: objects are validated by the schema of the version that they
//! were written in.
//!
//! Its CEL rules come last, and only where values have the types that the schema declares.

use std::collections::HashSet;

use coracle_api::field_error::{FieldError, FieldErrorKind};
use coracle_api::names::dns1123_subdomain;
use coracle_api::{Map, Path, Text, Value};
use coracle_kinds::{Context, Errors, OwnMetadata, Part, Strategy, View};
use serde::de::IgnoredAny;

use super::{Replicas, Version};

impl Strategy for Version {
    /// The schema validates trees.
    type Object = IgnoredAny;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            known_finalizers: false,
            ..OwnMetadata::named(dns1123_subdomain)
        }
    }

    /// A schema can have patterns, enumerations and alternatives without end.
    fn takes_long(&self) -> bool {
        true
    }

    /// Without the subresource the status is a field like others.
    fn keeps_status(&self) -> bool {
        !self.has_status
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_all_metadata(new, old);
        }
    }

    fn validate(&self, new: &View<'_, IgnoredAny>, _: &Context<'_>, errors: &mut Errors) {
        errors.extend(self.schema.validate(new.tree, &Path::Root));
        if let Some(replicas) = &self.replicas {
            validate_spec_replicas(new.tree, replicas, errors);
            validate_status_replicas(new.tree, replicas, errors);
        }
        errors.extend(self.schema.validate_embedded(new.tree));
        errors.extend(self.schema.validate_lists(new.tree));
    }

    fn validate_update(
        &self,
        new: &View<'_, IgnoredAny>,
        old: &View<'_, IgnoredAny>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        match cx.part {
            Part::Status => self.validate_status(new.tree, old.tree, errors),
            _ => errors.extend(self.schema.validate_update(new.tree, old.tree, &Path::Root)),
        }

        if let Some(replicas) = &self.replicas {
            if cx.part != Part::Status {
                validate_spec_replicas(new.tree, replicas, errors);
            }
            validate_status_replicas(new.tree, replicas, errors);
        }

        errors.extend(self.schema.validate_embedded(new.tree));

        if self.schema.validate_lists(old.tree).is_empty() {
            errors.extend(self.schema.validate_lists(new.tree));
        }
    }

    fn validate_rules(
        &self,
        new: &View<'_, IgnoredAny>,
        old: Option<&View<'_, IgnoredAny>>,
        _: &Context<'_>,
        errors: &mut Errors,
        warnings: &mut Vec<String>,
    ) {
        let Some(rules) = self.rules() else {
            return;
        };

        // Rules could not rely on the types of values.
        if errors.iter().any(hides_rules) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(FieldError::invalid(&Path::Root, "null".to_owned(), detail));
            return;
        }

        let old = old.map(|old| old.tree);
        let found = rules.validate(&self.schema, new.tree, old, &Path::Root);
        errors.extend(found.errors);
        warnings.extend(found.warnings);
    }

    fn warnings(
        &self,
        new: &View<'_, IgnoredAny>,
        old: Option<&View<'_, IgnoredAny>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let known: HashSet<&str> = old
            .into_iter()
            .flat_map(|old| old.tree.meta().finalizers())
            .collect();

        let mut added: Vec<&str> = new
            .tree
            .meta()
            .finalizers()
            .filter(|name| !known.contains(name))
            .collect();
        added.sort_unstable();

        let plain = added
            .into_iter()
            .filter(|name| !name.contains('/') && !is_standard(name));

        plain
            .map(|name| {
                format!(
                    "metadata.finalizers: {}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers",
                    coracle_api::go_text::Quoted(name)
                )
            })
            .collect()
    }

    fn counts_generation(&self, new: &Value, old: &Value, part: Part) -> bool {
        let mut before = old.clone();
        self.prune(&mut before);
        part == Part::Main && !is_same_but_for_metadata(new, &before)
    }
}

impl Version {
    fn validate_status(&self, new: &Value, old: &Value, errors: &mut Errors) {
        let (Some(schema), Some(status)) = (&self.status, new.get("status")) else {
            return;
        };
        let at = Path::Root.field("status");
        match old.get("status") {
            Some(old) => errors.extend(schema.validate_update(status, old, &at)),
            None => errors.extend(schema.validate(status, &at)),
        }
    }
}

/// Whether rules are not evaluated beside an error.
fn hides_rules(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

/// A write of the status changes nothing else, and of metadata only field ownership.
fn keep_all_metadata(new: &mut Value, old: &Value) {
    let mut metadata: Map = old
        .get("metadata")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();

    let given = new.get("metadata").and_then(Value::as_object);
    for name in ["managedFields", "resourceVersion"] {
        match given.and_then(|given| given.get(name)) {
            Some(value) => metadata.insert(Text::new(name), value.clone()),
            None => metadata.remove(name),
        };
    }

    if let Some(object) = new.as_object_mut() {
        object.insert("metadata", metadata);
    }
}

fn is_standard(finalizer: &str) -> bool {
    matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
}

fn is_same_but_for_metadata(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return false;
    };
    let content = |map: &Map| map.keys().filter(|name| *name != "metadata").count();
    content(one) == content(other)
        && one
            .iter()
            .all(|(name, value)| name == "metadata" || other.get(name) == Some(value))
}

fn validate_spec_replicas(object: &Value, replicas: &Replicas, errors: &mut Errors) {
    validate_number(object, &replicas.spec, errors);
}

fn validate_status_replicas(object: &Value, replicas: &Replicas, errors: &mut Errors) {
    validate_number(object, &replicas.status, errors);
    if let Some(path) = &replicas.selector
        && let Err(why) = nested(object, path, "string", |value| value.as_str().is_some())
    {
        errors.push(FieldError::invalid(
            &Path::Root.field(path),
            "\"\"".to_owned(),
            why,
        ));
    }
}

fn validate_number(object: &Value, path: &str, errors: &mut Errors) {
    let at = Path::Root.field(path);
    let mut refuse =
        |found: i64, why: String| errors.push(FieldError::invalid(&at, found.to_string(), why));
    match nested(object, path, "int64", |value| value.as_int().is_some()) {
        Err(why) => refuse(0, why),
        Ok(None) => {}
        Ok(Some(value)) => match value.as_int().unwrap_or_default() {
            found if found < 0 => refuse(found, "should be a non-negative integer".to_owned()),
            found if found > i64::from(i32::MAX) => {
                refuse(
                    found,
                    format!("should be less than or equal to {}", i32::MAX),
                );
            }
            _ => {}
        },
    }
}

/// The value at a path, if it has the expected type; the error has upstream's text.
fn nested<'v>(
    object: &'v Value,
    path: &str,
    wanted: &str,
    is_wanted: impl Fn(&Value) -> bool,
) -> Result<Option<&'v Value>, String> {
    let mut at = object;
    let mut passed = String::new();
    for name in path.trim_start_matches('.').split('.') {
        let Some(map) = at.as_object() else {
            return Err(format!(
                "{passed} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                go_value(at),
                go_type(at)
            ));
        };

        let Some(found) = map.get(name) else {
            return Ok(None);
        };
        passed.push('.');
        passed.push_str(name);
        at = found;
    }

    match is_wanted(at) {
        true => Ok(Some(at)),
        false => Err(format!(
            "{passed} accessor error: {} is of the type {}, expected {wanted}",
            go_value(at),
            go_type(at)
        )),
    }
}

fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        other => coracle_api::go_text::GoValue(other).to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) | Value::Raw(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
