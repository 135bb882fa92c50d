//! A log file, read by whole lines from the start or from near its end.

use std::io::{self, SeekFrom};
use std::path::Path;

use bytes::BytesMut;
use coracle_files::read::open_regular;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::cgroups::blocking;

/// Read buffer size.
const PIECE: usize = 64 << 10;

/// Longer lines are an error: no runtime writes them.
const LONGEST_LINE: usize = 4 << 20;

/// An open log file.
pub(super) struct LogFile {
    file: File,
    /// Read and not yet returned: the start of a line.
    held: BytesMut,
}

impl LogFile {
    /// Opens a file at its last `tail` lines; none: at its start.
    pub(super) async fn open(path: &Path, tail: Option<u64>) -> io::Result<LogFile> {
        let path = path.to_owned();
        let mut file = File::from_std(blocking(move || open_regular(&path)).await?);
        if let Some(lines) = tail {
            let start = tail_start(&mut file, lines).await?;
            file.seek(SeekFrom::Start(start)).await?;
        }
        Ok(LogFile {
            file,
            held: BytesMut::new(),
        })
    }

    /// Reads more; false: at the end of the file.
    pub(super) async fn read(&mut self) -> io::Result<bool> {
        if self.held.len() > LONGEST_LINE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "log line is too long",
            ));
        }
        self.held.reserve(PIECE);
        Ok(self.file.read_buf(&mut self.held).await? > 0)
    }

    /// The next complete line that was read.
    pub(super) fn line(&mut self) -> Option<BytesMut> {
        let end = self.held.iter().position(|byte| *byte == b'\n')?;
        Some(self.held.split_to(end + 1))
    }

    /// An incomplete line at the end.
    pub(super) fn rest(&mut self) -> BytesMut {
        self.held.split()
    }
}

/// The offset of the last `lines` lines.
async fn tail_start(file: &mut File, lines: u64) -> io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0)).await?;
    if lines == 0 {
        return Ok(end);
    }

    let (mut found, mut piece) = (0, vec![0; PIECE]);
    let mut is_last = true;
    while end > 0 {
        let start = end.saturating_sub(PIECE as u64);
        let length = usize::try_from(end - start).unwrap_or(PIECE);
        file.seek(SeekFrom::Start(start)).await?;
        file.read_exact(&mut piece[..length]).await?;

        for at in (0..length).rev() {
            // The newline at the end of the file starts no line.
            if piece[at] == b'\n' && !std::mem::take(&mut is_last) {
                found += 1;
                if found == lines {
                    return Ok(start + at as u64 + 1);
                }
            }
            is_last = false;
        }

        end = start;
    }

    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(content: &str, tail: Option<u64>, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, content).unwrap();
        let mut file = LogFile::open(&path, tail).await.unwrap();

        let mut found = String::new();
        while file.read().await.unwrap() {
            while let Some(line) = file.line() {
                found.push_str(std::str::from_utf8(&line).unwrap());
            }
        }

        found.push_str(std::str::from_utf8(&file.rest()).unwrap());
        assert_eq!(found, expected, "{tail:?}");
    }

    #[tokio::test]
    async fn the_end_of_a_file_is_found() {
        check("a\nb\nc\n", None, "a\nb\nc\n").await;
        check("a\nb\nc\n", Some(0), "").await;
        check("a\nb\nc\n", Some(1), "c\n").await;
        check("a\nb\nc\n", Some(2), "b\nc\n").await;
        check("a\nb\nc\n", Some(3), "a\nb\nc\n").await;
        check("a\nb\nc\n", Some(9), "a\nb\nc\n").await;
        check("a\nb\nc", Some(1), "c").await;
        check("\n\n\n", Some(2), "\n\n").await;
        check("", Some(2), "").await;
        let long = "0123456789\n".repeat(20_000);
        check(&long, Some(10_000), &long[..110_000]).await;
    }
}
