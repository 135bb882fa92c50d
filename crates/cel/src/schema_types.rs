//! What a schema declares for expressions: the type of an object, the object types below it, and
//! how large its parts can be.
//!
//! Not everything can be seen: a value without a type, a list without `items`, and what upstream
//! cannot name. Sizes are upstream's bounds: what the schema says, or else what fits a request.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::schema::{Checks, Node, NodeId, Schema, Type as JsonType, Types};

use crate::cost::Range;
use crate::escape::escape;
use crate::types::{Fields, ObjectType, ObjectTypes, Type};

/// The largest request, in bytes. Estimates count with this, whatever the server's limit is.
pub const LARGEST_REQUEST: u64 = 3 << 20;

/// The largest text, map or list, without what surrounds it.
const LARGEST: u64 = LARGEST_REQUEST - 2;

/// The type of a part of a schema.
#[derive(Clone, Debug)]
pub struct SchemaType {
    of: Type,
    /// How many characters, elements or members at most; 0 of what has one size.
    most: u64,
    /// How many bytes at least, as JSON.
    least: u64,
    parts: Parts,
}

#[derive(Clone, Debug)]
enum Parts {
    None,
    Elements(Box<SchemaType>),
    Values(Box<SchemaType>),
    Fields(BTreeMap<Arc<str>, SchemaType>),
}

impl SchemaType {
    /// The type of what `node` describes; `None` if expressions cannot see it. Object types get
    /// names that begin with `name`. The root of a resource has `apiVersion`, `kind` and
    /// `metadata`.
    #[must_use]
    pub fn new(schema: &Schema, node: NodeId, is_resource: bool, name: &str) -> Option<Self> {
        let at = schema.node(node);
        let checks = at.checks.as_deref();
        if at.types == Types::IntOrString {
            return Some(Self::simple(Type::Dyn, longest_text(checks), 1));
        }

        let of = match &at.types {
            Types::One(of) => *of,
            _ if is_resource => JsonType::Object,
            _ => return None,
        };
        match of {
            JsonType::Array => {
                let items = Self::below(schema, at.items?, &format!("{name}.@idx"))?;
                let declared = checks.and_then(|checks| checks.max_items);
                Some(Self {
                    of: Type::list(items.of.clone()),
                    most: declared.map_or(LARGEST / (items.least + 1), not_negative),
                    least: 2,
                    parts: Parts::Elements(Box::new(items)),
                })
            }
            JsonType::Object => match at.additional.node() {
                Some(values) => Self::map(schema, checks, values, name),
                None => Some(Self::object(schema, at, is_resource, name)),
            },
            JsonType::String => Some(text(checks)),
            JsonType::Boolean => Some(Self::simple(Type::Bool, 0, 4)),
            JsonType::Number => Some(Self::simple(Type::Double, 0, 1)),
            JsonType::Integer => Some(Self::simple(Type::Int, 0, 1)),
        }
    }

    fn below(schema: &Schema, node: NodeId, name: &str) -> Option<Self> {
        Self::new(schema, node, schema.node(node).embedded, name)
    }

    fn map(schema: &Schema, checks: Option<&Checks>, values: NodeId, name: &str) -> Option<Self> {
        let values = Self::below(schema, values, &format!("{name}.@elem"))?;
        let declared = checks.and_then(|checks| checks.max_properties);
        Some(Self {
            of: Type::map(Type::String, values.of.clone()),
            most: declared.map_or(LARGEST / (values.least + 6), not_negative),
            least: 2,
            parts: Parts::Values(Box::new(values)),
        })
    }

    fn object(schema: &Schema, at: &Node, is_resource: bool, name: &str) -> Self {
        let mut fields = BTreeMap::new();
        let mut least = 2;
        for property in at.properties.iter() {
            let escaped = escape(&property.name);
            let field_name = escaped.as_deref().unwrap_or(&property.name);
            let Some(of) = Self::below(schema, property.node, &format!("{name}.{field_name}"))
            else {
                continue;
            };
            if is_required(at, &property.name) && schema.node(property.node).default.is_none() {
                least += property.name.len() as u64 + of.least + 4;
            }
            if let Some(escaped) = escaped {
                fields.insert(escaped.into(), of);
            }
        }

        if is_resource {
            add_resource_fields(&mut fields, name);
        }
        Self {
            of: Type::object(name),
            most: 0,
            least,
            parts: Parts::Fields(fields),
        }
    }

