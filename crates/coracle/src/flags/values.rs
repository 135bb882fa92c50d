//! Values of flags, read as upstream reads them, with its words where one is wrong.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use coracle_api::go_text::{Quoted, parse_int};
use coracle_api::time::parse_duration;

/// What setting a flag comes to.
pub(crate) type Set = Result<(), String>;

pub(crate) fn switch(option: &mut bool, text: &str) -> Set {
    *option = match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
        "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
        _ => {
            return Err(format!(
                "strconv.ParseBool: parsing {}: invalid syntax",
                Quoted(text)
            ));
        }
    };
    Ok(())
}

pub(crate) fn file(option: &mut Option<PathBuf>, text: &str) -> Set {
    *option = (!text.is_empty()).then(|| PathBuf::from(text));
    Ok(())
}

pub(crate) fn ip(option: &mut Option<IpAddr>, text: &str) -> Set {
    *option = Some(
        text.parse()
            .map_err(|_| format!("failed to parse IP: {}", Quoted(text)))?,
    );
    Ok(())
}

/// Parses a number; its range is validated later, with everything else.
pub(crate) fn number(option: &mut i64, text: &str) -> Set {
    *option = parse_int(text)
        .map_err(|cause| format!("strconv.ParseInt: parsing {}: {cause}", Quoted(text)))?;
    Ok(())
}

/// A port range: `a-b`, inclusive, or `a+n`.
pub(crate) fn ports(option: &mut RangeInclusive<u16>, text: &str) -> Set {
    let number = |text: &str| {
        text.trim()
            .parse::<u32>()
            .map_err(|_| format!("{} is not a valid range of ports", Quoted(text)))
    };

    let (first, last) = match (text.split_once('-'), text.split_once('+')) {
        (Some((first, last)), _) => (number(first)?, number(last)?),
        (None, Some((first, more))) => {
            (number(first)?, number(first)?.saturating_add(number(more)?))
        }
        (None, None) => (number(text)?, number(text)?),
    };

    let port = |number: u32| u16::try_from(number).ok().filter(|port| *port > 0);
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => *option = first..=last,
        _ => {
            return Err(format!(
                "not a valid port range, must be FIRST-LAST within 1-65535: {text}"
            ));
        }
    }

    Ok(())
}

pub(crate) fn duration(option: &mut Duration, text: &str) -> Set {
    let given = parse_duration(text).map_err(|error| error.to_string())?;
    *option = given
        .to_std()
        .ok_or_else(|| "must not be negative".to_string())?;
    Ok(())
}

/// `a,b`; several flags add up.
pub(crate) fn list(option: &mut Vec<String>, text: &str) -> Set {
    option.extend(
        text.split(',')
            .filter(|part| !part.is_empty())
            .map(|part| part.trim().to_string()),
    );
    Ok(())
}

pub(crate) fn text(option: &mut String, text: &str) -> Set {
    *option = text.to_string();
    Ok(())
}

pub(crate) fn float(option: &mut f64, text: &str) -> Set {
    let invalid = || {
        format!(
            "strconv.ParseFloat: parsing {}: invalid syntax",
            Quoted(text)
        )
    };

    *option = text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(invalid)?;

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ports_has_two_ends_or_a_length() {
        let read = |text: &str| {
            let mut range = 1..=1;
            ports(&mut range, text).map(|()| range)
        };
        assert_eq!(read("30000-32767"), Ok(30000..=32767));

        assert_eq!(read("100 - 200"), Ok(100..=200));
        assert_eq!(read("100+50"), Ok(100..=150));
        assert_eq!(read("8080"), Ok(8080..=8080));

        for wrong in [
            "",
            "a-b",
            "200-100",
            "0-10",
            "65000-70000",
            "65000+1000",
            "1-2-3",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
