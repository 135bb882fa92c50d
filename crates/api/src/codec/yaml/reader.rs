//! Validates the bytes of a YAML stream: byte order mark, encoding, and allowed characters.
//!
//! Upstream reads its input in pieces and reports a bad character when it reads the piece with that
//! character, not earlier. So invalid input becomes text up to that piece, followed by an
//! [`Input::fault`] that the scanner reports when it needs more.

use std::borrow::Cow;

/// The text to scan, and the error after it.
pub(super) struct Input<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) fault: Option<&'static str>,
}

pub(super) fn read(bytes: &[u8]) -> Input<'_> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => read_utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => read_utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => read_utf8(rest, 3),
        _ => read_utf8(bytes, 0),
    }
}

fn read_utf8(bytes: &[u8], mark: usize) -> Input<'_> {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).expect("checked up to here")
        }
    };

    let (bad, fault) = match forbidden(valid) {
        Some(offset) => (offset, CONTROL_CHARACTER),
        None if valid.len() == bytes.len() => {
            return Input {
                text: Cow::Borrowed(valid),
                fault: None,
            };
        }
        None => (valid.len(), utf8_fault(&bytes[valid.len()..])),
    };

    Input {
        text: Cow::Borrowed(&valid[..piece_before(valid, bad, mark)]),
        fault: Some(fault),
    }
}

/// The start of the piece that contains the character at `bad`. The byte order mark is part of the
/// first piece.
fn piece_before(valid: &str, bad: usize, mark: usize) -> usize {
    let mut begin = 0;
    let mut end = PIECE - mark;
    while end <= bad {
        while !valid.is_char_boundary(end) {
            end -= 1;
        }
        begin = end;
        end += PIECE;
    }
    begin
}

/// The first character that YAML does not allow.
fn forbidden(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().find_map(|(offset, byte)| {
        let bad = match byte {
            b'\t' | b'\n' | b'\r' => false,
            0..=0x1F | 0x7F => true,
            0xC2 => bytes[offset + 1] < 0xA0 && bytes[offset + 1] != 0x85,
            0xEF => bytes[offset + 1] == 0xBF && bytes[offset + 2] >= 0xBE,
            _ => false,
        };
        bad.then_some(offset)
    })
}

/// The error of the first character of `bytes`, which is not UTF-8.
fn utf8_fault(bytes: &[u8]) -> &'static str {
    let width = match bytes[0] {
        0..=0x7F => 1,
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => return "invalid leading UTF-8 octet",
    };

    let Some(octets) = bytes.get(..width) else {
        return "incomplete UTF-8 octet sequence";
    };
    if octets[1..].iter().any(|octet| octet & 0xC0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }

    let overlong = matches!(
        (octets[0], octets[1]),
        (0xC0 | 0xC1, _) | (0xE0, 0..0xA0) | (0xF0, 0..0x90)
    );

    if overlong {
        "invalid length of a UTF-8 sequence"
    } else {
        "invalid Unicode character"
    }
}

fn read_utf16<'a>(bytes: &'a [u8], unit: fn([u8; 2]) -> u16) -> Input<'a> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut fault = None;

    let mut units = pairs.iter().map(|pair| unit(*pair)).peekable();
    while let Some(first) = units.next() {
        let character = match first {
            0xD800..=0xDBFF => match units.next() {
                Some(low @ 0xDC00..=0xDFFF) => char::from_u32(
                    0x1_0000 + ((u32::from(first) & 0x3FF) << 10) + (u32::from(low) & 0x3FF),
                ),
                Some(_) => {
                    fault = Some("expected low surrogate area");
                    break;
                }
                None => {
                    fault = Some("incomplete UTF-16 surrogate pair");
                    break;
                }
            },
            0xDC00..=0xDFFF => {
                fault = Some("unexpected low surrogate area");
                break;
            }
            _ => char::from_u32(u32::from(first)),
        };
        text.push(character.expect("surrogates are dealt with"));
    }

    if fault.is_none() && !odd.is_empty() {
        fault = Some("incomplete UTF-16 character");
    }

    match forbidden(&text) {
        Some(offset) => {
            text.truncate(offset);
            Input {
                text: Cow::Owned(text),
                fault: Some(CONTROL_CHARACTER),
            }
        }
        None => Input {
            text: Cow::Owned(text),
            fault,
        },
    }
}

const CONTROL_CHARACTER: &str = "control characters are not allowed";
/// Size of upstream's reads, in bytes.
const PIECE: usize = 512;
