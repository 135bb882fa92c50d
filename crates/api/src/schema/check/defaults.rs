//! Validates defaults: each is valid under its own schema and contains nothing that would be
//! pruned.
//!
//! A default inside of metadata is validated together with a minimal object enclosing it.

use super::super::build::{Purpose, build};
use super::super::node::{Node, NodeId};
use super::super::{Props, Schema, prune};
use crate::field_error::{FieldError, FieldErrors, shown};
use crate::value::Path;
use crate::{Map, Text, Value};

/// Validates the defaults of a schema that was compiled for its defaults.
pub(super) fn check(schema: &Schema, pruned: bool, at: &Path<'_>) -> FieldErrors {
    let mut walk = Walk {
        schema,
        pruned,
        errors: FieldErrors::default(),
    };

    walk.node(
        schema.root,
        Enclosing {
            root: schema.root,
            steps: &Step::Root,
            metadata: false,
        },
        true,
        at,
    );

    walk.errors
}

/// Whether some default of an old definition contains what would be pruned.
pub(super) fn any_unpruned(props: Props<'_>) -> bool {
    let Ok(schema) = build(props, Purpose::Defaults) else {
        return false;
    };
    schema.nodes.iter().any(|node| {
        let Some(default) = &node.default else {
            return false;
        };
        let mut left = default.clone();
        schema.prune_below(&mut left, Some(node), node.embedded);
        left != *default
    })
}

/// The object enclosing a value.
#[derive(Clone, Copy)]
struct Enclosing<'a> {
    /// The node of that object.
    root: NodeId,
    /// The steps from it to the value.
    steps: &'a Step<'a>,
    /// Whether the steps lead through metadata.
    metadata: bool,
}

enum Step<'a> {
    Root,
    Member(&'a Step<'a>, &'a str),
    Element(&'a Step<'a>),
}

struct Walk<'s> {
    schema: &'s Schema,
    pruned: bool,
    errors: FieldErrors,
}

impl Walk<'_> {
    fn node(&mut self, id: NodeId, mut enclosing: Enclosing<'_>, resource: bool, at: &Path<'_>) {
        let schema = self.schema;
        let node = schema.node(id);

        let resource = resource || node.embedded;
        if resource {
            enclosing = Enclosing {
                root: id,
                steps: &Step::Root,
                metadata: false,
            };
        }

        if let Some(default) = &node.default {
            let path = at.field("default");
            let errors = if enclosing.metadata {
                self.in_metadata(id, default, enclosing, &path)
            } else {
                self.elsewhere(id, default, resource, &path)
            };
            self.errors.extend(errors);
        }

        if let Some(items) = node.items {
            self.node(
                items,
                Enclosing {
                    steps: &Step::Element(enclosing.steps),
                    ..enclosing
                },
                false,
                &at.field("items"),
            );
        }

        let properties = at.field("properties");
        for property in node.properties.iter() {
            let metadata = enclosing.metadata || (resource && prune::is_meta(&property.name));
            let below = Enclosing {
                steps: &Step::Member(enclosing.steps, &property.name),
                metadata,
                ..enclosing
            };
            self.node(property.node, below, false, &properties.key(&property.name));
        }
    }

    fn in_metadata(
        &self,
        id: NodeId,
        default: &Value,
        enclosing: Enclosing<'_>,
        at: &Path<'_>,
    ) -> FieldErrors {
        let schema = self.schema;
        let root = schema.node(enclosing.root);

        let mut object = enclosed(default.clone(), enclosing.steps);
        let wrong = |error: String| {
            FieldErrors::from(FieldError::invalid(
                at,
                shown(default),
                format!("must result in valid metadata: {error}"),
            ))
        };

        if let Err(error) = schema.coerce_node(&mut object, root, true, false, &Path::Root) {
            return wrong(error.to_string());
        }

        let errors = schema.validate_embedded_node(&object, root, true, &Path::Root);
        if !errors.is_empty() {
            return wrong(errors.to_string());
        }

        schema.validate_node(id, default, at)
    }

    fn elsewhere(&self, id: NodeId, default: &Value, resource: bool, at: &Path<'_>) -> FieldErrors {
        let schema = self.schema;
        let node: &Node = schema.node(id);

        let mut errors = FieldErrors::default();
        if self.pruned {
            let mut left = default.clone();
            schema.prune_below(&mut left, Some(node), resource);

            if left != *default {
                errors.push(FieldError::invalid(
                    at,
                    shown(default),
                    "must not have unknown fields",
                ));
            }
        }

        let mut coerced = default.clone();
        match schema.coerce_node(&mut coerced, node, resource, false, at) {
            Err(error) => errors.push(error),
            Ok(_) => {
                let embedded = schema.validate_embedded_node(&coerced, node, resource, at);
                let found = if embedded.is_empty() {
                    schema.validate_node(id, &coerced, at)
                } else {
                    embedded
                };
                errors.extend(found);
            }
        }

        errors
    }
}

/// A value with the object enclosing it, which gets apiVersion and kind.
fn enclosed(value: Value, steps: &Step<'_>) -> Value {
    match steps {
        Step::Member(up, name) => enclosed(
            Value::Object([(Text::new(name), value)].into_iter().collect()),
            up,
        ),
        Step::Element(up) => enclosed(Value::Array(vec![value]), up),
        Step::Root => {
            let Value::Object(mut map) = value else {
                return value;
            };
            typed(&mut map);
            Value::Object(map)
        }
    }
}

fn typed(map: &mut Map) {
    map.get_or_insert_with("apiVersion", || Value::string("validation/v1"));
    map.get_or_insert_with("kind", || Value::string("Validation"));
}