    fn simple(of: Type, most: u64, least: u64) -> Self {
        Self {
            of,
            most,
            least,
            parts: Parts::None,
        }
    }

    #[must_use]
    pub fn of(&self) -> &Type {
        &self.of
    }

    /// How many bytes at least, as JSON.
    #[must_use]
    pub fn least_serialized(&self) -> u64 {
        self.least
    }

    /// All object types, for an environment.
    #[must_use]
    pub fn objects(&self) -> ObjectTypes {
        let mut objects = ObjectTypes::default();
        self.add_objects(&mut objects);
        objects
    }

    fn add_objects(&self, objects: &mut ObjectTypes) {
        match &self.parts {
            Parts::None => {}
            Parts::Elements(inner) | Parts::Values(inner) => inner.add_objects(objects),
            Parts::Fields(fields) => {
                for field in fields.values() {
                    field.add_objects(objects);
                }
                let named = fields
                    .iter()
                    .map(|(name, field)| (Arc::clone(name), field.of.clone()))
                    .collect();
                objects.insert(ObjectType {
                    name: self.of.name().into(),
                    fields: Fields::Named(named),
                });
            }
        }
    }

    /// The size of what a path leads to, for [`crate::cost::estimate`]. The path begins with the
    /// name of a variable of this type, whichever it is.
    #[must_use]
    pub fn size(&self, path: &[Arc<str>]) -> Option<Range> {
        let mut at = self;
        let (_, steps) = path.split_first()?;
        for (index, step) in steps.iter().enumerate() {
            at = match (&at.parts, &**step) {
                (Parts::Elements(inner) | Parts::Values(inner), "@items" | "@values") => inner,
                // Upstream gives keys no size, and nothing is below them.
                (Parts::Values(_), "@keys") => {
                    return (index + 1 == steps.len()).then_some(Range::ZERO);
                }
                (Parts::Fields(fields), name) => fields.get(name)?,
                _ => return None,
            };
        }
        Some(Range {
            min: 0,
            max: at.most,
        })
    }
}

fn text(checks: Option<&Checks>) -> SchemaType {
    let declared = checks.and_then(|checks| checks.max_length);
    match checks.map_or("", |checks| &checks.format_name) {
        "byte" => SchemaType::simple(Type::Bytes, declared.map_or(LARGEST, not_negative), 2),
        "duration" => SchemaType::simple(Type::Duration, 32, 3),
        "date" => SchemaType::simple(Type::Timestamp, 12, 12),
        "date-time" => SchemaType::simple(Type::Timestamp, 32, 21),
        _ => {
            let values = checks.map_or(&[][..], |checks| &checks.enumeration);
            let most = if declared.is_none() && !values.is_empty() {
                let texts = values.iter().filter_map(Value::as_str);
                texts.map(str::len).max().unwrap_or(0) as u64
            } else {
                longest_text(checks)
            };
            SchemaType::simple(Type::String, most, 2)
        }
    }
}

/// A character is at most four bytes.
fn longest_text(checks: Option<&Checks>) -> u64 {
    let declared = checks.and_then(|checks| checks.max_length);
    declared.map_or(LARGEST, |length| not_negative(length).wrapping_mul(4))
}

fn not_negative(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn is_required(at: &Node, name: &str) -> bool {
    let checks = at.checks.as_deref();
    checks.is_some_and(|checks| checks.required.iter().any(|required| required == name))
}

/// What every resource has: upstream's own declarations, unless the schema declares them all.
fn add_resource_fields(fields: &mut BTreeMap<Arc<str>, SchemaType>, name: &str) {
    let is_text = |field: Option<&SchemaType>| field.is_some_and(|field| field.of == Type::String);
    let metadata_is_declared = match fields.get("metadata").map(|field| &field.parts) {
        Some(Parts::Fields(metadata)) => {
            is_text(metadata.get("name")) && is_text(metadata.get("generateName"))
        }
        _ => false,
    };
    if metadata_is_declared && is_text(fields.get("kind")) && is_text(fields.get("apiVersion")) {
        return;
    }

    let string = || SchemaType::simple(Type::String, LARGEST, 2);
    let metadata = SchemaType {
        of: Type::object(&format!("{name}.metadata")),
        most: 0,
        least: 2,
        parts: Parts::Fields(BTreeMap::from([
            ("name".into(), string()),
            ("generateName".into(), string()),
        ])),
    };
    fields.insert("apiVersion".into(), string());
    fields.insert("kind".into(), string());
    fields.insert("metadata".into(), metadata);
}
