//! Trees as CBOR.

use super::{EXPECTED_BASE64, MAGIC, major};
use crate::catalog::{Node, Shape};
use crate::codec::{json, scalar};
use crate::{Map, Value};

/// A document. Without a type, bytes stay the base64 text that they are in JSON, which readers take
/// as well.
pub fn encode(value: &Value, node: Option<Node<'_>>) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    item(value, node, &mut out);
    out
}

/// An event of a watch around the document of an object.
pub fn encode_event(change: &str, object: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    head(major::MAP, 2, out);
    bytes(b"type", out);
    bytes(change.as_bytes(), out);
    bytes(b"object", out);
    out.extend_from_slice(object);
}

fn item(value: &Value, node: Option<Node<'_>>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0xf6),
        Value::Bool(flag) => out.push(if *flag { 0xf5 } else { 0xf4 }),
        Value::Int(number) => integer(*number, out),
        Value::Float(number) => float(*number, out),
        Value::String(text) => match node.map(|node| node.shape) {
            Some(Shape::Bytes) => match scalar::base64(text) {
                Ok(content) => {
                    head(major::TAG, EXPECTED_BASE64, out);
                    bytes(&content, out);
                }
                Err(_) => bytes(text.as_bytes(), out),
            },
            _ => bytes(text.as_bytes(), out),
        },
        Value::Raw(raw) => match json::parse(raw.as_str().as_bytes()) {
            Ok(value) => item(&value, None, out),
            Err(_) => out.push(0xf6),
        },
        Value::Array(items) => {
            head(major::ARRAY, items.len() as u64, out);
            let of_items = node.and_then(Node::item);
            items.iter().for_each(|value| item(value, of_items, out));
        }
        Value::Object(map) => object(map, node, out),
    }
}

fn object(map: &Map, node: Option<Node<'_>>, out: &mut Vec<u8>) {
    head(major::MAP, map.len() as u64, out);
    // Shorter names come first, as their heads are smaller.
    let mut members: Vec<(&str, &Value)> = map.iter().collect();
    members
        .sort_by(|(one, _), (other, _)| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));

    let of = node.and_then(Node::as_struct);
    for (name, value) in members {
        bytes(name.as_bytes(), out);
        let below = match of {
            Some(of) => of.field(name).map(|field| field.node()),
            None => node.and_then(Node::item),
        };
        item(value, below, out);
    }
}

fn bytes(content: &[u8], out: &mut Vec<u8>) {
    head(major::BYTES, content.len() as u64, out);
    out.extend_from_slice(content);
}

fn integer(number: i64, out: &mut Vec<u8>) {
    match u64::try_from(number) {
        Ok(number) => head(major::UNSIGNED, number, out),
        Err(_) => head(major::NEGATIVE, !number.cast_unsigned(), out),
    }
}

/// The first byte with the argument behind it, as short as possible.
fn head(kind: u8, argument: u64, out: &mut Vec<u8>) {
    let kind = kind << 5;
    let big = argument.to_be_bytes();
    match argument {
        0..=0x17 => out.push(kind | big[7]),
        0x18..=0xff => out.extend_from_slice(&[kind | 24, big[7]]),
        0x100..=0xffff => {
            out.push(kind | 25);
            out.extend_from_slice(&big[6..]);
        }
        0x1_0000..=0xffff_ffff => {
            out.push(kind | 26);
            out.extend_from_slice(&big[4..]);
        }
        _ => {
            out.push(kind | 27);
            out.extend_from_slice(&big);
        }
    }
}

/// In the shortest form that keeps the value.
fn float(number: f64, out: &mut Vec<u8>) {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the result is compared with the number"
    )]
    let single = number as f32;
    if f64::from(single).to_bits() != number.to_bits() {
        out.push(0xfb);
        return out.extend_from_slice(&number.to_be_bytes());
    }
    match half(single) {
        Some(half) => {
            out.push(0xf9);
            out.extend_from_slice(&half.to_be_bytes());
        }
        None => {
            out.push(0xfa);
            out.extend_from_slice(&single.to_be_bytes());
        }
    }
}

/// A number of 16 bits, if it is one exactly.
fn half(number: f32) -> Option<u16> {
    let bits = number.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let exponent = i32::try_from((bits >> 23) & 0xff).ok()? - 127;
    let fraction = bits & 0x007f_ffff;

    let half = match exponent {
        -127 if fraction == 0 => 0,
        // Normal numbers have ten bits of fraction.
        -14..=15 if fraction & 0x1fff == 0 => {
            let biased = u32::try_from(exponent + 15).ok()?;
            (biased << 10) | (fraction >> 13)
        }
        // Numbers below them have fewer, and no leading one.
        -24..=-15 => {
            let shift = u32::try_from(-exponent - 1).ok()?;
            let whole = fraction | 0x0080_0000;
            if whole & ((1 << shift) - 1) != 0 {
                return None;
            }
            whole >> shift
        }
        _ => return None,
    };
    u16::try_from(sign | half).ok()
}
