//! Types that a CustomResourceDefinition declares, built from its OpenAPI schema at run time.
//!
//! Only what decides ownership is kept: fields, list and map types, keys and their defaults.
//! Whether a value is valid is up to the schema engine.

use super::{Atom, CatalogueType, Fields, List, Members, Relationship, Scalar, Type};
use crate::catalog::BUILTIN;
use crate::{Map, Text, Value};

/// The type of a value that a schema declares.
#[derive(Clone, Debug)]
pub struct Declared(DeclaredType);

#[derive(Clone, Debug)]
enum DeclaredType {
    Values(Values),
    /// A type of the catalogue: `metadata`.
    Builtin(CatalogueType<'static>),
    /// An element of a list that the schema does not describe.
    Anything,
}

/// The values that are allowed.
#[derive(Clone, Debug, Default)]
struct Values {
    scalar: Option<Scalar>,
    list: Option<Box<DeclaredList>>,
    map: Option<Box<DeclaredMap>>,
}

#[derive(Clone, Debug)]
struct DeclaredList {
    item: Declared,
    relationship: DeclaredRelationship,
}

#[derive(Clone, Debug)]
enum DeclaredRelationship {
    Atomic,
    Set,
    Keys(Vec<Text>),
}

#[derive(Clone, Debug)]
struct DeclaredMap {
    whole: bool,
    /// Sorted by name.
    fields: Vec<DeclaredField>,
    other: Other,
}

#[derive(Clone, Debug)]
enum Other {
    Nothing,
    Deduced,
    Declared(Declared),
}

#[derive(Clone, Debug)]
pub(super) struct DeclaredField {
    name: Text,
    of: Declared,
    pub(super) default: Option<Value>,
}

impl DeclaredField {
    pub(super) fn of(&self) -> Type<'_> {
        Type::Declared(&self.of)
    }
}

pub(super) fn find<'s>(fields: &'s [DeclaredField], name: &str) -> Option<&'s DeclaredField> {
    fields
        .binary_search_by(|field| field.name.as_str().cmp(name))
        .ok()
        .map(|index| &fields[index])
}

/// Why a schema is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("unrecognized type: '{0}'")]
    Type(String),
    #[error("unknown list type {0}")]
    ListType(String),
    #[error("unknown map type {0}")]
    MapType(String),
    #[error("missing map keys")]
    Keys,
    #[error("`items` must be specified on arrays")]
    Items,
}

impl Declared {
    /// The type of a custom resource's objects, from the structural schema of one version
    /// (`openAPIV3Schema`). `apiVersion`, `kind` and `metadata` are the same as in every object.
    pub fn object(schema: &Value, preserve_unknown: bool) -> Result<Declared, SchemaError> {
        let mut values = Reader { preserve_unknown }.values(schema)?;
        values.add_object_fields();
        Ok(Declared(DeclaredType::Values(values)))
    }

    pub(super) fn atom(&self) -> Atom<'_> {
        match &self.0 {
            DeclaredType::Values(values) => values.atom(),
            DeclaredType::Builtin(of) => of.atom(),
            DeclaredType::Anything => Type::Whole.atom(),
        }
    }
}

impl Values {
    fn add_object_fields(&mut self) {
        let map = self.map.get_or_insert_with(|| {
            Box::new(DeclaredMap {
                whole: false,
                fields: Vec::new(),
                other: Other::Nothing,
            })
        });

        let metadata = BUILTIN
            .type_named("meta.v1.ObjectMeta")
            .expect("the catalogue has ObjectMeta");
        let metadata = Declared(DeclaredType::Builtin(CatalogueType {
            node: metadata.node(),
            extra: None,
        }));

        let text = Declared(DeclaredType::Values(Values {
            scalar: Some(Scalar::String),
            ..Values::default()
        }));

        map.fields
            .retain(|field| !matches!(field.name.as_str(), "apiVersion" | "kind" | "metadata"));

        for (name, of) in [
            ("apiVersion", text.clone()),
            ("kind", text),
            ("metadata", metadata),
        ] {
            map.fields.push(DeclaredField {
                name: Text::new(name),
                of,
                default: None,
            });
        }

        map.fields.sort_by(|a, b| a.name.cmp(&b.name));
    }

