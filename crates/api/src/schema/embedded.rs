//! Objects within objects: `x-kubernetes-embedded-resource`.
//!
//! Such a value has `apiVersion` and `kind`, and its `metadata` is that of any object, whatever the schema says. On the
//! way in it is brought into that form ([`Schema::coerce`]): members that no metadata has are dropped and said. Then it
//! is validated like the metadata of an object that is created.

use super::Schema;
use super::node::{Flags, Node};
use super::validate::{as_json, shown};
use crate::catalog::{self, BUILTIN};
use crate::codec::{canonical, json};
use crate::field_error::FieldError;
use crate::meta::ObjectMeta;
use crate::names;
use crate::value::Path;
use crate::{Map, Value};

impl Schema {
    /// Brings the metadata of embedded objects into its form, and returns where members stood that it does not have.
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
        let mut coercion = Coercion { schema: self, lenient, unknown: Vec::new() };
        coercion.value(value, node, resource, at)?;
        coercion.unknown.sort_unstable();
        Ok(coercion.unknown)
    }

    /// What is wrong with objects within this one.
    pub fn validate_embedded(&self, object: &Value) -> Vec<FieldError> {
        self.validate_embedded_node(object, self.root(), false, &Path::Root)
    }

    pub(crate) fn validate_embedded_node(
        &self,
        value: &Value,
        node: &Node,
        resource: bool,
        at: &Path<'_>,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
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
                        self.value(value, self.schema.node(property.node), false, &at.field(name))?;
                    } else if let Some(id) = node.additional.node() {
                        self.value(value, self.schema.node(id), false, &at.key(name))?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(item) = self.schema.item(node) else { return Ok(()) };
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
                return Err(FieldError::invalid(&at.field(name), shown(found), "must be a string"));
            }
            map.remove(name);
        }
        let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
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

    /// Member by member: those of the wrong type are dropped. What is no object stays as it is.
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
        self.unknown.extend(decoded.unknown.iter().map(|field| format!("{at}.{field}")));
    }
}

struct Metadata {
    value: Value,
    /// Fields that metadata does not have.
    unknown: Vec<String>,
}

/// Metadata as the typed decoder reads it; in the error what it says.
fn decoded(metadata: &Value) -> Result<Metadata, String> {
    let node = BUILTIN.type_named("meta.v1.ObjectMeta").expect("the catalogue has ObjectMeta").node();
    let decoded = json::decode(&json::to_vec(metadata), Some(node)).map_err(|error| error.to_string())?;
    let mut value = decoded.value;
    canonical::canonicalize(&mut value, node);
    if let Value::Object(map) = &mut value {
        map.retain(|_, value| !value.is_null());
    }
    let field =
        |complaint: &String| Some(complaint.strip_prefix("unknown field \"")?.strip_suffix('"')?.to_owned());
    Ok(Metadata {
        value,
        unknown: decoded.strict.iter().filter_map(|error| field(&error.to_string())).collect(),
    })
}

fn validate(
    schema: &Schema,
    value: &Value,
    node: &Node,
    resource: bool,
    at: &Path<'_>,
    errors: &mut Vec<FieldError>,
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
                    validate(schema, value, schema.node(property.node), false, &at.field(name), errors);
                } else if let Some(id) = node.additional.node() {
                    validate(schema, value, schema.node(id), false, &at.key(name), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(item) = schema.item(node) else { return };
            for (index, value) in items.iter().enumerate() {
                validate(schema, value, item, false, &at.index(index), errors);
            }
        }
        _ => {}
    }
}

fn validate_resource(map: &Map, at: &Path<'_>, errors: &mut Vec<FieldError>) {
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
        errors.extend(wrong.map(|detail| FieldError::invalid(&at.field(name), shown(found), detail)));
    };
    text("apiVersion", |text| {
        (text.matches('/').count() > 1).then(|| format!("unexpected GroupVersion string: {text}"))
    });
    text("kind", |text| {
        let messages = names::dns1035_label(&text.to_lowercase());
        let all = messages.join(",");
        (!messages.is_empty()).then(|| format!("may have mixed case, but should otherwise match: {all}"))
    });
    if let Some(metadata) = map.get("metadata") {
        validate_metadata(metadata, &at.field("metadata"), errors);
    }
}

