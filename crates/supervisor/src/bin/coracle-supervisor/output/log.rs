//! A container's log file. On a full disk lines are dropped; the container is never blocked.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};

use super::Stream;
use crate::folder::private;
use crate::step::{During as _, StepError};

pub(crate) struct Log {
    path: Option<String>,
    file: Option<File>,
    /// The progress file, for a successor.
    progress: Option<File>,
    now: Progress,
    /// Lines that could not be written.
    pub(crate) dropped: u64,
}

/// The logged offsets, as in the progress file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    inode: u64,
    length: u64,
    /// Per stream, the logged length of its spool.
    done: [u64; 2],
}

impl Log {
    /// Opens the log, and resumes where a predecessor was killed.
    pub(crate) fn open(path: Option<&str>, progress: &str) -> Result<Self, StepError> {
        let Some(path) = path else {
            return Ok(Self {
                path: None,
                file: None,
                progress: None,
                now: Progress::default(),
                dropped: 0,
            });
        };
        let file = append(path).during(|| format!("open log {path}"))?;

        let before = fs::read(progress)
            .ok()
            .and_then(|bytes| Progress::decode(&bytes));
        let progress = private()
            .write(true)
            .create(true)
            .truncate(false)
            .open(progress)
            .during(|| format!("open {progress}"))?;

        let mut log = Self {
            path: Some(path.to_owned()),
            file: Some(file),
            progress: Some(progress),
            now: before.unwrap_or_default(),
            dropped: 0,
        };
        log.resume(before);

        Ok(log)
    }

    /// Truncates output that is in a spool and will be written again, and a partial line; and saves
    /// the offset.
    fn resume(&mut self, before: Option<Progress>) {
        let Some(file) = &self.file else { return };
        let Ok(about) = file.metadata() else { return };
        let known = before
            .filter(|before| before.inode == about.ino())
            .map_or(u64::MAX, |before| before.length);
        let length = end_of_lines(file, known.min(about.len()));

        self.now.inode = about.ino();
        self.now.length = if length < about.len() && file.set_len(length).is_ok() {
            length
        } else {
            about.len()
        };

        self.save();
    }

    /// The logged length of a stream's spool.
    pub(crate) fn done(&self, stream: Stream) -> u64 {
        self.now.done[stream as usize]
    }

    /// Records the logged length of a stream's spool.
    pub(crate) fn commit(&mut self, stream: Stream, done: u64) {
        self.now.done[stream as usize] = done;
        self.save();
    }

    fn save(&self) {
        if let Some(progress) = &self.progress {
            // If this fails (full disk), a successor may repeat or lose some lines.
            progress
                .write_all_at(&self.now.encode(), 0)
                .unwrap_or_default();
        }
    }

    /// Continues in a new file at the same path. If that cannot be opened, the old one is kept.
    pub(crate) fn reopen(&mut self) -> Result<(), StepError> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        self.file = Some(append(path).during(|| format!("open log {path}"))?);
        self.resume(None);
        Ok(())
    }

    /// Writes lines that are not spooled: a successor must not truncate them.
    pub(crate) fn write_unspooled(&mut self, text: &[u8]) {
        let before = self.now;
        self.now.length += text.len() as u64;
        self.save();
        self.now = before;
        self.write(text);
        if self.now.length < before.length + text.len() as u64 {
            self.save();
        }
    }

    /// Writes complete lines, or as many of them as fit.
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

        self.now.length += written as u64;

        if written < text.len() {
            self.drop_rest(text, written);
        }
    }

    /// Removes a partially written line, and counts the lost lines.
    fn drop_rest(&mut self, text: &[u8], written: usize) {
        let whole = text[..written]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        let lost = text[whole..].iter().filter(|byte| **byte == b'\n').count();
        self.dropped += lost as u64;
        let Some(file) = &self.file else { return };
        let length = self.now.length.saturating_sub((written - whole) as u64);

        // If this fails, one broken line stays in the log.
        if file.set_len(length).is_ok() {
            self.now.length = length;
        }
    }
}

impl Progress {
    fn encode(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (place, number) in
            bytes
                .chunks_exact_mut(8)
                .zip([self.inode, self.length, self.done[0], self.done[1]])
        {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let [inode, length, stdout, stderr] = *numbers else {
            return None;
        };
        let number = u64::from_le_bytes;
        let done = [number(stdout), number(stderr)];
        rest.is_empty().then_some(Self {
            inode: number(inode),
            length: number(length),
            done,
        })
    }
}

/// The end of the last complete line before an offset.
fn end_of_lines(file: &File, length: u64) -> u64 {
    let mut end = length;
    let mut chunk = [0; 4096];
    while end > 0 {
        let begin = end.saturating_sub(chunk.len() as u64);
        let part = &mut chunk[..usize::try_from(end - begin).unwrap_or_default()];
        if file.read_exact_at(part, begin).is_err() {
            return length;
        }
        if let Some(newline) = part.iter().rposition(|byte| *byte == b'\n') {
            return begin + newline as u64 + 1;
        }

        end = begin;
    }

    0
}

fn append(path: &str) -> io::Result<File> {
    private()
        .mode(0o640)
        .read(true)
        .append(true)
        .create(true)
        .open(path)
}
