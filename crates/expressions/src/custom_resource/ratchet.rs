//! Whether a failed rule only warns, because the value was the same before.

use coracle_api::Value;
use coracle_api::schema::{Node, Schema, correlate};

/// A value, the one it replaces, and the nearest value above that replaces one.
#[derive(Clone, Copy)]
pub(super) struct Ratchet<'v> {
    schema: &'v Schema,
    /// `None`: nothing corresponds to this value.
    here: Option<Pair<'v>>,
    above: Option<Pair<'v>>,
}

#[derive(Clone, Copy)]
struct Pair<'v> {
    node: &'v Node,
    new: &'v Value,
    old: &'v Value,
}

impl<'v> Ratchet<'v> {
    /// Of an object that is new.
    pub(super) fn none(schema: &'v Schema) -> Ratchet<'v> {
        Ratchet {
            schema,
            here: None,
            above: None,
        }
    }

    pub(super) fn of_update(schema: &'v Schema, new: &'v Value, old: &'v Value) -> Ratchet<'v> {
        let node = schema.root();
        Ratchet {
            here: Some(Pair { node, new, old }),
            ..Ratchet::none(schema)
        }
    }

    /// Rules inside of `allOf` look at the nearest value above only.
    pub(super) fn in_all_of(self) -> Ratchet<'v> {
        Ratchet { here: None, ..self }
    }

    pub(super) fn member(self, name: &str) -> Ratchet<'v> {
        let Some(here) = self.here else {
            return self;
        };

        // Both versions of the object were converted to the same type.
        if self.above.is_none() && matches!(name, "apiVersion" | "kind") {
            return Ratchet::none(self.schema);
        }

        let pair = |here: Pair<'v>| {
            Some(Pair {
                node: self.schema.member(here.node, name)?,
                new: here.new.get(name)?,
                old: here.old.get(name)?,
            })
        };
        Ratchet {
            here: pair(here),
            above: Some(here),
            ..self
        }
    }

    /// An element, and the old one of the same keys.
    pub(super) fn element(self, new: &'v Value, old: Option<&'v Value>) -> Ratchet<'v> {
        let Some(here) = self.here else {
            return self;
        };

        let node = self.schema.item(here.node);
        Ratchet {
            here: node.zip(old).map(|(node, old)| Pair { node, new, old }),
            above: Some(here),
            ..self
        }
    }

    /// Whether the value, or what it is part of, is unchanged.
    pub(super) fn is_unchanged(&self) -> bool {
        self.here
            .or(self.above)
            .is_some_and(|pair| correlate::same(self.schema, pair.node, pair.new, pair.old))
    }
}
