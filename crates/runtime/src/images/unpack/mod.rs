//! Unpacks a layer: an archive, compressed or not, into a folder.
//!
//! One thread decompresses while another unpacks the archive and hashes it. No entry leads out of
//! the folder (`beneath.rs`), and the unpacked size is bounded, including the archive's headers. A
//! layer is unpacked alone, without those below it; folders that it only implies get the metadata
//! of the layers below when the layer is [committed](super::store).

mod apply;
mod beneath;
mod decompress;
mod sparse;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::fs::{Mode, OFlags};

use super::digest::{Digest, Hasher};
use super::legible::legible_error;
use apply::Applier;
pub(crate) use decompress::decompressed;
pub use sparse::SparseError;

/// Limits of a layer.
#[derive(Clone, Debug)]
pub struct Limits {
    pub bytes: u64,
    pub entries: u64,
}

impl Limits {
    /// The limits for a layer of this compressed size: real layers rarely compress to a hundredth.
    pub(crate) fn for_compressed(&self, size: u64) -> Self {
        Self {
            bytes: self
                .bytes
                .min(size.saturating_mul(MOST_COMPRESSED).max(ALWAYS_ALLOWED)),
            ..self.clone()
        }
    }
}

const MOST_COMPRESSED: u64 = 100;
const ALWAYS_ALLOWED: u64 = 1 << 30;

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 30,
            entries: 4_000_000,
        }
    }
}

/// The result of unpacking.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unpacked {
    /// Disk usage.
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
    /// Folders without an entry of their own.
    pub(crate) implied: BTreeSet<PathBuf>,
}

/// Errors of unpacking.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    #[error("cannot read the layer")]
    Archive(#[source] io::Error),
    #[error("entry {0:?} points outside the layer")]
    Escapes(String),
    #[error("cannot unpack {path:?}")]
    Entry { path: PathBuf, source: io::Error },
    #[error("entry {path:?} has unsupported type {kind}")]
    Kind { path: PathBuf, kind: u8 },
    #[error("cannot unpack sparse file {path:?}; rebuild the layer without tar --sparse")]
    Sparse { path: PathBuf, source: SparseError },
    #[error("the layer is larger than {0} bytes")]
    TooLarge(u64),
    #[error("the layer has more than {0} entries")]
    TooMany(u64),
    #[error("the folders without an entry have names of more than {0} bytes")]
    TooManyFolders(usize),
    #[error("cannot open {0:?}")]
    Folder(PathBuf, #[source] io::Error),
}

/// Unpacks into an empty folder, and returns the digest of the uncompressed archive.
pub(crate) fn unpack(
    source: impl Read + Send,
    folder: &Path,
    limits: &Limits,
) -> Result<(Digest, Unpacked), UnpackError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(folder, flags, Mode::empty())
        .map_err(|errno| UnpackError::Folder(folder.to_owned(), errno.into()))?;

    let (send, receive) = sync_channel(PIECES);
    std::thread::scope(|scope| {
        scope.spawn(move || decompress(source, &send));
        let plain = Plain {
            pieces: receive,
            piece: Vec::new(),
            at: 0,
            length: 0,
            hasher: Hasher::new(),
        };

        unpack_archive(plain, Applier::new(root, limits), limits)
    })
}

/// Number and size of chunks buffered between the two threads.
const PIECES: usize = 4;
const PIECE: usize = 256 * 1024;
/// The block size of tar.
const BLOCK: usize = 512;
/// The limit of headers between two entries: long names, extended attributes.
const LARGEST_HEADERS: u64 = 8 << 20;

fn unpack_archive(
    plain: Plain,
    mut applier: Applier<'_>,
    limits: &Limits,
) -> Result<(Digest, Unpacked), UnpackError> {
    let budget = Cell::new(LARGEST_HEADERS);
    let mut archive = tar::Archive::new(Budgeted {
        source: plain,
        left: &budget,
    });

    let unreadable = |error: io::Error| UnpackError::Archive(legible_error(&error));
    let mut entries = archive.entries().map_err(unreadable)?;
    loop {
        budget.set(LARGEST_HEADERS);
        let Some(entry) = entries.next() else { break };
        let mut entry = entry.map_err(unreadable)?;
        // Written and skipped data have the same limit.
        budget.set(limits.bytes.saturating_add(LARGEST_HEADERS));
        applier.apply(&mut entry)?;
        io::copy(&mut entry, &mut io::sink()).map_err(unreadable)?;
    }

    // The digest includes the padding of the archive.
    budget.set(LARGEST_HEADERS);
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(unreadable)?;

    Ok((rest.source.hasher.finish(), applier.finish()?))
}

/// Sends the decompressed archive until it ends, fails, or the receiver is gone.
fn decompress(source: impl Read + Send, to: &SyncSender<io::Result<Vec<u8>>>) {
    let mut plain = match decompressed(source) {
        Ok(plain) => plain,
        Err(error) => return drop(to.send(Err(error))),
    };

    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let read = plain.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let last = !matches!(read, Ok(1..));
        if to.send(read.map(|_| piece)).is_err() || last {
            return;
        }
    }
}

/// The decompressed archive as a reader that hashes it. Missing padding of the last block is added
/// for the parser.
struct Plain {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
    length: usize,
    hasher: Hasher,
}

impl Read for Plain {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            // A closed channel is the end of the archive.
            self.piece = self.pieces.recv().unwrap_or(Ok(Vec::new()))?;
            self.hasher.update(&self.piece);
            self.at = 0;
            if self.piece.is_empty() {
                self.piece = vec![0; self.length.next_multiple_of(BLOCK) - self.length];
            }
            self.length += self.piece.len();
        }

        let read = (&self.piece[self.at..]).read(into)?;
        self.at += read;

        Ok(read)
    }
}

/// A reader with a byte budget: the parser keeps headers in memory, whatever their length.
struct Budgeted<'a, R> {
    source: R,
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Budgeted<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        let count = u64::try_from(read).expect("a buffer's length fits");
        let left = self.left.get().checked_sub(count);
        self.left
            .set(left.ok_or_else(|| io::Error::other("a header is too large"))?);
        Ok(read)
    }
}
