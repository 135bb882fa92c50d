//! Base64 as Go decodes it.

use base64::DecodeError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Decodes; or where the first wrong byte is. Line ends are ignored.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    STANDARD.decode(&joined).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
        DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => joined.len() / 4 * 4,
    })
}
