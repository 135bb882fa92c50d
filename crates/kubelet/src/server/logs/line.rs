//! Log lines, and how they are printed. No I/O.
//!
//! A line has a time, a stream and a tag: `F` if it ends a line of output, `P` if it is a part of
//! one: `2016-10-06T00:17:09.669794202Z stdout F content`. Docker writes JSON instead.

use coracle_api::time::{Time, Timestamp};
use serde::Deserialize;

use super::options::{LogOptions, LogStream};

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    time: &'a str,
    when: Timestamp,
    stream: &'a str,
    /// Including the newline of a complete line.
    content: &'a [u8],
}

#[derive(Deserialize)]
struct DockerLine {
    #[serde(default)]
    log: String,
    #[serde(default)]
    stream: String,
    #[serde(default)]
    time: String,
}

/// Prints lines according to the options.
#[derive(Debug)]
pub(super) struct LinePrinter {
    options: LogOptions,
    /// Bytes left to print; none: no limit.
    bytes_left: Option<u64>,
    /// Lines left to print, if only the end of the log is requested.
    lines_left: Option<u64>,
    /// Whether the next part starts a line.
    begins_line: bool,
}

impl LinePrinter {
    pub(super) fn new(options: LogOptions) -> LinePrinter {
        let bytes_left = options.limit_bytes;
        let lines_left = options.tail_lines.filter(|_| !options.follow);
        LinePrinter {
            options,
            bytes_left,
            lines_left,
            begins_line: true,
        }
    }

    /// Whether a limit is reached.
    pub(super) fn is_done(&self) -> bool {
        self.bytes_left == Some(0) || self.lines_left == Some(0)
    }

    /// Appends the output of a line. Invalid lines are skipped.
    pub(super) fn line(&mut self, raw: &[u8], out: &mut Vec<u8>) {
        if self.is_done() {
            return;
        }

        let docker;
        let line = match cri(raw) {
            Some(line) => line,
            None => {
                let Ok(read) = serde_json::from_slice::<DockerLine>(raw) else {
                    return;
                };
                docker = read;
                let Ok(Time(when)) = Time::parse(&docker.time) else {
                    return;
                };

                Line {
                    time: &docker.time,
                    when,
                    stream: &docker.stream,
                    content: docker.log.as_bytes(),
                }
            }
        };
        self.print(&line, out);

        self.lines_left = self.lines_left.map(|left| left.saturating_sub(1));
        self.begins_line = line.content.last().is_none_or(|last| *last == b'\n');
    }

    fn print(&mut self, line: &Line<'_>, out: &mut Vec<u8>) {
        let wanted = match self.options.stream {
            LogStream::All => true,
            LogStream::Stdout => line.stream == "stdout",
            LogStream::Stderr => line.stream == "stderr",
        };

        if !wanted || self.options.since.is_some_and(|since| line.when < since) {
            return;
        }

        let before = out.len();

        if self.options.timestamps && self.begins_line {
            out.extend_from_slice(nine_digits(line.time).as_bytes());
            out.push(b' ');
        }

        out.extend_from_slice(line.content);

        if let Some(left) = &mut self.bytes_left {
            let available = usize::try_from(*left).unwrap_or(usize::MAX);
            out.truncate(before.saturating_add(available));
            *left -= (out.len() - before) as u64;
        }
    }
}

fn cri(raw: &[u8]) -> Option<Line<'_>> {
    let mut parts = raw.splitn(4, |byte| *byte == b' ');
    let time = std::str::from_utf8(parts.next()?).ok()?;
    let stream = std::str::from_utf8(parts.next()?)
        .ok()
        .filter(|name| matches!(*name, "stdout" | "stderr"))?;
    let tags = parts.next()?;
    let mut content = parts.next()?;

    let is_partial = tags.split(|byte| *byte == b':').next() == Some(b"P");
    if is_partial && let Some(without) = content.strip_suffix(b"\n") {
        content = without;
    }

    Some(Line {
        time,
        when: Time::parse(time).ok()?.0,
        stream,
        content,
    })
}

/// A time with nine fractional digits.
fn nine_digits(time: &str) -> String {
    let body = time
        .find(['Z', '+'])
        .or_else(|| time.rfind('-').filter(|at| *at > 10));
    let (body, zone) = time.split_at(body.unwrap_or(time.len()));
    let (seconds, fraction) = body.split_once('.').unwrap_or((body, ""));
    format!("{seconds}.{fraction:0<9}{zone}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
        2016-10-06T00:17:09.100000000Z stdout F one\n\
        2016-10-06T00:17:09.2Z stderr P tw\n\
        2016-10-06T00:17:09.300000000Z stderr F o\n\
        not a line\n\
        2016-10-06T00:17:09.400000000Z stdout F \n\
        2016-10-06T00:17:09.500000000Z stdout F:x three\n";

    fn check(options: LogOptions, expected: &str) {
        let asked = format!("{options:?}");
        let mut printer = LinePrinter::new(options);
        let mut out = Vec::new();
        LOG.split_inclusive('\n')
            .for_each(|line| printer.line(line.as_bytes(), &mut out));
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{asked}");
    }

    #[test]
    fn lines_are_printed_according_to_the_options() {
        let all = LogOptions::default;
        check(all(), "one\ntwo\n\nthree\n");
        check(
            LogOptions {
                timestamps: true,
                ..all()
            },
            "2016-10-06T00:17:09.100000000Z one\n2016-10-06T00:17:09.200000000Z two\n\
             2016-10-06T00:17:09.400000000Z \n2016-10-06T00:17:09.500000000Z three\n",
        );

        check(
            LogOptions {
                stream: LogStream::Stderr,
                ..all()
            },
            "two\n",
        );

        check(
            LogOptions {
                limit_bytes: Some(5),
                ..all()
            },
            "one\nt",
        );

        check(
            LogOptions {
                limit_bytes: Some(5),
                timestamps: true,
                ..all()
            },
            "2016-",
        );

        check(
            LogOptions {
                tail_lines: Some(2),
                ..all()
            },
            "one\ntw",
        );

        check(
            LogOptions {
                tail_lines: Some(0),
                ..all()
            },
            "",
        );

        check(
            LogOptions {
                tail_lines: Some(2),
                follow: true,
                ..all()
            },
            "one\ntwo\n\nthree\n",
        );

        let since = Time::parse("2016-10-06T00:17:09.4Z").unwrap().0;
        check(
            LogOptions {
                since: Some(since),
                ..all()
            },
            "\nthree\n",
        );
    }

    #[test]
    fn docker_lines_are_read() {
        let mut out = Vec::new();
        let mut printer = LinePrinter::new(LogOptions {
            timestamps: true,
            ..LogOptions::default()
        });

        printer.line(
            br#"{"log":"hi\n","stream":"stdout","time":"2016-10-20T18:39:20.57606443Z"}"#,
            &mut out,
        );

        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2016-10-20T18:39:20.576064430Z hi\n"
        );
    }

    #[test]
    fn times_have_nine_fractional_digits() {
        let check = |time, expected| assert_eq!(nine_digits(time), expected);
        check("2016-10-06T00:17:09Z", "2016-10-06T00:17:09.000000000Z");
        check(
            "2016-10-06T00:17:09.5+02:00",
            "2016-10-06T00:17:09.500000000+02:00",
        );
        check(
            "2016-10-06T00:17:09.5-02:00",
            "2016-10-06T00:17:09.500000000-02:00",
        );
    }
}
