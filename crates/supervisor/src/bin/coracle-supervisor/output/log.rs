//! A container's log file. A disk that is full loses lines, never the container's time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

use crate::step::{During as _, StepError};

pub(crate) struct Log {
    path: Option<String>,
    file: Option<File>,
    /// Lines that could not be written.
    pub(crate) dropped: u64,
}

impl Log {
    pub(crate) fn open(path: Option<&str>) -> Result<Self, StepError> {
        let file =
            path.map(append).transpose().during(|| format!("open log {}", path.unwrap_or_default()))?;
        Ok(Self { path: path.map(str::to_owned), file, dropped: 0 })
    }

    /// Goes on in a new file at the same path. If that cannot be opened, the old one is kept.
    pub(crate) fn reopen(&mut self) -> Result<(), StepError> {
        let Some(path) = &self.path else { return Ok(()) };
        self.file = Some(append(path).during(|| format!("open log {path}"))?);
        Ok(())
    }

    /// Writes whole lines, or as many of them as fit.
    pub(crate) fn write(&mut self, text: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let mut written = 0;
        while written < text.len() {
            match file.write(&text[written..]) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        if written < text.len() {
            self.drop_rest(text, written);
        }
    }

    /// Takes the part of a line back that was written, and counts what is lost.
    fn drop_rest(&mut self, text: &[u8], written: usize) {
        let whole = text[..written].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let lost = text[whole..].iter().filter(|byte| **byte == b'\n').count();
        self.dropped += lost as u64;
        let Some(file) = &self.file else { return };
        let part = (written - whole) as u64;
        // If even this fails there is one broken line in the log.
        file.metadata().and_then(|about| file.set_len(about.len().saturating_sub(part))).unwrap_or_default();
    }
}

fn append(path: &str) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}
