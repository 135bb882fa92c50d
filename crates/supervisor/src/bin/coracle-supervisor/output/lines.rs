//! Formats log lines as CRI requires: `TIME STREAM F|P TEXT`.
//!
//! `P` is a part of a line that is longer than a log line may be, `F` a whole line or the last part
//! of one.

use super::Stream;
use crate::clock;

/// The longest text of one log line.
const LONGEST: usize = 16 << 10;

pub(super) struct Lines {
    name: &'static [u8],
    /// The beginning of an unfinished line.
    begun: Vec<u8>,
}

impl Lines {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            name: stream.name().as_bytes(),
            begun: Vec::new(),
        }
    }

    /// Adds to `out` the log lines that are complete with this chunk.
    pub(super) fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        self.feed_at(chunk, &clock::rfc3339(clock::now()), out);
    }

    /// Adds the rest at the end of the stream. It has no newline, so it is a partial line.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if !self.begun.is_empty() {
            let text = std::mem::take(&mut self.begun);
            self.line(&text, &clock::rfc3339(clock::now()), b'P', out);
        }
    }

    /// The length of the unfinished line.
    pub(super) fn begun(&self) -> u64 {
        self.begun.len() as u64
    }

    fn feed_at(&mut self, chunk: &[u8], stamp: &str, out: &mut Vec<u8>) {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.begin(&rest[..end], stamp, out);
            let text = std::mem::take(&mut self.begun);
            self.line(&text, stamp, b'F', out);
            // Reuse the buffer.
            self.begun = text;
            self.begun.clear();
            rest = &rest[end + 1..];
        }
        self.begin(rest, stamp, out);
    }

    /// Adds to the unfinished line; longer lines are written in parts.
    fn begin(&mut self, text: &[u8], stamp: &str, out: &mut Vec<u8>) {
        self.begun.extend_from_slice(text);
        while self.begun.len() > LONGEST {
            let rest = self.begun.split_off(LONGEST);
            let part = std::mem::replace(&mut self.begun, rest);
            self.line(&part, stamp, b'P', out);
        }
    }

    fn line(&self, text: &[u8], stamp: &str, tag: u8, out: &mut Vec<u8>) {
        out.extend_from_slice(stamp.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.name);
        out.extend_from_slice(&[b' ', tag, b' ']);
        out.extend_from_slice(text);
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chunks: &[&str], expected: &[(char, &str)]) {
        let mut lines = Lines::new(Stream::Stdout);
        let mut out = Vec::new();
        for chunk in chunks {
            lines.feed_at(chunk.as_bytes(), "T", &mut out);
        }

        if !lines.begun.is_empty() {
            let text = std::mem::take(&mut lines.begun);
            lines.line(&text, "T", b'P', &mut out);
        }

        let wanted: String = expected
            .iter()
            .map(|(tag, text)| format!("T stdout {tag} {text}\n"))
            .collect();
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    #[test]
    fn a_line_is_whole_when_its_newline_has_come() {
        check(&["a\nb\n"], &[('F', "a"), ('F', "b")]);
        check(&["a", "b\n", "\n"], &[('F', "ab"), ('F', "")]);
        check(&["a\nno newline"], &[('F', "a"), ('P', "no newline")]);
    }

    #[test]
    fn a_long_line_comes_in_parts() {
        let long = "x".repeat(LONGEST);
        check(&[&long, "\n"], &[('F', &long)]);
        check(&[&long, "yz\n"], &[('P', &long), ('F', "yz")]);
        check(
            &[&long, &long, &long, "\n"],
            &[('P', &long), ('P', &long), ('F', &long)],
        );
    }
}