fn validate_metadata(metadata: &Value, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let Err(message) = decoded(metadata) {
        return errors.push(FieldError::invalid(at, shown(metadata), message));
    }
    let object = Value::Object([("metadata".into(), metadata.clone())].into_iter().collect());
    let meta = object.meta();
    let mut complain = |field: &str, found: &str, messages: names::Messages| {
        errors.extend(
            messages.into_iter().map(|message| FieldError::invalid_str(&at.field(field), found, message)),
        );
    };
    complain("generateName", meta.generate_name(), names::path_segment_prefix(meta.generate_name()));
    complain("name", meta.name(), names::path_segment_name(meta.name()));
    if !meta.namespace().is_empty() {
        complain("namespace", meta.namespace(), names::dns1123_label(meta.namespace()));
    }
    if meta.generation() < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&at.field("generation"), meta.generation().to_string(), detail));
    }
    validate_maps(meta, at, errors);
    validate_owners(metadata, at, errors);
    validate_finalizers(meta, at, errors);
    validate_managers(metadata, at, errors);
}

fn validate_maps(meta: ObjectMeta<'_>, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    static NONE: Map = Map::new();
    let labels = at.field("labels");
    for (key, value) in meta.labels().unwrap_or(&NONE).iter() {
        let value = value.as_str().unwrap_or_default();
        let of_key = names::qualified_name(key).into_iter().map(|message| (key, message));
        let of_value = names::label_value(value).into_iter().map(|message| (value, message));
        let all = of_key.chain(of_value);
        errors.extend(all.map(|(found, message)| FieldError::invalid_str(&labels, found, message)));
    }
    let annotations = at.field("annotations");
    let mut size = 0;
    for (key, value) in meta.annotations().unwrap_or(&NONE).iter() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        let messages = names::qualified_name(&key.to_lowercase());
        errors
            .extend(messages.into_iter().map(|message| FieldError::invalid_str(&annotations, key, message)));
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(&annotations, ANNOTATIONS_LIMIT));
    }
}

fn validate_owners(metadata: &Value, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let owners = metadata.get("ownerReferences").and_then(Value::as_array).unwrap_or_default();
    let at = at.field("ownerReferences");
    let mut controller: Option<String> = None;
    for owner in owners {
        let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = catalog::split_api_version(text("apiVersion"));
        let empty = [
            ("apiVersion", version.is_empty(), "version must not be empty"),
            ("kind", text("kind").is_empty(), "must not be empty"),
            ("name", text("name").is_empty(), "must not be empty"),
            ("uid", text("uid").is_empty(), "must not be empty"),
        ];
        for (name, _, message) in empty.into_iter().filter(|(_, wrong, _)| *wrong) {
            errors.push(FieldError::invalid_str(&at.field(name), text(name), message));
        }
        if (group, version, text("kind")) == ("", "v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(&at, owner_shown(owner), detail));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let name = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                None => controller = Some(name),
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    );
                    let all: Vec<String> = owners.iter().map(owner_shown).collect();
                    errors.push(FieldError::invalid(&at, format!("[{}]", all.join(",")), detail));
                }
            }
        }
    }
}

/// An owner as messages show it: in the order in which upstream declares the fields, the first four always.
fn owner_shown(owner: &Value) -> String {
    let text =
        |name: &str| format!("\"{name}\":{}", owner.get(name).map_or_else(|| "\"\"".to_owned(), as_json));
    let given = |name: &&str| owner.get(name).is_some_and(|value| !value.is_null());
    let always = ["apiVersion", "kind", "name", "uid"].into_iter();
    let fields: Vec<String> =
        always.chain(["controller", "blockOwnerDeletion"].into_iter().filter(given)).map(text).collect();
    format!("{{{}}}", fields.join(","))
}

fn validate_finalizers(meta: ObjectMeta<'_>, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let at = at.field("finalizers");
    for name in meta.finalizers() {
        let messages = names::qualified_name(name);
        errors.extend(messages.into_iter().map(|message| FieldError::invalid_str(&at, name, message)));
    }
    if meta.has_finalizer("orphan") && meta.has_finalizer("foregroundDeletion") {
        let all = Value::Array(meta.finalizers().map(Value::string).collect());
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(&at, shown(&all), detail));
    }
}

fn validate_managers(metadata: &Value, at: &Path<'_>, errors: &mut Vec<FieldError>) {
    let entries = metadata.get("managedFields").and_then(Value::as_array).unwrap_or_default();
    let at = at.field("managedFields");
    for (index, entry) in entries.iter().enumerate() {
        let at = at.index(index);
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("operation"), "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid_str(&at.field("operation"), text("operation"), detail));
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid_str(&at.field("fieldsType"), text("fieldsType"), detail));
        }
        if text("manager").len() > MANAGER_LIMIT {
            errors.push(FieldError::too_long(&at.field("manager"), MANAGER_LIMIT));
        }
        if text("subresource").len() > SUBRESOURCE_LIMIT {
            errors.push(FieldError::too_long(&at.field("subresource"), SUBRESOURCE_LIMIT));
        }
    }
}

const ANNOTATIONS_LIMIT: usize = 256 << 10;
const MANAGER_LIMIT: usize = 128;
const SUBRESOURCE_LIMIT: usize = 256;
