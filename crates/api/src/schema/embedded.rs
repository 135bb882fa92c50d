//! Embedded objects: `x-kubernetes-embedded-resource`.
//!
//! Such a value has `apiVersion` and `kind`, and its `metadata` is that of any object, whatever the
//! schema declares. On the way in it is coerced into that form ([`Schema::coerce`]): unknown
//! members of metadata are dropped and reported. Then it is validated like the metadata of a new
//! object ([`meta::validate`]).

use super::Schema;
use super::node::{Flags, Node};
use crate::catalog::BUILTIN;
use crate::codec::{canonical, json};
use crate::field_error::{FieldError, FieldErrors, shown};
use crate::meta::validate::Rules;
use crate::value::Path;
use crate::{Map, Value};
use crate::{meta, names};

impl Schema {
    /// Coerces the metadata of embedded objects, and returns the paths of unknown members.
    ///
    /// With `lenient`, as on reading what is stored, members of the wrong type are dropped.
    ///
    /// # Errors
    /// A member is of the wrong type.
    pub fn coerce(&self, object: &mut Value, lenient: bool) -> Result<Vec<String>, FieldError> {
        self.coerce_node(object, self.root(), false, lenient, &Path::Root)
    }

    pub(crate) fn coerce_node(
        &self,
        value: &mut Value,
        node: &Node,
        resource: bool,
        lenient: bool,
        at: &Path<'_>,
    ) -> Result<Vec<String>, FieldError> {
        let mut coercion = Coercion {
            schema: self,
            lenient,
            unknown: Vec::new(),
        };
        coercion.value(value, node, resource, at)?;
        coercion.unknown.sort_unstable();
        Ok(coercion.unknown)
    }

    /// Validates embedded objects.
    pub fn validate_embedded(&self, object: &Value) -> FieldErrors {
        self.validate_embedded_node(object, self.root(), false, &Path::Root)
    }

    pub(crate) fn validate_embedded_node(
        &self,
        value: &Value,
        node: &Node,
        resource: bool,
        at: &Path<'_>,
    ) -> FieldErrors {
        let mut errors = FieldErrors::default();
        validate(self, value, node, resource, at, &mut errors);
        errors
    }
}

struct Coercion<'s> {
    schema: &'s Schema,
    lenient: bool,
    unknown: Vec<String>,
}

impl Coercion<'_> {
    fn value(
        &mut self,
        value: &mut Value,
        node: &Node,
        resource: bool,
        at: &Path<'_>,
    ) -> Result<(), FieldError> {
        if !resource && !node.flags.has(Flags::EMBEDDED) {
            return Ok(());
        }

        match value {
            Value::Object(map) => {
                if resource || node.embedded {
                    self.resource(map, at)?;
                }

                for (name, value) in map.iter_mut() {
                    if let Some(property) = node.property(name) {
                        self.value(
                            value,
                            self.schema.node(property.node),
                            false,
                            &at.field(name),
                        )?;
                    } else if let Some(id) = node.additional.node() {
                        self.value(value, self.schema.node(id), false, &at.key(name))?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(item) = self.schema.item(node) else {
                    return Ok(());
                };
                for (index, value) in items.iter_mut().enumerate() {
                    self.value(value, item, false, &at.index(index))?;
                }
            }
            _ => {}
        }

        Ok(())
    }

    fn resource(&mut self, map: &mut Map, at: &Path<'_>) -> Result<(), FieldError> {
        for name in ["apiVersion", "kind"] {
            let Some(found) = map.get(name) else { continue };
            if found.as_str().is_some() {
                continue;
            }

            if !self.lenient {
                return Err(FieldError::invalid(
                    &at.field(name),
                    shown(found),
                    "must be a string",
                ));
            }

            map.remove(name);
        }

        let Some(metadata) = map.get_mut("metadata") else {
            return Ok(());
        };

        let at = at.field("metadata");
        match decoded(metadata) {
            Ok(decoded) => {
                self.note(&decoded, &at);
                *metadata = decoded.value;
            }
            Err(_) if self.lenient => self.keep_what_fits(metadata, &at),
            Err(message) => return Err(FieldError::invalid(&at, shown(metadata), message)),
        }

        Ok(())
    }

    /// Drops members of the wrong type. A value that is no object stays.
    fn keep_what_fits(&mut self, metadata: &mut Value, at: &Path<'_>) {
        let Value::Object(map) = metadata else { return };
        let mut kept = Map::new();
        for (name, value) in std::mem::take(map) {
            let single = Value::Object([(name, value)].into_iter().collect());
            if let Ok(decoded) = decoded(&single) {
                self.note(&decoded, at);
                for (name, value) in decoded.value.as_object().cloned().unwrap_or_default() {
                    kept.insert(name, value);
                }
            }
        }

        *map = kept;
    }

    fn note(&mut self, decoded: &Metadata, at: &Path<'_>) {
        self.unknown
            .extend(decoded.unknown.iter().map(|field| format!("{at}.{field}")));
    }
}

struct Metadata {
    value: Value,
    /// Unknown fields.
    unknown: Vec<String>,
}

/// Decodes metadata by type; the error is the decoder's text.
fn decoded(metadata: &Value) -> Result<Metadata, String> {
    let node = BUILTIN
        .type_named("meta.v1.ObjectMeta")
        .expect("the catalogue has ObjectMeta")
        .node();

    let decoded =
        json::decode(&json::to_vec(metadata), Some(node)).map_err(|error| error.to_string())?;
    let mut value = decoded.value;
    canonical::canonicalize(&mut value, node);

    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
    }

    let field = |message: &String| {
        Some(
            message
                .strip_prefix("unknown field \"")?
                .strip_suffix('"')?
                .to_owned(),
        )
    };

    Ok(Metadata {
        value,
        unknown: decoded
            .strict
            .iter()
            .filter_map(|error| field(&error.to_string()))
            .collect(),
    })
}

