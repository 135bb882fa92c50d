//! Compiles schemas: of custom resources from their `openAPIV3Schema`, of built-in kinds from the
//! catalogue.

mod from_catalog;
mod from_props;

pub use from_catalog::for_kind;
pub(super) use from_props::{Purpose, build};

use super::node::{Additional, Flags, Node, NodeId, Types, Unset};
use super::{PatternError, Props, Schema};

/// Why a schema cannot be compiled. A definition that passed [`super::check`] fails only for its
/// regular expressions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    #[error("pattern {pattern:?}")]
    Pattern {
        pattern: String,
        source: PatternError,
    },
}

impl Schema {
    /// Compiles the `openAPIV3Schema` of a custom resource.
    ///
    /// # Errors
    /// A pattern is no regular expression, or too large.
    pub fn new(props: Props<'_>) -> Result<Schema, BuildError> {
        let mut schema = build(props, Purpose::Objects)?;
        schema.prune_defaults();
        Ok(schema)
    }

    /// Defaults of old definitions may contain fields that their own schema does not have.
    fn prune_defaults(&mut self) {
        for index in 0..self.nodes.len() {
            let Some(mut default) = self.nodes[index].default.take() else {
                continue;
            };
            let node = &self.nodes[index];
            self.prune_below(&mut default, Some(node), node.embedded);
            self.nodes[index].default = Some(default);
        }
    }

    /// Computes the flags of each node from its own and those below it. Types of the catalogue may
    /// be recursive, so this iterates until nothing changes; parents come before their children, so
    /// one round usually suffices.
    fn compute_flags(&mut self) {
        for node in &mut self.nodes {
            node.flags = own_flags(node);
        }

        loop {
            let mut changed = false;
            for index in (0..self.nodes.len()).rev() {
                let mut flags = self.nodes[index].flags;
                for child in children(&self.nodes[index]) {
                    flags.add(self.nodes[child.index()].flags);
                }
                changed |= flags != self.nodes[index].flags;
                self.nodes[index].flags = flags;
            }

            if !changed {
                break;
            }
        }

        self.compute_filled();
    }

    /// Computes which properties of each node defaulting sets: those with a default, and
    /// non-pointer structs that have such properties themselves.
    fn compute_filled(&mut self) {
        let mut known = vec![None; self.nodes.len()];
        for index in 0..self.nodes.len() {
            let properties = self.nodes[index].properties.clone();
            let filled = properties
                .iter()
                .enumerate()
                .filter(|(_, of)| self.is_filled(of.node, &mut known));

            let indices = filled
                .map(|(at, _)| u16::try_from(at).expect("a struct has few fields"))
                .collect();
            self.nodes[index].filled = indices;
        }
    }

    fn is_filled(&self, id: NodeId, known: &mut [Option<bool>]) -> bool {
        let node = self.node(id);
        if node.default.is_some() || node.unset != Unset::Never || !node.flags.has(Flags::DEFAULTS)
        {
            return node.default.is_some();
        }

        if let Some(filled) = known[id.index()] {
            return filled;
        }

        // A non-pointer struct cannot contain itself, so this ends.
        let filled = node
            .properties
            .iter()
            .any(|below| self.is_filled(below.node, known));
        known[id.index()] = Some(filled);

        filled
    }
}

fn own_flags(node: &Node) -> Flags {
    let mut flags = Flags::default();
    let mut set = |condition: bool, flag: Flags| {
        if condition {
            flags.add(flag);
        }
    };

    let checked =
        node.types != Types::Any || node.checks.is_some() || node.additional == Additional::Refused;
    set(checked, Flags::CHECKS);

    set(node.default.is_some() || node.milli, Flags::DEFAULTS);
    set(
        matches!(
            node.list,
            Some(crate::catalog::ListType::Set | crate::catalog::ListType::Map(_))
        ),
        Flags::LISTS,
    );

    set(node.embedded, Flags::EMBEDDED);
    set(!node.rules.is_empty(), Flags::RULES);

    // Members of any type are kept, but nothing in them is known.
    let unknown_below = matches!(node.additional, Additional::Any | Additional::Refused);
    set(!node.preserve || unknown_below, Flags::PRUNES);
    set(!node.nullable && node.default.is_none(), Flags::NULLS);

    flags
}

fn children(node: &Node) -> impl Iterator<Item = NodeId> {
    let properties = node.properties.iter().map(|property| property.node);
    properties.chain(node.additional.node()).chain(node.items)
}
