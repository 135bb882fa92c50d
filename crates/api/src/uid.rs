//! UIDs, which distinguish an object from any other that ever had its name.

use std::fmt;
use std::str::FromStr;

/// A UUID, which the server assigns to every object: `0b9c1fd2-6c1b-4e83-9f3a-5a7f2f0d5b11`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid([u8; 16]);

/// The text is not 36 characters of hexadecimal digits and dashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID")]
pub struct NotAUid;

impl Uid {
    /// A version 4 UUID from random bits.
    pub fn from_random(mut random: [u8; 16]) -> Uid {
        random[6] = random[6] & 0x0f | 0x40;
        random[8] = random[8] & 0x3f | 0x80;
        Uid(random)
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl FromStr for Uid {
    type Err = NotAUid;

    fn from_str(text: &str) -> Result<Uid, NotAUid> {
        let text = text.as_bytes();
        if text.len() != 36 || DASHES.iter().any(|index| text[*index] != b'-') {
            return Err(NotAUid);
        }

        let mut digits = (0..36)
            .filter(|index| !DASHES.contains(index))
            .map(|index| char::from(text[index]).to_digit(16));

        let mut bytes = [0; 16];
        for byte in &mut bytes {
            let (high, low) = digits
                .next()
                .flatten()
                .zip(digits.next().flatten())
                .ok_or(NotAUid)?;
            *byte = u8::try_from(high << 4 | low).expect("two hexadecimal digits are a byte");
        }

        Ok(Uid(bytes))
    }
}

impl fmt::Display for Uid {
    /// In one write: every request and every object has one.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; 36];
        let indices = (0..36).filter(|index| !DASHES.contains(index));
        let halves = self.0.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        for (index, half) in indices.zip(halves) {
            text[index] = DIGITS[usize::from(half)];
        }
        out.write_str(std::str::from_utf8(&text).expect("digits and dashes are ASCII"))
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Uid({self})")
    }
}

const DASHES: [usize; 4] = [8, 13, 18, 23];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bits_become_a_uuid_of_version_four() {
        assert_eq!(
            Uid::from_random([0xff; 16]).to_string(),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
        assert_eq!(
            Uid::from_random([0; 16]).to_string(),
            "00000000-0000-4000-8000-000000000000"
        );
    }

    #[test]
    fn a_uuid_reads_back_and_nothing_else_does() {
        let text = "0b9c1fd2-6c1b-4e83-9f3a-5a7f2f0d5b11";
        assert_eq!(text.parse::<Uid>().unwrap().to_string(), text);
        for bad in [
            "",
            "0b9c1fd26c1b4e839f3a5a7f2f0d5b11",
            "0b9c1fd2-6c1b-4e83-9f3a-5a7f2f0d5b1g",
            "é",
        ] {
            assert_eq!(bad.parse::<Uid>(), Err(NotAUid), "{bad}");
        }
    }
}
