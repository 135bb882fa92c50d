//! Log options of a query.

use std::borrow::Cow;

use coracle_api::time::{Time, Timestamp};

use crate::server::query::Query;

/// Which lines of a log are printed, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    pub follow: bool,
    /// Of the previous instance.
    pub previous: bool,
    pub timestamps: bool,
    /// Only lines since this time.
    pub since: Option<Timestamp>,
    pub tail_lines: Option<u64>,
    pub limit_bytes: Option<u64>,
    pub stream: LogStream,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogStream {
    #[default]
    All,
    Stdout,
    Stderr,
}

/// Why a query is invalid. The texts are upstream's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    #[error(r#"{{"message": "Unable to decode query."}}"#)]
    Undecodable,
    #[error(r#"{{"message": "Invalid request."}}"#)]
    Invalid,
}

impl LogOptions {
    pub(in crate::server) fn parse(
        query: &Query,
        now: Timestamp,
    ) -> Result<LogOptions, OptionError> {
        let tail = match (query.get("tail"), query.get("tailLines")) {
            // Deprecated form.
            (Some("all"), _) => None,
            (Some(tail), _) if !tail.is_empty() => Some(tail),
            (_, tail) => tail,
        };

        let since_seconds = number(query.get("sinceSeconds"))?;
        let since_time = query
            .get("sinceTime")
            .filter(|text| !text.is_empty())
            .map(time)
            .transpose()?;

        if since_seconds.is_some() && since_time.is_some()
            || since_seconds.is_some_and(|seconds| seconds < 1)
        {
            return Err(OptionError::Invalid);
        }

        let at_least = |least: i64, number: Option<i64>| match number {
            Some(number) if number < least => Err(OptionError::Invalid),
            number => Ok(number.map(i64::unsigned_abs)),
        };

        let stream = match query.get("stream") {
            None | Some("" | "All") => LogStream::All,
            Some("Stdout") => LogStream::Stdout,
            Some("Stderr") => LogStream::Stderr,
            Some(_) => return Err(OptionError::Invalid),
        };

        let tail_lines = at_least(0, number(tail)?)?;
        if stream != LogStream::All && tail_lines.is_some() {
            return Err(OptionError::Invalid);
        }

        Ok(LogOptions {
            follow: parse_bool(query.get("follow")),
            previous: parse_bool(query.get("previous")),
            timestamps: parse_bool(query.get("timestamps")),
            since: since_time.or(since_seconds.map(|seconds| now.plus_seconds(-seconds))),
            tail_lines,
            limit_bytes: at_least(1, number(query.get("limitBytes"))?)?,
            stream,
        })
    }
}

fn number(text: Option<&str>) -> Result<Option<i64>, OptionError> {
    text.filter(|text| !text.is_empty())
        .map(str::parse)
        .transpose()
        .map_err(|_| OptionError::Undecodable)
}

fn time(text: &str) -> Result<Timestamp, OptionError> {
    // An unescaped plus sign was decoded as a space.
    let text = if text.contains(' ') {
        Cow::Owned(text.replace(' ', "+"))
    } else {
        Cow::Borrowed(text)
    };
    Time::parse(&text)
        .map(|time| time.0)
        .map_err(|_| OptionError::Undecodable)
}

/// Upstream's boolean query parameters: present and not a word for false.
fn parse_bool(text: Option<&str>) -> bool {
    text.is_some_and(|text| !matches!(text.to_ascii_lowercase().as_str(), "false" | "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: &Result<LogOptions, OptionError>) {
        let now = Timestamp::from_unix(1000, 0);
        assert_eq!(
            &LogOptions::parse(&Query::parse(query), now),
            expected,
            "{query}"
        );
    }

    #[test]
    fn queries_are_parsed() {
        let none = LogOptions::default;
        check("", &Ok(none()));
        check(
            "follow=true&previous=false",
            &Ok(LogOptions {
                follow: true,
                ..none()
            }),
        );

        check(
            "tailLines=0",
            &Ok(LogOptions {
                tail_lines: Some(0),
                ..none()
            }),
        );

        check(
            "tail=5&tailLines=7",
            &Ok(LogOptions {
                tail_lines: Some(5),
                ..none()
            }),
        );

        check("tail=all&tailLines=7", &Ok(none()));
        check(
            "sinceSeconds=10",
            &Ok(LogOptions {
                since: Some(Timestamp::from_unix(990, 0)),
                ..none()
            }),
        );

        let start = Some(Timestamp::from_unix(0, 0));
        check(
            "sinceTime=1970-01-01T00:00:00Z",
            &Ok(LogOptions {
                since: start,
                ..none()
            }),
        );

        check(
            "sinceTime=1970-01-01T01:00:00+01:00",
            &Ok(LogOptions {
                since: start,
                ..none()
            }),
        );

        check(
            "stream=Stderr&limitBytes=3",
            &Ok(LogOptions {
                stream: LogStream::Stderr,
                limit_bytes: Some(3),
                ..none()
            }),
        );
    }

    #[test]
    fn invalid_queries_are_refused() {
        check("tailLines=x", &Err(OptionError::Undecodable));
        check("tailLines=-1", &Err(OptionError::Invalid));
        check("limitBytes=0", &Err(OptionError::Invalid));
        check("sinceSeconds=0", &Err(OptionError::Invalid));
        check(
            "sinceSeconds=1&sinceTime=1970-01-01T00:00:00Z",
            &Err(OptionError::Invalid),
        );
        check("stream=Both", &Err(OptionError::Invalid));
        check("stream=Stdout&tailLines=1", &Err(OptionError::Invalid));
    }
}
