//! Descriptions of types and fields, as OpenAPI documents and `kubectl explain` show them.
//!
//! Each is in the binary once, in a text of its own, so that its memory pages are loaded only when
//! they are used.

use super::{BUILTIN, Column, Described, FieldRef, Struct};

const TEXTS: &str = include_str!(concat!(env!("OUT_DIR"), "/descriptions.txt"));

include!(concat!(env!("OUT_DIR"), "/descriptions.rs"));

impl<'p> Struct<'p> {
    /// The description of the type; empty if there is none.
    pub fn description(self) -> &'static str {
        self.built_in()
            .map_or("", |of| text(OF_TYPES[usize::from(of.id.0)]))
    }

    /// The description of one of its fields; empty if there is none.
    pub fn field_description(self, field: FieldRef<'p>) -> &'static str {
        let index = self
            .built_in()
            .and_then(|of| Some((of, of.position(field.name())?)));
        index.map_or("", |(of, index)| {
            text(OF_FIELDS[of.declared.fields.start as usize + index])
        })
    }

    /// Itself, or the type it was copied from.
    fn built_in(self) -> Option<Struct<'static>> {
        if std::ptr::eq(self.page, &raw const BUILTIN) {
            return Some(BUILTIN.struct_of(self.id));
        }
        if self.declared.package.is_empty() {
            None
        } else {
            BUILTIN.type_named(&self.declared.name)
        }
    }

    /// `io.k8s.api.core.v1.Pod`: its name in OpenAPI documents. Empty where it has none.
    pub fn definition_name(self) -> String {
        match self.declared.package.strip_prefix("k8s.io") {
            Some(package) => format!("io.k8s{}.{}", package.replace('_', "-"), self.short_name()),
            None => String::new(),
        }
    }
}

/// The description of a named scalar, by definition name:
/// `io.k8s.apimachinery.pkg.api.resource.Quantity`.
pub fn scalar_description(definition_name: &str) -> &'static str {
    match OF_SCALARS.binary_search_by_key(&definition_name, |(name, _)| name) {
        Ok(index) => text(OF_SCALARS[index].1),
        Err(_) => "",
    }
}

impl Column {
    /// The description of the column for objects of that type.
    pub fn description<'a>(&'a self, of: Struct<'a>) -> &'a str {
        match &self.described {
            Described::Words(words) => words,
            Described::Field(path) => {
                field_at(of, path).map_or("", |(of, field)| of.field_description(field))
            }
        }
    }
}

/// The field at a path, and its struct. Lists on the way stand for their elements.
fn field_at<'p>(of: Struct<'p>, path: &str) -> Option<(Struct<'p>, FieldRef<'p>)> {
    let Some((name, rest)) = path.split_once('.') else {
        return Some((of, of.field(path)?));
    };
    let mut node = of.field(name)?.node();
    while let Some(item) = node.item() {
        node = item;
    }
    field_at(node.as_struct()?, rest)
}

fn text((start, len): (u32, u32)) -> &'static str {
    &TEXTS[start as usize..(start + len) as usize]
}

/// Size of the descriptions in the binary, in bytes.
#[cfg(test)]
pub(super) fn size() -> usize {
    TEXTS.len() + size_of_val(&OF_TYPES) + size_of_val(&OF_FIELDS) + size_of_val(&OF_SCALARS)
}
