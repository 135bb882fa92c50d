//! Lists, maps and structs.

use super::{Abort, Builder, Built};
use crate::ast::{Entry, Expr, Field};
use crate::parse::tree::{Element, Leaf, MapParts, StructParts, Tree};

impl Builder<'_> {
    pub(super) fn list(&mut self, open: Option<Leaf>, parts: &[Element]) -> Built {
        let id = self.id_of(open);
        let mut elements = Vec::with_capacity(parts.len());
        let mut optional = Vec::new();
        for (index, part) in (0..).zip(parts) {
            elements.push(self.visit(part.value)?);
            if part.optional {
                optional.push(index);
            }
        }
        self.add(id, Expr::List { elements, optional })
    }

    pub(super) fn map(&mut self, open: Option<Leaf>, parts: Option<&MapParts>) -> Built {
        let id = self.id_of(open);
        let entries = match parts {
            None => Vec::new(),
            Some(parts) => self.entries(parts)?,
        };
        self.add(id, Expr::Map { entries })
    }

    /// None of them, if the text lacks a part of one.
    fn entries(&mut self, parts: &MapParts) -> Built<Vec<Entry>> {
        let mut entries = Vec::with_capacity(parts.colons.len());
        for (index, colon) in parts.colons.iter().enumerate() {
            let id = self.new_id(colon.offset);
            let (Some(key), Some(value)) = (parts.keys.get(index), parts.values.get(index)) else {
                return Ok(Vec::new());
            };
            let optional = key.optional;
            let key = self.visit(key.value)?;
            let value = self.visit(*value)?;
            entries.push(Entry {
                id,
                key,
                value,
                optional,
            });
        }
        Ok(entries)
    }

    pub(super) fn construct(&mut self, tree: &Tree) -> Built {
        let Tree::Struct {
            leading_dot,
            names,
            open,
            fields,
        } = tree
        else {
            return Err(Abort);
        };

        let mut name = String::new();
        for part in names {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(part.text(self.source.text()));
        }
        if *leading_dot {
            name.insert(0, '.');
        }

        let id = self.id_of(*open);
        let fields = match fields {
            None => Vec::new(),
            Some(parts) => self.fields(parts)?,
        };
        let name = name.into();
        self.add(id, Expr::Struct { name, fields })
    }

    fn fields(&mut self, parts: &StructParts) -> Built<Vec<Field>> {
        let mut fields = Vec::with_capacity(parts.fields.len());
        for (index, field) in parts.fields.iter().enumerate() {
            let (Some(colon), Some(value)) = (parts.colons.get(index), parts.values.get(index))
            else {
                return Ok(Vec::new());
            };
            let id = self.new_id(colon.offset);
            let name = match self.field_name(field.name) {
                Ok(name) => name,
                Err(message) => {
                    self.report(parts.start, message)?;
                    continue;
                }
            };
            let value = self.visit(*value)?;
            fields.push(Field {
                id,
                name,
                value,
                optional: field.optional,
            });
        }
        Ok(fields)
    }
}
