//! The rules of a schema, compiled: a tree of the nodes that have some, or have some below.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Text;
use coracle_api::schema::{Node, NodeId, Rule, Schema};

use super::compile::{Compiled, compile};
use crate::declared::Declared;

/// The rules of a schema.
#[derive(Debug)]
pub struct Validator {
    pub(super) root: Rules,
}

/// The rules of a node, and of those below it.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Of the values.
    pub(super) node: Option<NodeId>,
    /// The values are objects with a type and metadata of their own.
    pub(super) resource: bool,
    /// Values of this node are not visible to rules.
    pub(super) is_invisible: bool,
    pub(super) rules: Vec<(Rule, Compiled)>,
    pub(super) items: Option<Box<Rules>>,
    pub(super) additional: Option<Box<Rules>>,
    pub(super) properties: BTreeMap<Text, Rules>,
    pub(super) all_of: Vec<Rules>,
}

impl Validator {
    /// `None`: the schema has no rules. As in upstream, those inside of `allOf` count only where
    /// there are others.
    #[must_use]
    pub fn new(schema: &Schema) -> Option<Validator> {
        let root = schema.root_id();
        Validator::of_node(schema, root, Declared::of_root(schema), true)
    }

    /// The rules for the values of one node; `resource`: objects with a type and metadata.
    #[must_use]
    pub fn of_node(
        schema: &Schema,
        node: NodeId,
        declared: Option<Declared>,
        resource: bool,
    ) -> Option<Validator> {
        if !has_rules(schema, schema.node(node)) {
            return None;
        }

        let builder = Builder { schema };
        let declared = declared.map(Arc::new);
        let root = builder.rules(node, node, resource, declared.as_ref())?;
        Some(Validator { root })
    }
}

/// Whether a node or one below it has rules, `allOf` and its like aside.
fn has_rules(schema: &Schema, node: &Node) -> bool {
    let below = |id: NodeId| has_rules(schema, schema.node(id));
    !node.rules.is_empty()
        || node.items.is_some_and(below)
        || node.additional.node().is_some_and(below)
        || node.properties.iter().any(|property| below(property.node))
}

struct Builder<'s> {
    schema: &'s Schema,
}

impl Builder<'_> {
    /// The rules that the node `of` states for values of `node`. The two are the same, but inside
    /// of `allOf`.
    fn rules(
        &self,
        of: NodeId,
        node: NodeId,
        resource: bool,
        declared: Option<&Arc<Declared>>,
    ) -> Option<Rules> {
        let (stated, values) = (self.schema.node(of), self.schema.node(node));
        // A definition with a blank rule is refused, once everything else in it was looked at.
        let written: Vec<Rule> = stated
            .rules
            .iter()
            .filter(|rule| !rule.rule.trim().is_empty())
            .cloned()
            .collect();
        let compiled = declared.map_or_else(Vec::new, |declared| {
            compile(self.schema, node, declared, &written)
        });

        let rules = Rules {
            node: Some(node),
            resource,
            is_invisible: declared.is_none() && !written.is_empty(),
            rules: written.into_iter().zip(compiled).collect(),
            items: self.items(stated, values, declared),
            additional: self.additional(stated, values, declared),
            properties: self.properties(stated, values, declared),
            all_of: stated
                .checks
                .iter()
                .flat_map(|checks| &checks.all_of)
                .filter_map(|branch| self.rules(*branch, node, resource, declared))
                .collect(),
        };

        (!rules.is_empty()).then_some(rules)
    }

    fn items(
        &self,
        stated: &Node,
        values: &Node,
        declared: Option<&Arc<Declared>>,
    ) -> Option<Box<Rules>> {
        let (of, node) = stated.items.zip(values.items)?;
        let item = declared.and_then(|declared| declared.item());
        self.rules(of, node, self.schema.node(node).embedded, item)
            .map(Box::new)
    }

    fn additional(
        &self,
        stated: &Node,
        values: &Node,
        declared: Option<&Arc<Declared>>,
    ) -> Option<Box<Rules>> {
        let (of, node) = stated.additional.node().zip(values.additional.node())?;
        let value = declared.and_then(|declared| declared.value());
        self.rules(of, node, self.schema.node(node).embedded, value)
            .map(Box::new)
    }

    fn properties(
        &self,
        stated: &Node,
        values: &Node,
        declared: Option<&Arc<Declared>>,
    ) -> BTreeMap<Text, Rules> {
        let mut properties = BTreeMap::new();
        for property in stated.properties.iter() {
            let Some(value) = values.property(&property.name) else {
                continue;
            };

            // A property whose name no identifier can have is declared by itself.
            let field = match coracle_cel::escape::escape(&property.name) {
                Some(_) => declared.and_then(|declared| declared.field(&property.name).cloned()),
                None => Declared::of_node(self.schema, value.node).map(Arc::new),
            };
            let Some(field) = field else {
                continue;
            };

            let resource = self.schema.node(value.node).embedded;
            if let Some(rules) = self.rules(property.node, value.node, resource, Some(&field)) {
                properties.insert(property.name.clone(), rules);
            }
        }
        properties
    }
}

impl Rules {
    fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && !self.is_invisible
            && self.items.is_none()
            && self.additional.is_none()
            && self.properties.is_empty()
            && self.all_of.is_empty()
    }
}
