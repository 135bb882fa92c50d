//! Pruning: undeclared fields are dropped and reported.
//!
//! Members of an object in its own right (the root, or embedded) are known without being declared:
//! `apiVersion`, `kind` and `metadata`. Where unknown fields are preserved, pruning continues below
//! declared ones. Then nulls are removed where the field is not nullable and has no default.

use super::Schema;
use super::node::{Additional, Flags, Node, NodeId};
use crate::value::Path;
use crate::{Map, Value};

impl Schema {
    /// Drops undeclared fields, and returns their paths, in order.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut walk = Walk {
            schema: self,
            unknown: Some(Vec::new()),
        };
        walk.prune(object, Some(self.root()), true, &Path::Root);
        let mut unknown = walk.unknown.unwrap_or_default();
        unknown.sort_unstable();
        unknown
    }

    /// Removes nulls whose field is not nullable and has no default.
    pub fn prune_nulls(&self, object: &mut Value) {
        prune_nulls(self, object, self.root());
    }

    /// Prunes a value of one node, without reporting.
    pub(crate) fn prune_below(&self, value: &mut Value, node: Option<&Node>, resource: bool) {
        Walk {
            schema: self,
            unknown: None,
        }
        .prune(value, node, resource, &Path::Root);
    }
}

/// Maximum number of fields that are reported, as in the decoders.
const MOST_UNKNOWN: usize = 100;

struct Walk<'s> {
    schema: &'s Schema,
    /// `None`: not reported.
    unknown: Option<Vec<String>>,
}

impl Walk<'_> {
    /// `node` `None`: the value is not declared, so no member of it is.
    fn prune(&mut self, value: &mut Value, node: Option<&Node>, resource: bool, at: &Path<'_>) {
        let Some(node) = node else {
            return self.drop_all(value, at);
        };
        if !node.flags.has(Flags::PRUNES) {
            return;
        }
        if node.preserve {
            return self.keep(value, node, resource, at);
        }

        match value {
            Value::Object(map) => self.members(map, node, resource, false, at),
            Value::Array(items) => {
                let item = node.items.map(|id| self.schema.node(id));
                for (index, value) in items.iter_mut().enumerate() {
                    self.prune(value, item, false, &at.index(index));
                }
            }
            _ => {}
        }
    }

    /// Below a node that preserves unknown fields: undeclared members are kept, declared ones are
    /// pruned by their own schema.
    fn keep(&mut self, value: &mut Value, node: &Node, resource: bool, at: &Path<'_>) {
        match value {
            Value::Object(map) => self.members(map, node, resource, true, at),
            Value::Array(items) => {
                let Some(item) = node.items.map(|id| self.schema.node(id)) else {
                    return;
                };
                for (index, value) in items.iter_mut().enumerate() {
                    self.keep(value, item, false, &at.index(index));
                }
            }
            _ => {}
        }
    }

    fn members(
        &mut self,
        map: &mut Map,
        node: &Node,
        resource: bool,
        preserve: bool,
        at: &Path<'_>,
    ) {
        let resource = resource || node.embedded;
        let mut properties = node.in_order();
        map.retain(|name, value| {
            if resource && is_meta(name) {
                return true;
            }

            let below = match (properties.find(name), node.additional) {
                (Some(id), _) => Some(id),
                (None, Additional::Unsaid) if preserve => return true,
                (None, Additional::Unsaid) => {
                    self.report(name, at);
                    return false;
                }
                (None, additional) => additional.node(),
            };

            // Scalars have nothing to prune; most members are.
            if matches!(value, Value::Object(_) | Value::Array(_)) {
                self.prune(
                    value,
                    below.map(|id: NodeId| self.schema.node(id)),
                    false,
                    &at.field(name),
                );
            }

            true
        });
    }

    fn drop_all(&mut self, value: &mut Value, at: &Path<'_>) {
        match value {
            Value::Object(map) => {
                for name in map.keys() {
                    self.report_in_any(name, at);
                }
                *map = Map::new();
            }
            Value::Array(items) => {
                for (index, value) in items.iter_mut().enumerate() {
                    self.drop_all(value, &at.index(index));
                }
            }
            _ => {}
        }
    }

    fn report(&mut self, name: &str, at: &Path<'_>) {
        if !is_meta(name) || !matches!(at, Path::Root) {
            self.report_in_any(name, at);
        }
    }

    fn report_in_any(&mut self, name: &str, at: &Path<'_>) {
        if let Some(unknown) = &mut self.unknown
            && unknown.len() < MOST_UNKNOWN
        {
            unknown.push(at.field(name).to_string());
        }
    }
}

pub(super) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

fn prune_nulls(schema: &Schema, value: &mut Value, node: &Node) {
    if !node.flags.has(Flags::NULLS) {
        return;
    }

    match value {
        Value::Object(map) => {
            let mut properties = node.in_order();
            map.retain(|name, value| {
                let Some(id) = properties.find(name).or(node.additional.node()) else {
                    return true;
                };

                let below = schema.node(id);
                if value.is_null() {
                    return below.nullable || below.default.is_some();
                }

                prune_nulls(schema, value, below);

                true
            });
        }
        Value::Array(items) => {
            let Some(item) = schema.item(node) else {
                return;
            };
            items
                .iter_mut()
                .for_each(|value| prune_nulls(schema, value, item));
        }
        _ => {}
    }
}
