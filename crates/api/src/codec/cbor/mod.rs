//! CBOR, as upstream writes and reads it while the feature gate `CBORServingAndStorage` is on.
//!
//! A document begins with the tag of self-described CBOR. Texts are byte strings, bytes are byte
//! strings with the tag "expected base64", and everything else follows from its JSON: so what is
//! read becomes JSON text first, and is decoded by the rules of JSON.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{CborError, to_json};
pub use encode::{encode, encode_event};

/// Self-described CBOR, the beginning of every document.
pub const MAGIC: &[u8] = &[0xd9, 0xd9, 0xf7];

/// Tags of byte strings: what they become where a text is wanted.
const EXPECTED_BASE64URL: u64 = 21;
const EXPECTED_BASE64: u64 = 22;
const EXPECTED_BASE16: u64 = 23;

/// The kinds of data items, in the upper three bits of the first byte.
mod major {
    pub(super) const UNSIGNED: u8 = 0;
    pub(super) const NEGATIVE: u8 = 1;
    pub(super) const BYTES: u8 = 2;
    pub(super) const TEXT: u8 = 3;
    pub(super) const ARRAY: u8 = 4;
    pub(super) const MAP: u8 = 5;
    pub(super) const TAG: u8 = 6;
    pub(super) const SIMPLE: u8 = 7;
}