fn validate(
    schema: &Schema,
    value: &Value,
    node: &Node,
    resource: bool,
    at: &Path<'_>,
    errors: &mut FieldErrors,
) {
    if !resource && !node.flags.has(Flags::EMBEDDED) {
        return;
    }

    match value {
        Value::Object(map) => {
            if resource || node.embedded {
                validate_resource(map, at, errors);
            }

            for (name, value) in map.iter() {
                if let Some(property) = node.property(name) {
                    validate(
                        schema,
                        value,
                        schema.node(property.node),
                        false,
                        &at.field(name),
                        errors,
                    );
                } else if let Some(id) = node.additional.node() {
                    validate(schema, value, schema.node(id), false, &at.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(item) = schema.item(node) else {
                return;
            };
            for (index, value) in items.iter().enumerate() {
                validate(schema, value, item, false, &at.index(index), errors);
            }
        }
        _ => {}
    }
}

fn validate_resource(map: &Map, at: &Path<'_>, errors: &mut FieldErrors) {
    for name in ["apiVersion", "kind"] {
        if !map.contains_key(name) {
            errors.push(FieldError::required(&at.field(name), ""));
        }
    }

    let mut text = |name: &str, rule: fn(&str) -> Option<String>| {
        let Some(found) = map.get(name) else { return };
        let wrong = match found.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(text) => rule(text),
        };
        errors
            .extend(wrong.map(|detail| FieldError::invalid(&at.field(name), shown(found), detail)));
    };

    text("apiVersion", |text| {
        (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
    });
    text("kind", |text| {
        let messages = names::dns1035_label(&text.to_lowercase());
        let all = messages.join(",");
        (!messages.is_empty())
            .then(|| format!("may have mixed case, but should otherwise match: {all}"))
    });

    if let Some(metadata) = map.get("metadata") {
        validate_metadata(metadata, &at.field("metadata"), errors);
    }
}

fn validate_metadata(metadata: &Value, at: &Path<'_>, errors: &mut FieldErrors) {
    if let Err(message) = decoded(metadata) {
        return errors.push(FieldError::invalid(at, shown(metadata), message));
    }

    let mut object = Value::Object(
        [("metadata".into(), metadata.clone())]
            .into_iter()
            .collect(),
    );

    if object.meta().name().is_empty() {
        // An embedded object needs no name.
        object.meta_mut().set_name("unnamed");
    }

    let namespaced = !object.meta().namespace().is_empty();
    meta::validate::new(
        object.meta(),
        at,
        Rules {
            namespaced,
            ..Rules::ANY_KIND
        },
        errors,
    );
}
