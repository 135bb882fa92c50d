//! Compiling schemas: of custom resources from what their authors wrote, of built-in kinds from the catalogue.

mod from_catalog;
mod from_props;

pub use from_catalog::for_kind;
pub(super) use from_props::{Purpose, build};

use super::node::{Additional, Flags, Node, NodeId, Types};
use super::{PatternError, Props, Schema};

/// Why a schema cannot be compiled. A definition that passed [`super::check`] can, but for its regular expressions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error("pattern {pattern:?}")]
    Pattern { pattern: String, source: PatternError },
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of a custom resource.
    ///
    /// # Errors
    /// A pattern is no regular expression, or one that is too large to run.
    pub fn new(props: Props<'_>) -> Result<Schema, BuildError> {
        let mut schema = build(props, Purpose::Objects)?;
        schema.prune_defaults();
        Ok(schema)
    }

    /// Defaults of old definitions may hold what their own schema does not know.
    fn prune_defaults(&mut self) {
        for place in 0..self.nodes.len() {
            let Some(mut default) = self.nodes[place].default.take() else { continue };
            let node = &self.nodes[place];
            self.prune_below(&mut default, Some(node), node.embedded);
            self.nodes[place].default = Some(default);
        }
    }

    /// Works out what concerns each node or something below it. Types of the catalogue may contain themselves, so
    /// this goes on until nothing changes; parents stand before their children, so one round is the rule.
    fn settle_flags(&mut self) {
        for node in &mut self.nodes {
            node.flags = own_flags(node);
        }
        loop {
            let mut changed = false;
            for place in (0..self.nodes.len()).rev() {
                let mut flags = self.nodes[place].flags;
                for child in children(&self.nodes[place]) {
                    flags.add(self.nodes[child.place()].flags);
                }
                changed |= flags != self.nodes[place].flags;
                self.nodes[place].flags = flags;
            }
            if !changed {
                return;
            }
        }
    }
}

fn own_flags(node: &Node) -> Flags {
    let mut flags = Flags::default();
    let mut set = |condition: bool, flag: Flags| {
        if condition {
            flags.add(flag);
        }
    };
    let checked = node.types != Types::Any || node.checks.is_some() || node.additional == Additional::Refused;
    set(checked, Flags::CHECKS);
    set(node.default.is_some(), Flags::DEFAULTS);
    set(
        matches!(node.list, Some(crate::catalog::ListType::Set | crate::catalog::ListType::Map(_))),
        Flags::LISTS,
    );
    set(node.embedded, Flags::EMBEDDED);
    set(!node.rules.is_empty(), Flags::RULES);
    // Members that may be anything are kept, but nothing in them is known.
    let unknown_below = matches!(node.additional, Additional::Any | Additional::Refused);
    set(!node.preserve || unknown_below, Flags::PRUNES);
    set(!node.nullable && node.default.is_none(), Flags::NULLS);
    flags
}

fn children(node: &Node) -> impl Iterator<Item = NodeId> {
    let properties = node.properties.iter().map(|property| property.node);
    properties.chain(node.additional.node()).chain(node.items)
}
