//! The query of a request: names and values, decoded.

use std::borrow::Cow;

/// Query parameters in the order they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Decodes `a=b&c=d`; pairs that cannot be decoded are passed over, as upstream does.
    pub fn parse(text: &str) -> Query {
        let pairs = text
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((decode(name)?.into_owned(), decode(value)?.into_owned()))
            });
        Query(pairs.collect())
    }

    /// All of them.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// Every value of that name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// Set, and not to one of the values for false.
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| !matches!(value, "0" | "false" | "False" | "FALSE" | "f" | "F"))
    }
}

/// A path without escapes; unchanged if they are invalid.
pub(crate) fn decode_path(path: &str) -> Cow<'_, str> {
    unescape(path, false).unwrap_or(Cow::Borrowed(path))
}

fn decode(text: &str) -> Option<Cow<'_, str>> {
    unescape(text, true)
}

fn unescape(text: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }

    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' if plus_is_space => b' ',
            b'%' => {
                let (high, low) = (hex(rest.next()?)?, hex(rest.next()?)?);
                high << 4 | low
            }
            other => other,
        });
    }

    Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
