//! Patch attributes of the value being merged, from the catalogue.

use super::Error;
use crate::Text;
use crate::catalog::{FieldRef, Node, Patch, Shape};

/// The type of an object that is being merged.
#[derive(Clone, Copy)]
pub(super) struct Schema<'p> {
    node: Node<'p>,
}

/// A member: its type, or for a list that of its elements, and its patch attributes.
#[derive(Clone, Copy)]
pub(super) struct Member<'p> {
    pub(super) schema: Schema<'p>,
    pub(super) patch: &'p Patch,
}

impl Member<'_> {
    /// The key that identifies elements; empty for lists of scalars.
    pub(super) fn merge_key(&self) -> &str {
        self.patch.merge_key.as_deref().unwrap_or_default()
    }
}

impl<'p> Schema<'p> {
    pub(super) fn of(node: Node<'p>) -> Schema<'p> {
        Schema { node }
    }

    /// The member of that name, which is an object on both sides.
    pub(super) fn object(self, name: &str) -> Result<Member<'p>, Error> {
        let field = self.field(name)?;
        Ok(Member {
            schema: Schema { node: field.node() },
            patch: &field.extra().patch,
        })
    }

    /// The member of that name, which is a list on both sides.
    pub(super) fn list(self, name: &str) -> Result<Member<'p>, Error> {
        let field = self.field(name)?;
        let patch = &field.extra().patch;

        let node = field.node();
        match node.shape {
            Shape::List(_) | Shape::Strings => {
                let item = node.item().expect("lists have items");
                if matches!(item.shape, Shape::List(_) | Shape::Strings | Shape::Bytes) {
                    return Err(Error::ListOfListsDeclared);
                }
                Ok(Member {
                    schema: Schema { node: item },
                    patch,
                })
            }
            // Upstream dereferences one pointer, whatever it points to.
            Shape::Bytes => Ok(Member {
                schema: self,
                patch,
            }),
            _ if field.field.presence.pointer() => Ok(Member {
                schema: Schema { node },
                patch,
            }),
            _ => Err(Error::NotAList),
        }
    }

    /// Go's kind of this type.
    pub(super) fn kind(self) -> &'static str {
        match self.node.shape {
            Shape::String => "string",
            Shape::Bool => "bool",
            Shape::Int32 => "int32",
            Shape::Int64 => "int64",
            Shape::Double => "float64",
            Shape::Raw(crate::catalog::RawKind::Any) => "interface",
            Shape::Bytes | Shape::Strings | Shape::List(_) => "slice",
            Shape::Map(_) => "map",
            _ => "struct",
        }
    }

    fn field(self, name: &str) -> Result<FieldRef<'p>, Error> {
        let unknown = |of: String| Error::UnknownField {
            of,
            field: Text::new(name),
        };

        let Some(of) = self.node.as_struct() else {
            return Err(match self.kind() {
                // A struct in upstream, without named members.
                "struct" => unknown(
                    self.node
                        .go_type()
                        .rsplit('.')
                        .next()
                        .unwrap_or_default()
                        .to_string(),
                ),
                kind => Error::NotAStruct(kind),
            });
        };

        // Upstream falls back to a case-insensitive match.
        let field = of.field(name).or_else(|| {
            of.iter()
                .find(|field| field.name().eq_ignore_ascii_case(name))
        });

        field.ok_or_else(|| unknown(of.short_name().to_string()))
    }
}
