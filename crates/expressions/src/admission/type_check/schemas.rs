//! Types from the schemas of an OpenAPI document of version 3.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::{Map, Value};
use coracle_cel::escape::escape;
use coracle_cel::types::{Fields, ObjectType, ObjectTypes, Type};

use super::{Declaration, Kind};

/// Where references to schemas of the same document begin.
const REFERENCE: &str = "#/components/schemas/";

/// The schemas of a document, by name.
#[derive(Clone, Copy, Debug)]
pub struct Schemas<'d>(&'d Map);

impl<'d> Schemas<'d> {
    /// The schemas of a document, if it has any.
    #[must_use]
    pub fn of_document(document: &'d Value) -> Option<Schemas<'d>> {
        let schemas = document.at(&["components", "schemas"])?;
        schemas.as_object().map(Schemas)
    }

    /// What the schema of a kind declares; `None`: the document does not have the kind.
    #[must_use]
    pub fn declare(self, kind: &Kind) -> Option<Declaration> {
        let (name, schema) = self.0.iter().find(|(_, schema)| is_of(schema, kind))?;
        let mut declarer = Declarer {
            schemas: self,
            open: vec![name],
            objects: ObjectTypes::default(),
        };
        let of = declarer.declare(schema, true, &kind.kind);
        Some(Declaration {
            of: of.unwrap_or(Type::Dyn),
            objects: declarer.objects,
        })
    }
}

fn is_of(schema: &Value, kind: &Kind) -> bool {
    let kinds = schema.get("x-kubernetes-group-version-kind");
    let kinds = kinds.and_then(Value::as_array).unwrap_or_default();
    kinds.iter().any(|found| {
        let text = |name| found.get(name).and_then(Value::as_str).unwrap_or_default();
        text("group") == kind.group && text("version") == kind.version && text("kind") == kind.kind
    })
}

struct Declarer<'d> {
    schemas: Schemas<'d>,
    /// The referred schemas around what is declared: one that refers to itself is an object without
    /// fields in it, which ends the recursion.
    open: Vec<&'d str>,
    objects: ObjectTypes,
}

impl<'d> Declarer<'d> {
    /// The type of a schema's values, `None` where expressions cannot see them. `resource`: they are
    /// objects with a type and metadata.
    fn declare(&mut self, schema: &'d Value, resource: bool, name: &str) -> Option<Type> {
        let Some(reference) = reference(schema) else {
            return self.declare_here(schema, resource, name);
        };
        let target = reference.strip_prefix(REFERENCE)?;
        if self.open.contains(&target) {
            return Some(self.object(name, BTreeMap::new()));
        }

        let (target, schema) = self.schemas.0.iter().find(|(known, _)| *known == target)?;
        self.open.push(target);
        let of = self.declare(schema, resource, name);
        self.open.pop();
        of
    }

    fn declare_here(&mut self, schema: &'d Value, resource: bool, name: &str) -> Option<Type> {
        if text(schema, "format") == "int-or-string" || flag(schema, "x-kubernetes-int-or-string") {
            return Some(Type::Dyn);
        }

        match text(schema, "type") {
            "array" => {
                let items = schema.get("items").filter(|items| is_schema(items))?;
                let item = self.declare(items, is_embedded(items), &format!("{name}.@idx"))?;
                Some(Type::list(item))
            }
            "object" => match schema
                .get("additionalProperties")
                .filter(|of| is_schema(of))
            {
                Some(of) => {
                    let value = self.declare(of, is_embedded(of), &format!("{name}.@elem"))?;
                    Some(Type::map(Type::String, value))
                }
                None => Some(self.properties(schema, resource, name)),
            },
            "string" => Some(match text(schema, "format") {
                "byte" => Type::Bytes,
                "duration" => Type::Duration,
                "date" | "date-time" => Type::Timestamp,
                _ => Type::String,
            }),
            "boolean" => Some(Type::Bool),
            "number" => Some(Type::Double),
            "integer" => Some(Type::Int),
            _ => None,
        }
    }

    fn properties(&mut self, schema: &'d Value, resource: bool, name: &str) -> Type {
        let mut fields = BTreeMap::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (property, of) in properties.into_iter().flat_map(Map::iter) {
            // Upstream declares by the unescaped name where it looks for metadata.
            let Some(field) = escape(property) else {
                continue;
            };
            let below = format!("{name}.{field}");
            if let Some(of) = self.declare(of, is_embedded(of), &below) {
                fields.insert(Arc::from(&*field), of);
            }
        }

        if resource && !self.has_type_and_metadata(&fields, name) {
            let metadata = BTreeMap::from([
                (Arc::from("name"), Type::String),
                (Arc::from("generateName"), Type::String),
            ]);
            let metadata = self.object(&format!("{name}.metadata"), metadata);
            fields.insert("metadata".into(), metadata);
            fields.insert("kind".into(), Type::String);
            fields.insert("apiVersion".into(), Type::String);
        }
        self.object(name, fields)
    }

    fn has_type_and_metadata(&self, fields: &BTreeMap<Arc<str>, Type>, name: &str) -> bool {
        let metadata = self.objects.get(&format!("{name}.metadata"));
        let is_text = |of: Option<&Type>| of == Some(&Type::String);
        let has = |field: &str| metadata.is_some_and(|of| is_text(of.field(field).as_ref()));
        is_text(fields.get("kind"))
            && is_text(fields.get("apiVersion"))
            && matches!(fields.get("metadata"), Some(Type::Object(_)))
            && has("name")
            && has("generateName")
    }

    fn object(&mut self, name: &str, fields: BTreeMap<Arc<str>, Type>) -> Type {
        self.objects.insert(ObjectType {
            name: name.into(),
            fields: Fields::Named(fields),
        });
        Type::object(name)
    }
}

/// What a schema refers to, by itself or in `allOf`, which is there to add a description.
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref").and_then(Value::as_str);
    direct.or_else(|| {
        let all = schema.get("allOf").and_then(Value::as_array);
        all.unwrap_or_default().iter().find_map(reference)
    })
}

fn text<'v>(schema: &'v Value, name: &str) -> &'v str {
    match schema.get(name) {
        Some(Value::Array(types)) => types.first().and_then(Value::as_str).unwrap_or_default(),
        found => found.and_then(Value::as_str).unwrap_or_default(),
    }
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn is_schema(found: &Value) -> bool {
    found.as_object().is_some()
}

fn is_embedded(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-embedded-resource")
}
