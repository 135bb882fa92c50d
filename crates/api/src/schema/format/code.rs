//! Formats of codes: colours, numbers with check digits, UUIDs, base64.

/// Groups of four characters, the last one padded; never empty.
pub(super) fn is_base64(text: &str) -> bool {
    let plain = |bytes: &[u8]| {
        bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
    };

    let bytes = text.as_bytes();
    let filled = bytes
        .iter()
        .rev()
        .take(2)
        .take_while(|byte| **byte == b'=')
        .count();

    !bytes.is_empty() && bytes.len().is_multiple_of(4) && plain(&bytes[..bytes.len() - filled])
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text).as_bytes();
    matches!(digits.len(), 3 | 6) && digits.iter().all(u8::is_ascii_hexdigit)
}

/// `rgb(255, 0, 7)`.
pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inside) = text
        .strip_prefix("rgb(")
        .and_then(|rest| rest.strip_suffix(')'))
    else {
        return false;
    };

    let mut parts = inside.split(',');
    let good = parts
        .by_ref()
        .take(3)
        .filter(|part| is_channel(part.trim_matches(is_space)))
        .count();

    good == 3 && parts.next().is_none()
}

fn is_channel(digits: &str) -> bool {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    plain && digits.len() <= 3 && digits.parse::<u16>().is_ok_and(|number| number <= 255)
}

fn is_space(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\x0c' | '\r' | ' ')
}

/// `123-45-6789`, or with spaces.
pub(super) fn is_ssn(text: &str) -> bool {
    let shape = |(at, byte): (usize, &u8)| match at {
        3 | 6 => matches!(byte, b'-' | b' '),
        _ => byte.is_ascii_digit(),
    };
    text.len() == 11 && text.as_bytes().iter().enumerate().all(shape)
}

/// Weights 1 to 10, the sum a multiple of 11; X is ten.
pub(super) fn is_isbn10(text: &str) -> bool {
    let Some(digits) = isbn_digits::<10>(text) else {
        return false;
    };
    let weighted = digits
        .iter()
        .zip(1..)
        .map(|(digit, weight)| u32::from(*digit) * weight);
    digits[..9].iter().all(|digit| *digit < 10) && weighted.sum::<u32>().is_multiple_of(11)
}

/// Weights 1 and 3 in turn, the last digit completes to a multiple of 10.
pub(super) fn is_isbn13(text: &str) -> bool {
    let Some(digits) = isbn_digits::<13>(text) else {
        return false;
    };
    let weighted = digits
        .iter()
        .zip([1, 3].into_iter().cycle())
        .map(|(digit, weight)| u32::from(*digit) * weight);
    digits.iter().all(|digit| *digit < 10) && weighted.sum::<u32>().is_multiple_of(10)
}

/// The digits without dashes and white space between.
fn isbn_digits<const COUNT: usize>(text: &str) -> Option<[u8; COUNT]> {
    let mut digits = [0; COUNT];
    let mut count = 0;
    for character in text
        .chars()
        .filter(|character| !is_space(*character) && *character != '-')
    {
        let digit = match character {
            '0'..='9' => u8::try_from(u32::from(character) - u32::from('0')).ok()?,
            'X' => 10,
            _ => return None,
        };
        *digits.get_mut(count)? = digit;
        count += 1;
    }

    (count == COUNT).then_some(digits)
}

/// A number of one of the large issuers with a valid Luhn checksum. Other characters are ignored.
pub(super) fn is_credit_card(text: &str) -> bool {
    let mut digits = [0u8; 16];
    let mut count = 0;
    for digit in text.bytes().filter(u8::is_ascii_digit) {
        let Some(slot) = digits.get_mut(count) else {
            return false;
        };
        *slot = digit - b'0';
        count += 1;
    }

    let digits = &digits[..count];
    let doubled = |digit: u8| if digit < 5 { digit * 2 } else { digit * 2 - 9 };
    let sum = digits.iter().rev().zip([false, true].into_iter().cycle());
    let sum: u32 = sum
        .map(|(digit, twice)| u32::from(if twice { doubled(*digit) } else { *digit }))
        .sum();

    is_issued(digits) && sum.is_multiple_of(10)
}

fn is_issued(digits: &[u8]) -> bool {
    match digits {
        [4, ..] => matches!(digits.len(), 13 | 16),
        [5, 1..=5, ..] | [6, 0, 1, 1, ..] | [6, 5, ..] => digits.len() == 16,
        [3, 4 | 7, ..] => digits.len() == 15,
        [3, 0, 0..=5, ..] | [3, 6 | 8, ..] => digits.len() == 14,
        [2, 1, 3, 1, ..] | [1, 8, 0, 0, ..] => digits.len() == 15,
        [3, 5, ..] => digits.len() == 16,
        _ => false,
    }
}

/// 32 hexadecimal digits, in groups that may be joined by dashes. A version is the first digit of
/// the third group; the newer ones also have a variant, the first digit of the fourth.
pub(super) fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut rest = text.as_bytes();
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }

        let Some((digits, behind)) = rest.split_at_checked(length) else {
            return false;
        };
        let fits = match (group, version) {
            (2, Some(version)) => digits[0] == version,
            (3, Some(_)) if variant => matches!(digits[0], b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
            _ => true,
        };

        if !fits || !digits.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }

        rest = behind;
    }

    rest.is_empty()
}
