//! Encodes JSON in upstream's order: kind and apiVersion first, then the fields as its structs
//! declare them.
//!
//! Upstream's structs follow their protobuf numbers, so the catalogue's wires give the order.
//! Members that the type does not declare come last, sorted by name.

use std::cmp::Ordering;

use super::write::{write, write_map, write_string};
use crate::catalog::{Node, Shape, Span, Struct, WireTo};
use crate::value::SearchKey;
use crate::{Map, Value};

/// Appends `value` as compact JSON, the members of structs in upstream's order.
pub fn write_typed(value: &Value, node: Node<'_>, out: &mut Vec<u8>) {
    match (node.shape, value) {
        (Shape::Struct(id), Value::Object(map)) => write_struct(map, node.page.struct_of(id), out),
        (Shape::List(_), Value::Array(items)) => {
            let item = node.item().expect("a list has items");
            out.push(b'[');

            for (index, element) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_typed(element, item, out);
            }

            out.push(b']');
        }
        (Shape::Map(_), Value::Object(map)) => {
            let item = node.item().expect("a map has values");
            out.push(b'{');

            for (index, (name, element)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(name, out);
                out.push(b':');
                write_typed(element, item, out);
            }

            out.push(b'}');
        }
        _ => write(value, out),
    }
}

fn write_struct(map: &Map, of: Struct<'_>, out: &mut Vec<u8>) {
    // Upstream has no type for custom resources: all their members are in alphabetical order.
    if of.is_open() {
        return write_map(map, out);
    }

    let (mut few, mut many) = ([ABSENT; FEW], Vec::new());
    let indices = if of.fields().len() <= FEW {
        &mut few[..of.fields().len()]
    } else {
        many.resize(of.fields().len(), ABSENT);
        &mut many[..]
    };
    find(map, of, indices);

    let mut writer = Members {
        map,
        of,
        indices,
        out,
        first: true,
        written: 0,
    };
    writer.out.push(b'{');

    for name in ["kind", "apiVersion"] {
        if let Some(index) = of.position(name)
            && of.tag(name).is_empty()
        {
            writer.member(index);
        }
    }

    writer.wires(of.wires());

    if writer.written < map.len() {
        writer.rest();
    }

    writer.out.push(b'}');
}

/// Most types have no more fields than this.
const FEW: usize = 64;
const ABSENT: u32 = u32::MAX;

/// For each field of the type, finds the index of its member. Both are sorted by name, so one walk
/// suffices.
fn find(map: &Map, of: Struct<'_>, indices: &mut [u32]) {
    let mut fields = of.fields().iter().enumerate().peekable();
    for (member, name) in map.keys().enumerate() {
        let key = SearchKey::new(name);
        while let Some((index, field)) = fields.peek() {
            let seen = key.compare(&field.name);
            if seen == Ordering::Equal {
                indices[*index] = u32::try_from(member).unwrap_or(ABSENT);
            }
            if seen == Ordering::Greater {
                break;
            }
            fields.next();
        }
    }
}

struct Members<'a, 'p> {
    map: &'a Map,
    of: Struct<'p>,
    /// For each field the index of its member.
    indices: &'a [u32],
    out: &'a mut Vec<u8>,
    first: bool,
    written: usize,
}

impl Members<'_, '_> {
    fn wires(&mut self, wires: Span) {
        for wire in wires.of(&self.of.page.wires) {
            // Types have many more fields than objects have members.
            if self.written == self.map.len() {
                return;
            }
            match wire.to {
                WireTo::Inline(below) => self.wires(below),
                WireTo::Field(index) => self.member(usize::from(index)),
            }
        }
    }

    fn member(&mut self, index: usize) {
        let field = self.of.at(index);
        if let Some((_, value)) = self.map.at(self.indices[index] as usize) {
            self.name(field.name());
            write_typed(value, field.node(), self.out);
            self.written += 1;
        }
    }

    fn name(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        write_string(name, self.out);
        self.out.push(b':');
    }

    /// Members without a wire: of types that have no protobuf form, and of open structs.
    fn rest(&mut self) {
        let map = self.map;
        for (name, value) in map.iter() {
            let field = self.of.field(name);
            let written = match field {
                Some(_) => !self.of.tag(name).is_empty() || matches!(name, "kind" | "apiVersion"),
                None => false,
            };

            if written {
                continue;
            }

            self.name(name);

            match field {
                Some(field) => write_typed(value, field.node(), self.out),
                None => write(value, self.out),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::BUILTIN;
    use crate::codec::json;

    #[test]
    fn members_come_in_upstreams_order() {
        let text = br#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":null,"labels":{"b":"","a":""},
            "name":"x","namespace":"n","uid":"u"},"spec":{"containers":[{"image":"i","name":"c","resources":{}}],
            "volumes":[{"emptyDir":{},"name":"v"}]}}"#;
        let of = BUILTIN.root(BUILTIN.kind_of("v1", "Pod").unwrap());
        let value = json::decode(text, Some(of.node())).unwrap().value;
        let mut out = Vec::new();
        write_typed(&value, of.node(), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","namespace":"n","uid":"u","creationTimestamp":null,"labels":{"a":"","b":""}},"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","resources":{}}]}}"#
        );
    }
}
