//! The end of a log without CRI's line headers.

use std::io;
use std::path::Path;

use super::LogOptions;
use super::file::LogFile;
use super::line::LinePrinter;

/// The output in the last `lines` lines of a log, limited to the last `bytes` bytes. Memory use
/// does not depend on the length of the log.
pub(crate) async fn tail_of(path: &Path, lines: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let options = LogOptions {
        tail_lines: Some(lines),
        ..LogOptions::default()
    };
    let mut file = LogFile::open(path, options.tail_lines).await?;

    let mut printer = LinePrinter::new(options);
    let mut end = Vec::new();
    let mut add = |line: &[u8]| {
        printer.line(line, &mut end);
        end.drain(..end.len().saturating_sub(bytes));
        !printer.is_done()
    };

    while file.read().await? {
        while let Some(line) = file.line() {
            if !add(&line) {
                return Ok(end);
            }
        }
    }

    let rest = file.rest();
    if !rest.is_empty() {
        add(&rest);
    }

    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes `count` lines in CRI format.
    async fn check(count: usize, line: impl Fn(usize) -> String, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log: String = (0..count)
            .map(|index| format!("2026-01-01T00:00:00.123456789Z stderr {}\n", line(index)))
            .collect();
        std::fs::write(&path, log).unwrap();
        let end = tail_of(&path, 80, 2048).await.unwrap();
        assert_eq!(String::from_utf8(end).unwrap(), expected, "{count} lines");
    }

    fn last(text: &str, bytes: usize) -> &str {
        &text[text.len() - bytes..]
    }

    #[tokio::test]
    async fn the_limits_apply_to_the_output() {
        check(0, |_| String::new(), "").await;
        check(3, |index| format!("F {index}"), "0\n1\n2\n").await;
        let lines = |from: usize, to: usize| (from..to).map(|index| format!("{index:048}\n"));
        let long: String = lines(0, 200).collect();
        check(200, |index| format!("F {index:048}"), last(&long, 2048)).await;
        let short: String = (420..500).map(|index| format!("{index}\n")).collect();
        check(500, |index| format!("F {index}"), &short).await;
        let wide = format!("{}{}\n", "a".repeat(3000), "b".repeat(2000));
        check(1, |_| format!("F {}", wide.trim_end()), last(&wide, 2048)).await;

        // Several times longer than the read buffer.
        let wide = "x".repeat(300_000) + "end\n";
        check(90, |_| format!("F {}", wide.trim_end()), last(&wide, 2048)).await;
    }

    #[tokio::test]
    async fn pieces_of_a_line_are_one_line() {
        let piece = |index| format!("{} {index}", if index % 3 == 2 { "F" } else { "P" });
        check(6, piece, "012\n345\n").await;
        let wide = |index| {
            format!(
                "{} {}",
                if index == 1 { "F" } else { "P" },
                "y".repeat(2000)
            )
        };
        check(2, wide, last(&("y".repeat(4000) + "\n"), 2048)).await;
    }

    #[tokio::test]
    async fn an_incomplete_last_line_is_returned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(
            &path,
            "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:00Z stdout F tw",
        )
        .unwrap();

        assert_eq!(tail_of(&path, 80, 2048).await.unwrap(), b"one\ntw");
        assert_eq!(
            tail_of(&folder.path().join("none"), 80, 2048)
                .await
                .unwrap_err()
                .kind(),
            io::ErrorKind::NotFound
        );
    }
}
