//! The one layer of an image that is made here, as an archive that is never whole in memory.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;

use super::super::digest::{Digest, Hasher};

/// What a file of the layer has in it.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Folder,
    Bytes(&'static [u8]),
    /// What this file of the host has.
    Copy(PathBuf),
}

/// One entry of the archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) content: Content,
}

/// The same entries are the same bytes on every machine.
#[derive(Clone, Debug)]
pub(super) struct Layer(pub(super) Vec<Entry>);

const BLOCK: usize = 512;

impl Layer {
    /// The archive from its beginning.
    pub(super) fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let mut archive: Box<dyn Read + Send> = Box::new(io::empty());
        for entry in &self.0 {
            archive = Box::new(archive.chain(entry.open()?));
        }
        Ok(Box::new(archive.chain(zeros(2 * BLOCK))))
    }

    /// Its digest and length.
    pub(super) fn measure(&self) -> io::Result<(Digest, u64)> {
        let (mut archive, mut hasher, mut length) = (self.open()?, Hasher::new(), 0);
        let mut piece = vec![0; 64 << 10];
        loop {
            let read = archive.read(&mut piece)?;
            if read == 0 {
                return Ok((hasher.finish(), length));
            }
            hasher.update(&piece[..read]);
            length += read as u64;
        }
    }
}

impl Entry {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let (kind, content, length): (_, Box<dyn Read + Send>, u64) = match &self.content {
            Content::Folder => (tar::EntryType::Directory, Box::new(io::empty()), 0),
            Content::Bytes(bytes) => (tar::EntryType::Regular, Box::new(*bytes), bytes.len() as u64),
            Content::Copy(path) => {
                let file = File::open(path)?;
                let length = file.metadata()?.len();
                // A file that grows meanwhile must not shift what follows.
                (tar::EntryType::Regular, Box::new(file.take(length)), length)
            }
        };
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(self.mode);
        header.set_size(length);
        header.set_path(&self.path)?;
        header.set_cksum();
        let header = Cursor::new(header.as_bytes().to_vec());
        let rest = usize::try_from(length % BLOCK as u64).expect("less than a block");
        let padding = zeros(if rest == 0 { 0 } else { BLOCK - rest });
        Ok(Box::new(header.chain(content).chain(padding)))
    }
}

fn zeros(count: usize) -> impl Read + Send {
    io::repeat(0).take(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_one_that_others_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        std::fs::write(&file, vec![7; 1000]).unwrap();
        let entry = |path: &str, mode, content| Entry { path: path.to_owned(), mode, content };
        let layer = Layer(vec![
            entry("etc/", 0o755, Content::Folder),
            entry("etc/name", 0o644, Content::Bytes(b"abc")),
            entry("program", 0o755, Content::Copy(file)),
        ]);
        let mut bytes = Vec::new();
        layer.open().unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(layer.measure().unwrap(), (Digest::of(&bytes), bytes.len() as u64));
        let mut archive = tar::Archive::new(bytes.as_slice());
        let found: Vec<(String, u32, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = header.path().unwrap().to_str().unwrap().to_owned();
                (path, header.mode().unwrap(), header.size().unwrap())
            })
            .collect();
        let expected = [("etc/", 0o755, 0), ("etc/name", 0o644, 3), ("program", 0o755, 1000)];
        assert_eq!(found, expected.map(|(path, mode, size)| (path.to_owned(), mode, size)));
    }
}
