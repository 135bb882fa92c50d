//! Generates objects from a seed: any kind, any mixture of set and unset fields, values of every
//! type.
//!
//! The same seed always generates the same object, so a failing property is reproduced from its
//! seed alone.

use crate::catalog::{FieldRef, Node, RawKind, Shape};
use crate::codec::json;
use crate::quantity::{Format, Quantity};
use crate::time::{Duration, MicroTime, Time, Timestamp};
use crate::{Map, Text, Value};

/// A pseudorandom sequence (splitmix64).
#[derive(Clone, Debug)]
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// True with a probability of 1 in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).expect("an index")]
    }
}

/// A value of the given type. Deeper levels set fewer fields, so that recursive types end.
pub fn value(node: Node<'_>, random: &mut Seeded) -> Value {
    Maker { random, depth: 0 }.value(node)
}

struct Maker<'r> {
    random: &'r mut Seeded,
    depth: u64,
}

impl Maker<'_> {
    fn value(&mut self, node: Node<'_>) -> Value {
        match node.shape {
            Shape::String => Value::String(self.text()),
            Shape::Bytes => Value::string(["", "YQ==", "YWI=", "YWJj", "/+8="][self.index(5)]),
            Shape::Bool => Value::Bool(self.random.one_in(2)),
            Shape::Int32 => {
                Value::Int([0, 1, -1, 80, i64::from(i32::MAX), i64::from(i32::MIN)][self.index(6)])
            }
            Shape::Int64 => Value::Int([0, 1, -7, 1 << 40, i64::MAX, i64::MIN][self.index(6)]),
            Shape::Double => Value::Float([0.0, 1.0, -2.5, 1e-9, 1e300][self.index(5)]),
            Shape::Quantity => Value::string(self.quantity()),
            Shape::Time => Value::String(Time(self.moment()).text()),
            Shape::MicroTime => Value::String(MicroTime(self.moment()).text()),
            Shape::Duration => Value::string(Duration::from_nanos(self.nanos()).to_string()),
            Shape::IntOrString if self.random.one_in(2) => Value::Int(self.nanos() % 1000),
            Shape::IntOrString => Value::String(self.text()),
            Shape::Raw(kind) => self.raw(kind),
            Shape::Strings => Value::Array(
                (0..self.index(3))
                    .map(|_| Value::String(self.text()))
                    .collect(),
            ),
            Shape::List(_) => {
                let item = node.item().expect("a list has items");
                Value::Array((0..1 + self.index(3)).map(|_| self.value(item)).collect())
            }
            Shape::Map(_) => {
                let item = node.item().expect("a map has values");
                Value::Object(
                    (0..1 + self.index(4))
                        .map(|_| (self.text(), self.value(item)))
                        .collect(),
                )
            }
            Shape::SchemaOrBool(_) if self.random.one_in(2) => Value::Bool(self.random.one_in(2)),
            Shape::SchemaOrStrings(_) if self.random.one_in(2) => {
                Value::Array(vec![Value::String(self.text())])
            }
            Shape::SchemaOrArray(id) if self.random.one_in(3) => {
                Value::Array(vec![self.value(node.page.struct_of(id).node())])
            }
            Shape::SchemaOrArray(id) | Shape::SchemaOrBool(id) | Shape::SchemaOrStrings(id) => {
                self.value(node.page.struct_of(id).node())
            }
            Shape::Struct(id) => {
                self.depth += 1;
                let fields = node
                    .page
                    .struct_of(id)
                    .iter()
                    .filter_map(|field| self.field(field));
                let map = fields.collect::<Map>();

                self.depth -= 1;

                Value::Object(map)
            }
        }
    }

    fn field(&mut self, field: FieldRef<'_>) -> Option<(Text, Value)> {
        if !self.random.one_in(1 + self.depth * 2) {
            return None;
        }
        let name = field.field.name.clone();
        if self.random.one_in(40) {
            return Some((name, Value::Null));
        }
        Some((name, self.value(field.node())))
    }

    fn index(&mut self, bound: u64) -> usize {
        usize::try_from(self.random.below(bound)).expect("small")
    }

    fn text(&mut self) -> Text {
        const TEXTS: [&str; 14] = [
            "",
            "a",
            "web-0",
            "yes",
            "1",
            "1.5",
            "null",
            "~",
            "é😀",
            "two words",
            "line\nbreak\n",
            "a: b #c",
            "\"q\"\\",
            "a-rather-long-text-that-no-inline-string-can-hold/1.2.3-éé-------------------------------------------------",
        ];

        Text::new(TEXTS[self.index(14)])
    }

    fn quantity(&mut self) -> String {
        let format =
            *self
                .random
                .pick(&[Format::DecimalSi, Format::BinarySi, Format::DecimalExponent]);
        let power = i32::try_from(self.random.below(9)).expect("small") - 3;
        Quantity::scaled(self.nanos() % 100_000, power, format).to_string()
    }

    /// A time from 1901 to 2106, to the microsecond.
    fn moment(&mut self) -> Timestamp {
        let seconds = i64::try_from(self.random.below(1 << 32)).expect("32 bits") - (1 << 31);
        let micros = u32::try_from(self.random.below(1_000_000)).expect("less than a million");
        Timestamp::from_unix(seconds, micros * 1000)
    }

    fn nanos(&mut self) -> i64 {
        self.random.number().cast_signed() >> self.random.below(60)
    }

    fn raw(&mut self, kind: RawKind) -> Value {
        const RAW: [&str; 4] = [
            r#"{"a":1e3,"b":[1.0,null]}"#,
            r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}}}"#,
            "{}",
            r#"{"z":1,"a":2}"#,
        ];

        let text = RAW[self.index(4)].as_bytes();
        match kind {
            // A tree, so no number keeps its notation.
            RawKind::Any => Value::Array(vec![
                Value::Int(self.nanos()),
                Value::String(self.text()),
                Value::Float(2.5),
            ]),
            _ => Value::Raw(json::raw(text).expect("JSON")),
        }
    }
}
