//! The source of an import: a folder, or an archive of one, with access to files by name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use coracle_files::read::open_regular;

use super::ImportError;
use crate::images::legible::legible_error;
use crate::images::unpack::decompressed;

/// The longest chain of links from one name to another.
const MOST_LINKS: usize = 8;
/// The limit of documents.
const LARGEST_DOCUMENT: u64 = 8 << 20;

pub(super) enum Source {
    Folder(PathBuf),
    Archive {
        file: Arc<File>,
        entries: BTreeMap<PathBuf, Entry>,
    },
}

pub(super) enum Entry {
    /// Offset and length in the archive.
    Data {
        at: u64,
        length: u64,
    },
    Link(PathBuf),
}

impl Source {
    /// Opens a folder or an archive. A compressed archive is first decompressed into `scratch`, up
    /// to `limit` bytes.
    pub(super) fn open(path: &Path, scratch: &Path, limit: u64) -> Result<Self, ImportError> {
        let failed = |source| ImportError::Read(path.to_owned(), source);

        if path.is_dir() {
            return Ok(Source::Folder(path.to_owned()));
        }

        let file = open(path).map_err(failed)?;
        let file = if is_compressed(&file).map_err(failed)? {
            plain_copy(file, &scratch.join("archive"), limit).map_err(failed)?
        } else {
            file
        };

        let entries = index(&file)
            .map_err(|error| ImportError::Archive(path.to_owned(), legible_error(&error)))?;

        Ok(Source::Archive {
            file: Arc::new(file),
            entries,
        })
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Source::Folder(folder) => folder.join(name).exists(),
            Source::Archive { entries, .. } => entries.contains_key(Path::new(name)),
        }
    }

    /// Opens a file, and returns its length.
    pub(super) fn file(&self, name: &str) -> Result<(Box<dyn Read + Send>, u64), ImportError> {
        let absent = || ImportError::Absent(name.to_owned());
        let path = relative(Path::new(name)).ok_or_else(absent)?;
        match self {
            Source::Folder(folder) => {
                let path = folder.join(path);
                let file = open(&path).map_err(|source| ImportError::Read(path.clone(), source))?;
                let length = file
                    .metadata()
                    .map_err(|source| ImportError::Read(path, source))?
                    .len();
                Ok((Box::new(file), length))
            }
            Source::Archive { file, entries } => {
                let (at, length) = follow(entries, &path).ok_or_else(absent)?;
                Ok((
                    Box::new(Section {
                        file: Arc::clone(file),
                        at,
                        left: length,
                    }),
                    length,
                ))
            }
        }
    }

    /// Reads a document.
    pub(super) fn document(&self, name: &str) -> Result<Vec<u8>, ImportError> {
        let (file, length) = self.file(name)?;
        if length > LARGEST_DOCUMENT {
            return Err(ImportError::TooLarge(name.to_owned()));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST_DOCUMENT)
            .read_to_end(&mut bytes)
            .map_err(|source| ImportError::Read(name.into(), source))?;
        Ok(bytes)
    }
}

/// Opens a regular file; links are followed.
fn open(path: &Path) -> io::Result<File> {
    open_regular(&path.canonicalize()?)
}

fn follow(entries: &BTreeMap<PathBuf, Entry>, path: &Path) -> Option<(u64, u64)> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match entries.get(&path)? {
            Entry::Data { at, length } => return Some((*at, *length)),
            Entry::Link(target) => path.clone_from(target),
        }
    }
    None
}

/// Indexes the entries of an archive.
fn index(file: &File) -> io::Result<BTreeMap<PathBuf, Entry>> {
    let mut archive = tar::Archive::new(Section {
        file: Arc::new(file.try_clone()?),
        at: 0,
        left: u64::MAX,
    });

    let mut entries = BTreeMap::new();
    for entry in archive.entries()? {
        let entry = entry?;
        let Some(path) = relative(&entry.path()?) else {
            continue;
        };

        let kind = entry.header().entry_type();
        let found = if kind.is_file() {
            Some(Entry::Data {
                at: entry.raw_file_position(),
                length: entry.size(),
            })
        } else {
            let target = entry.link_name()?.unwrap_or_default();

            // A hard link is relative to the archive's root, a symbolic one to its folder.
            let from = if kind.is_symlink() {
                path.parent().unwrap_or(Path::new(""))
            } else {
                Path::new("")
            };

            let is_link = kind.is_symlink() || kind.is_hard_link();
            is_link
                .then(|| relative(&from.join(target)))
                .flatten()
                .map(Entry::Link)
        };
        entries.extend(found.map(|found| (path, found)));
    }

    Ok(entries)
}

/// A normalized relative path; none if it leads out.
fn relative(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => plain.push(part),
            Component::ParentDir => plain.pop().then_some(())?,
            _ => {}
        }
    }
    Some(plain)
}

fn is_compressed(file: &File) -> io::Result<bool> {
    let mut start = [0; 4];
    let read = file.read_at(&mut start, 0)?;
    Ok(start[..read].starts_with(&[0x1f, 0x8b]) || start == [0x28, 0xb5, 0x2f, 0xfd])
}

fn plain_copy(file: File, to: &Path, limit: u64) -> io::Result<File> {
    let mut copy = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(to)?;

    let written = io::copy(&mut decompressed(file)?.take(limit), &mut copy)?;
    if written == limit {
        Err(io::Error::other("archive exceeds the size limit"))
    } else {
        Ok(copy)
    }
}

/// A section of a file, read without a shared file offset.
struct Section {
    file: Arc<File>,
    at: u64,
    left: u64,
}

impl Read for Section {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(into.len());
        let read = self.file.read_at(&mut into[..most], self.at)?;
        let count = u64::try_from(read).expect("a buffer's length fits");
        self.at += count;
        self.left -= count;
        Ok(read)
    }
}
