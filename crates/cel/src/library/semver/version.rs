//! Versions, and their order, with upstream's texts.

use std::cmp::Ordering;
use std::fmt;

use coracle_api::go_text::{NumberError, Quoted, parse_uint};

#[derive(Clone, Debug)]
pub struct Semver {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    prerelease: Vec<Part>,
    build: Vec<String>,
}

/// A part of a prerelease: numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn parse_number(text: &str) -> Result<u64, String> {
    parse_uint(text).map_err(|error| {
        let why = match error {
            NumberError::Syntax => "invalid syntax",
            NumberError::Range => "value out of range",
        };
        format!("strconv.ParseUint: parsing {}: {why}", Quoted(text))
    })
}

fn parse_element(name: &str, title: &str, text: &str) -> Result<u64, String> {
    if !is_number(text) {
        return Err(format!(
            "Invalid character(s) found in {name} number {}",
            Quoted(text)
        ));
    }
    if has_leading_zero(text) {
        return Err(format!(
            "{title} number must not contain leading zeroes {}",
            Quoted(text)
        ));
    }
    parse_number(text)
}

fn parse_part(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if is_number(text) {
        if has_leading_zero(text) {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                Quoted(text)
            ));
        }
        return parse_number(text).map(Part::Number);
    }
    if is_word(text) {
        return Ok(Part::Word(text.to_owned()));
    }
    Err(format!(
        "Invalid character(s) found in prerelease {}",
        Quoted(text)
    ))
}

impl Semver {
    pub(super) fn parse(text: &str) -> Result<Semver, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let major = parse_element("major", "Major", major)?;
        let minor = parse_element("minor", "Minor", minor)?;

        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        let patch = parse_element("patch", "Patch", patch)?;
        let prerelease = match prerelease {
            Some(text) => text.split('.').map(parse_part).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let build = match build {
            Some(text) => text.split('.').map(parse_build).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };

        Ok(Semver {
            major,
            minor,
            patch,
            prerelease,
            build,
        })
    }

    /// A version that may begin with `v`, lack elements, and have leading zeros.
    pub(super) fn parse_short(text: &str) -> Result<Semver, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Semver::parse(&parts.join("."))
    }
}

fn parse_build(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    if !is_word(text) {
        return Err(format!(
            "Invalid character(s) found in build meta data {}",
            Quoted(text)
        ));
    }
    Ok(text.to_owned())
}

fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|first: char| first.is_ascii_digit()) {
        rest.to_owned()
    } else {
        format!("0{rest}")
    }
}

impl Semver {
    /// Build metadata do not count; a prerelease comes before its release.
    pub(crate) fn cmp(&self, other: &Semver) -> Ordering {
        let numbers = |version: &Semver| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.prerelease.cmp(&other.prerelease),
            }
        })
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, part) in self.prerelease.iter().enumerate() {
            let sign = if index == 0 { '-' } else { '.' };
            match part {
                Part::Number(number) => write!(out, "{sign}{number}")?,
                Part::Word(word) => write!(out, "{sign}{word}")?,
            }
        }
        for (index, part) in self.build.iter().enumerate() {
            let sign = if index == 0 { '+' } else { '.' };
            write!(out, "{sign}{part}")?;
        }
        Ok(())
    }
}
