//! Encodes values as compact JSON: members in order, escaped as upstream's encoder does.

use crate::{Map, Value};

/// Appends `value` as compact JSON.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => write_int(*number, out),
        Value::Float(number) => write_float(*number, out),
        Value::String(text) => write_string(text, out),
        Value::Raw(raw) => out.extend_from_slice(raw.as_str().as_bytes()),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => write_map(map, out),
    }
}

/// Appends `value` as indented JSON: a member or element per line, four spaces per level.
pub fn write_pretty(value: &Value, level: usize, out: &mut Vec<u8>) {
    let line = |level: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', 4 * level));
    };

    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push(b'[');

            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                line(level + 1, out);
                write_pretty(item, level + 1, out);
            }

            line(level, out);
            out.push(b']');
        }
        Value::Object(map) if !map.is_empty() => {
            out.push(b'{');

            for (index, (name, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                line(level + 1, out);
                write_string(name, out);
                out.extend_from_slice(b": ");
                write_pretty(value, level + 1, out);
            }

            line(level, out);
            out.push(b'}');
        }
        Value::Raw(raw) => match super::parse(raw.as_str().as_bytes()) {
            Ok(tree) => write_pretty(&tree, level, out),
            Err(_) => write(value, out),
        },
        other => write(other, out),
    }
}

pub(super) fn write_map(map: &Map, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, value)) in map.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        write(value, out);
    }
    out.push(b'}');
}

fn write_int(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();

    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).expect("a digit");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }

    if number < 0 {
        out.push(b'-');
    }

    out.extend_from_slice(&digits[at..]);
}

/// The shortest digits that read back as the same number; an exponent only for the very small and
/// very large. JSON has no notation for non-finite numbers, and no decoder here produces one.
fn write_float(number: f64, out: &mut Vec<u8>) {
    let size = number.abs();
    if !number.is_finite() {
        out.extend_from_slice(b"null");
    } else if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').expect("exponent form has an e");
        out.extend_from_slice(digits.as_bytes());
        out.push(b'e');
        if !exponent.starts_with('-') {
            out.push(b'+');
        }
        out.extend_from_slice(exponent.as_bytes());
    } else {
        out.extend_from_slice(format!("{number}").as_bytes());
    }
}

/// Appends `text` in quotes.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();

    let mut start = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if PLAIN[usize::from(*byte)] {
            continue;
        }

        // U+2028 and U+2029 end a line in JavaScript: E2 80 A8 and E2 80 A9.
        let separator = *byte == 0xe2
            && bytes.get(at + 1) == Some(&0x80)
            && matches!(bytes.get(at + 2), Some(0xa8 | 0xa9));
        if *byte >= 0x80 && !separator {
            continue;
        }

        out.extend_from_slice(&bytes[start..at]);
        start = at + 1;

        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0xe2 => {
                out.extend_from_slice(if bytes[at + 2] == 0xa8 {
                    b"\\u2028"
                } else {
                    b"\\u2029"
                });
                start = at + 3;
            }
            other => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(other >> 4)]);
                out.push(HEX[usize::from(other & 15)]);
            }
        }
    }

    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

/// Bytes that need no escaping in a string.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        plain[byte] = false;
        byte += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain[b'<' as usize] = false;
    plain[b'>' as usize] = false;
    plain[b'&' as usize] = false;
    plain[0xe2] = false;
    plain
};