    fn atom(&self) -> Atom<'_> {
        Atom {
            scalar: self.scalar,
            list: self.list.as_ref().map(|list| List {
                item: Type::Declared(&list.item),
                relationship: match &list.relationship {
                    DeclaredRelationship::Atomic => Relationship::Atomic,
                    DeclaredRelationship::Set => Relationship::Set,
                    DeclaredRelationship::Keys(keys) => Relationship::Keys(keys),
                },
            }),
            map: self.map.as_ref().map(|map| Fields {
                whole: map.whole,
                declared: if map.fields.is_empty() {
                    Members::None
                } else {
                    Members::Declared(&map.fields)
                },
                other: match &map.other {
                    Other::Nothing => None,
                    Other::Deduced => Some(Type::Deduced),
                    Other::Declared(of) => Some(Type::Declared(of)),
                },
            }),
        }
    }
}

#[derive(Clone, Copy)]
struct Reader {
    /// Set where the schema requests it, and inherited by everything below.
    preserve_unknown: bool,
}

impl Reader {
    fn schema(self, schema: &Value) -> Result<Declared, SchemaError> {
        Ok(Declared(DeclaredType::Values(self.values(schema)?)))
    }

    fn values(mut self, schema: &Value) -> Result<Values, SchemaError> {
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
            self.preserve_unknown = true;
        }

        let mut declared = Values::default();
        match schema
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
        {
            "" => {
                declared.scalar = Some(Scalar::Any);
                declared.list = Some(Box::new(self.list(schema)?));
                declared.map = Some(Box::new(self.map(schema)?));
            }
            "object" => declared.map = Some(Box::new(self.map(schema)?)),
            "array" => {
                if schema.get("items").is_none() {
                    return Err(SchemaError::Items);
                }
                declared.list = Some(Box::new(self.list(schema)?));
            }
            "integer" | "number" => declared.scalar = Some(Scalar::Number),
            "boolean" => declared.scalar = Some(Scalar::Bool),
            "string" => declared.scalar = Some(string(schema)),
            other => return Err(SchemaError::Type(other.to_owned())),
        }

        if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
            declared.add_object_fields();
        }

        Ok(declared)
    }

    fn map(self, schema: &Value) -> Result<DeclaredMap, SchemaError> {
        let whole = match schema.get("x-kubernetes-map-type").and_then(Value::as_str) {
            None | Some("granular") => false,
            Some("atomic") => true,
            Some(other) => return Err(SchemaError::MapType(other.to_owned())),
        };

        let no_properties = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&no_properties);

        let mut fields = Vec::with_capacity(properties.len());
        for (name, property) in properties.iter() {
            let default = property
                .get("default")
                .filter(|default| !default.is_null())
                .cloned();

            fields.push(DeclaredField {
                name: Text::new(name),
                of: self.schema(property)?,
                default,
            });
        }

        let other = match schema.get("additionalProperties") {
            None if self.preserve_unknown || fields.is_empty() => Other::Deduced,
            None | Some(Value::Bool(false)) => Other::Nothing,
            Some(Value::Bool(true)) => Other::Deduced,
            Some(values) => Other::Declared(self.schema(values)?),
        };

        Ok(DeclaredMap {
            whole,
            fields,
            other,
        })
    }

    fn list(self, schema: &Value) -> Result<DeclaredList, SchemaError> {
        let relationship = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
            None | Some("atomic") => DeclaredRelationship::Atomic,
            Some("set") => DeclaredRelationship::Set,
            Some("map") => {
                let keys = schema
                    .get("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array);

                let keys = keys.ok_or(SchemaError::Keys)?;
                DeclaredRelationship::Keys(
                    keys.iter()
                        .filter_map(Value::as_str)
                        .map(Text::new)
                        .collect(),
                )
            }
            Some(other) => return Err(SchemaError::ListType(other.to_owned())),
        };

        let item = match schema.get("items") {
            Some(items) => self.schema(items)?,
            None => Declared(DeclaredType::Anything),
        };

        Ok(DeclaredList { item, relationship })
    }
}

/// A string with certain formats may also be a number.
fn string(schema: &Value) -> Scalar {
    match schema
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "" | "byte" => Scalar::String,
        _ => Scalar::Any,
    }
}
