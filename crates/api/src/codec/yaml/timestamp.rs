//! Detects timestamps. Such a scalar stays a string, but is printed with quotes.

/// `2001-12-14`, `2001-12-14T21:59:43.10-05:00`, `2001-12-14 21:59:43.10`; all parts but the year
/// may be short.
pub(super) fn is_timestamp(text: &str) -> bool {
    let year = text.bytes().take_while(u8::is_ascii_digit).count();
    if year != 4 {
        return false;
    }

    let (Ok(year), Some(rest)) = (text[..4].parse(), text[4..].strip_prefix('-')) else {
        return false;
    };

    let Some(rest) = date(year, rest) else {
        return false;
    };
    match rest.as_bytes().first() {
        None => true,
        Some(b'T' | b't') => clock(&rest[1..]).is_some_and(is_zone),
        Some(b' ') => clock(rest.trim_start_matches(' ')) == Some(""),
        Some(_) => false,
    }
}

/// The text after `month-day`, if that is a valid date.
fn date(year: u32, text: &str) -> Option<&str> {
    let (month, rest) = number(text)?;
    let (day, rest) = number(rest.strip_prefix('-')?)?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(rest)
}

/// The text after `hour:minute:second.fraction`.
fn clock(text: &str) -> Option<&str> {
    let (hour, rest) = number(text)?;
    let (minute, rest) = number(rest.strip_prefix(':')?)?;
    let (second, rest) = number(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }

    match rest.as_bytes() {
        [b'.' | b',', b'0'..=b'9', ..] => {
            Some(rest[1..].trim_start_matches(|digit: char| digit.is_ascii_digit()))
        }
        _ => Some(rest),
    }
}

/// `Z` or `+01:00`.
fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        b"Z" => true,
        &[b'+' | b'-', h1, h2, b':', m1, m2] => {
            let two = |tens: u8, ones: u8| {
                (tens.is_ascii_digit() && ones.is_ascii_digit())
                    .then(|| (tens - b'0') * 10 + (ones - b'0'))
            };
            two(h1, h2).is_some_and(|hours| hours <= 24)
                && two(m1, m2).is_some_and(|minutes| minutes <= 60)
        }
        _ => false,
    }
}

/// One or two digits, and the rest.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    Some((text[..digits].parse().ok()?, &text[digits..]))
}
