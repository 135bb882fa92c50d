//! CBOR as JSON text.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::{EXPECTED_BASE16, EXPECTED_BASE64, EXPECTED_BASE64URL, major};
use crate::codec::json;
use crate::time::{Time, Timestamp};
use crate::{Text, Value};

/// Why a document is refused. Upstream's texts where a client may compare them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CborError {
    #[error("EOF")]
    Empty,
    #[error("unexpected EOF")]
    Short,
    #[error("cbor: {0} bytes of extraneous data starting at index {1}")]
    Extraneous(usize, usize),
    #[error("cbor: exceeded max nested level {MAX_DEPTH}")]
    TooDeep,
    #[error("cbor: found duplicate map key {key:?} at map element index {index}")]
    RepeatedKey { key: String, index: usize },
    #[error("cbor: invalid UTF-8 string")]
    NotUtf8,
    #[error("cbor: {0}")]
    Malformed(&'static str),
    #[error("cbor: {0} is not allowed")]
    Forbidden(&'static str),
}

/// As of trees of JSON.
const MAX_DEPTH: usize = json::MAX_TREE_DEPTH;

/// The JSON text of a document.
///
/// # Errors
/// It is malformed, or contains what JSON does not have.
pub fn to_json(document: &[u8]) -> Result<Vec<u8>, CborError> {
    if document.is_empty() {
        return Err(CborError::Empty);
    }
    let mut reader = Reader {
        bytes: document,
        at: 0,
        depth: 0,
    };
    let mut out = Vec::with_capacity(document.len() * 2);
    reader.item(&mut out)?;

    match document.len() - reader.at {
        0 => Ok(out),
        more => Err(CborError::Extraneous(more, reader.at)),
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    depth: usize,
}

/// How long an item is.
#[derive(Clone, Copy)]
enum Length {
    Definite(u64),
    /// Until a break.
    Indefinite,
}

/// The first byte of an item that ends one of indefinite length.
const BREAK: u8 = 0xff;

impl<'b> Reader<'b> {
    fn item(&mut self, out: &mut Vec<u8>) -> Result<(), CborError> {
        let (kind, argument) = self.head()?;
        match kind {
            major::UNSIGNED => {
                let number = i64::try_from(self.definite(argument)?).map_err(|_| TOO_LARGE)?;
                out.extend_from_slice(number.to_string().as_bytes());
            }
            major::NEGATIVE => {
                let number = i64::try_from(self.definite(argument)?).map_err(|_| TOO_LARGE)?;
                out.extend_from_slice((-1 - number).to_string().as_bytes());
            }
            major::BYTES => {
                let content = self.string(kind, argument)?;
                json::write_string(&String::from_utf8_lossy(&content), out);
            }
            major::TEXT => {
                let content = self.string(kind, argument)?;
                let text = String::from_utf8(content).map_err(|_| CborError::NotUtf8)?;
                json::write_string(&text, out);
            }
            major::TAG => {
                let tag = self.definite(argument)?;
                self.nested(|reader| reader.tagged(tag, out))?;
            }
            major::SIMPLE => self.simple(argument, out)?,
            major::ARRAY => self.nested(|reader| reader.array(argument, out))?,
            _ => self.nested(|reader| reader.map(argument, out))?,
        }
        Ok(())
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), CborError>,
    ) -> Result<(), CborError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(CborError::TooDeep);
        }
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn array(&mut self, length: Argument, out: &mut Vec<u8>) -> Result<(), CborError> {
        out.push(b'[');
        let mut is_first = true;
        self.each(length, |reader| {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            reader.item(out)
        })?;
        out.push(b']');
        Ok(())
    }

    fn map(&mut self, length: Argument, out: &mut Vec<u8>) -> Result<(), CborError> {
        out.push(b'{');
        let mut keys: HashSet<String> = HashSet::new();
        self.each(length, |reader| {
            let (kind, argument) = reader.head()?;
            if kind != major::BYTES && kind != major::TEXT {
                return Err(CborError::Malformed("a map key is not a string"));
            }
            let key = reader.string(kind, argument)?;
            let key = String::from_utf8(key).map_err(|_| CborError::NotUtf8)?;

            if !keys.is_empty() {
                out.push(b',');
            }
            json::write_string(&key, out);
            out.push(b':');
            let index = keys.len();
            if let Some(key) = keys.replace(key) {
                return Err(CborError::RepeatedKey { key, index });
            }
            reader.item(out)
        })?;
        out.push(b'}');
        Ok(())
    }

    fn each(
        &mut self,
        length: Argument,
        mut read: impl FnMut(&mut Self) -> Result<(), CborError>,
    ) -> Result<(), CborError> {
        match self.length(length)? {
            Length::Definite(count) => {
                for _ in 0..count {
                    read(self)?;
                }
            }
            Length::Indefinite => {
                while self.bytes.get(self.at) != Some(&BREAK) {
                    read(self)?;
                }
                self.at += 1;
            }
        }
        Ok(())
    }

    /// The content of a string; one of indefinite length has pieces of the same kind.
    fn string(&mut self, kind: u8, length: Argument) -> Result<Vec<u8>, CborError> {
        match self.length(length)? {
            Length::Definite(length) => Ok(self.take(length)?.to_vec()),
            Length::Indefinite => {
                let mut content = Vec::new();
                while self.bytes.get(self.at) != Some(&BREAK) {
                    let (piece, argument) = self.head()?;
                    if piece != kind {
                        return Err(CborError::Malformed(
                            "wrong element type for indefinite-length string",
                        ));
                    }
                    let length = self.definite(argument)?;
                    content.extend_from_slice(self.take(length)?);
                }
                self.at += 1;
                Ok(content)
            }
        }
    }

    fn tagged(&mut self, tag: u64, out: &mut Vec<u8>) -> Result<(), CborError> {
        match tag {
            2 | 3 => Err(CborError::Forbidden("bignum")),
            1 => {
                let mut seconds = Vec::new();
                self.item(&mut seconds)?;
                let seconds: Option<f64> = std::str::from_utf8(&seconds)
                    .ok()
                    .and_then(|text| text.parse().ok());
                let time = seconds.and_then(moment);
                let time = time.ok_or(CborError::Malformed("a tagged time is not a number"))?;
                json::write_string(&time, out);
                Ok(())
            }
            EXPECTED_BASE64URL | EXPECTED_BASE64 | EXPECTED_BASE16
                if self
                    .bytes
                    .get(self.at)
                    .is_some_and(|byte| byte >> 5 == major::BYTES) =>
            {
                let (kind, argument) = self.head()?;
                let content = self.string(kind, argument)?;
                let text = match tag {
                    EXPECTED_BASE64URL => URL_SAFE_NO_PAD.encode(content),
                    EXPECTED_BASE64 => STANDARD.encode(content),
                    _ => content.iter().map(|byte| format!("{byte:02x}")).collect(),
                };
                json::write_string(&text, out);
                Ok(())
            }
            _ => self.item(out),
        }
    }

    fn simple(&mut self, argument: Argument, out: &mut Vec<u8>) -> Result<(), CborError> {
        let text = match argument {
            Argument::Short(20) => "false",
            Argument::Short(21) => "true",
            Argument::Short(22) => "null",
            Argument::Half(bits) => return number(from_half(bits), out),
            Argument::Single(bits) => return number(f32::from_bits(bits).into(), out),
            Argument::Double(bits) => return number(f64::from_bits(bits), out),
            Argument::Indefinite => return Err(CborError::Malformed("unexpected \"break\" code")),
            _ => {
                return Err(CborError::Forbidden(
                    "a simple value other than false, true and null",
                ));
            }
        };
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// The kind of the next item and its argument.
    fn head(&mut self) -> Result<(u8, Argument), CborError> {
        let first = self.take(1)?[0];
        let argument = match first & 0x1f {
            short @ 0..=23 => Argument::Short(short),
            24 => Argument::Byte(self.take(1)?[0]),
            25 => Argument::Half(u16::from_be_bytes(self.fixed()?)),
            26 => Argument::Single(u32::from_be_bytes(self.fixed()?)),
            27 => Argument::Double(u64::from_be_bytes(self.fixed()?)),
            31 => Argument::Indefinite,
            _ => return Err(CborError::Malformed("invalid additional information")),
        };
        Ok((first >> 5, argument))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], CborError> {
        let bytes = self.take(N as u64)?;
        bytes.try_into().map_err(|_| CborError::Short)
    }

    fn take(&mut self, length: u64) -> Result<&'b [u8], CborError> {
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| self.at.checked_add(length));
        let found = end.and_then(|end| self.bytes.get(self.at..end));
        let found = found.ok_or(CborError::Short)?;
        self.at += found.len();
        Ok(found)
    }

    fn definite(&self, argument: Argument) -> Result<u64, CborError> {
        match self.length(argument)? {
            Length::Definite(value) => Ok(value),
            Length::Indefinite => Err(CborError::Malformed("invalid additional information 31")),
        }
    }

    fn length(&self, argument: Argument) -> Result<Length, CborError> {
        let length = match argument {
            Argument::Short(value) | Argument::Byte(value) => value.into(),
            Argument::Half(value) => value.into(),
            Argument::Single(value) => value.into(),
            Argument::Double(value) => value,
            Argument::Indefinite => return Ok(Length::Indefinite),
        };
        Ok(Length::Definite(length))
    }
}

/// What follows the kind of an item; floats have the same lengths as numbers.
#[derive(Clone, Copy)]
enum Argument {
    Short(u8),
    Byte(u8),
    Half(u16),
    Single(u32),
    Double(u64),
    Indefinite,
}

const TOO_LARGE: CborError = CborError::Malformed("a number overflows Go's int64");

/// A float in JSON, distinct from an integer.
fn number(value: f64, out: &mut Vec<u8>) -> Result<(), CborError> {
    if !value.is_finite() {
        return Err(CborError::Forbidden("a number that is infinite or none"));
    }
    let start = out.len();
    json::write(&Value::Float(value), out);
    if out[start..]
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'-')
    {
        out.extend_from_slice(b".0");
    }
    Ok(())
}

fn from_half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// Seconds since 1970 as a time.
fn moment(seconds: f64) -> Option<Text> {
    #[expect(clippy::cast_possible_truncation, reason = "checked before")]
    let whole = (seconds.abs() < 1e11).then(|| seconds.trunc() as i64)?;
    Some(Time(Timestamp::from_unix(whole, 0)).text())
}
