//! Decoded query parameters.

/// Parameters in the order they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Invalid pairs are skipped.
    pub(super) fn parse(text: &str) -> Query {
        let pairs = text
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Some((decode(name)?, decode(value)?))
            });
        Query(pairs.collect())
    }

    /// All of them.
    #[cfg(any(test, feature = "fuzz"))]
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of that name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }

    /// Every value of that name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(move |(given, _)| given == name)
            .map(|(_, value)| value.as_str())
    }
}

fn decode(text: &str) -> Option<String> {
    unescape(text, true)
}

/// Decodes a path segment.
pub(super) fn decode_segment(text: &str) -> Option<String> {
    unescape(text, false)
}

fn unescape(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' if plus_is_space => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits)
                    .ok()
                    .filter(|digits| !digits.starts_with('+'))?;
                u8::from_str_radix(digits, 16).ok()?
            }
            other => other,
        });
    }

    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let query =
            Query::parse("command=sh&command=-c&command=echo+%22a%26b%22&tty&bad=%+1&x=%zz");
        assert_eq!(
            query.all("command").collect::<Vec<_>>(),
            ["sh", "-c", "echo \"a&b\""]
        );
        assert_eq!(
            (query.get("tty"), query.get("bad"), query.get("x")),
            (Some(""), None, None)
        );
        assert_eq!(decode_segment("a+b%20c").as_deref(), Some("a+b c"));
    }
}
