//! The single layer of a built-in image, as a tar archive that is streamed, never held in memory.

use std::fs::{self, File};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::super::digest::{Digest, Hasher};

/// The content of an entry.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Folder,
    Bytes(&'static [u8]),
    /// A copy of this file of the host.
    Copy(PathBuf),
}

/// One entry of the archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) content: Content,
}

/// The same entries give the same bytes on every machine.
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

    /// Replaces copies in an unpacked layer with hard links to the host's files.
    pub(super) fn share(&self, unpacked: &Path) -> io::Result<()> {
        self.0.iter().try_for_each(|entry| entry.share(unpacked))
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
    /// Replaces the copy in `folder` with a hard link to the host's file if they are identical, so
    /// that both share memory pages. On another filesystem the copy stays.
    fn share(&self, folder: &Path) -> io::Result<()> {
        let Content::Copy(file) = &self.content else {
            return Ok(());
        };

        let about = fs::metadata(file)?;
        if about.permissions().mode() & 0o7777 != self.mode || (about.uid(), about.gid()) != (0, 0)
        {
            return Ok(());
        }

        let copy = folder.join(&self.path);
        let beside = folder.join(format!("{}.host", self.path));
        if fs::hard_link(file, &beside).is_err() {
            return Ok(());
        }

        if same(&beside, &copy)? {
            fs::rename(&beside, &copy)
        } else {
            fs::remove_file(&beside)
        }
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let (kind, content, length): (_, Box<dyn Read + Send>, u64) = match &self.content {
            Content::Folder => (tar::EntryType::Directory, Box::new(io::empty()), 0),
            Content::Bytes(bytes) => (
                tar::EntryType::Regular,
                Box::new(*bytes),
                bytes.len() as u64,
            ),
            Content::Copy(path) => {
                let file = File::open(path)?;
                let length = file.metadata()?.len();
                // A file that grows concurrently must not shift the next entry.
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

/// Whether two files have the same content.
fn same(one: &Path, other: &Path) -> io::Result<bool> {
    if fs::metadata(one)?.len() != fs::metadata(other)?.len() {
        return Ok(false);
    }

    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut here, mut there) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let read = one.read(&mut here)?;
        if read == 0 {
            return Ok(true);
        }
        other.read_exact(&mut there[..read])?;
        if here[..read] != there[..read] {
            return Ok(false);
        }
    }
}

fn zeros(count: usize) -> impl Read + Send {
    io::repeat(0).take(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_is_valid_tar() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        fs::write(&file, vec![7; 1000]).unwrap();
        let entry = |path: &str, mode, content| Entry {
            path: path.to_owned(),
            mode,
            content,
        };

        let layer = Layer(vec![
            entry("etc/", 0o755, Content::Folder),
            entry("etc/name", 0o644, Content::Bytes(b"abc")),
            entry("program", 0o755, Content::Copy(file)),
        ]);

        let mut bytes = Vec::new();
        layer.open().unwrap().read_to_end(&mut bytes).unwrap();
        assert_eq!(
            layer.measure().unwrap(),
            (Digest::of(&bytes), bytes.len() as u64)
        );

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

        let expected = [
            ("etc/", 0o755, 0),
            ("etc/name", 0o644, 3),
            ("program", 0o755, 1000),
        ];

        assert_eq!(
            found,
            expected.map(|(path, mode, size)| (path.to_owned(), mode, size))
        );
    }

    #[test]
    fn a_copy_is_replaced_by_the_hosts_file_only_if_both_are_identical() {
        let folder = tempfile::tempdir().unwrap();
        let (host, unpacked) = (folder.path().join("host"), folder.path().join("unpacked"));
        fs::create_dir(&host).unwrap();

        fs::create_dir(&unpacked).unwrap();
        let entry = |name: &str, mode, content: &str, copied: &str| {
            let file = host.join(name);
            fs::write(&file, content).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            fs::write(unpacked.join(name), copied).unwrap();

            Entry {
                path: name.to_owned(),
                mode: 0o755,
                content: Content::Copy(file),
            }
        };

        let entries = vec![
            entry("program", 0o755, "runs", "runs"),
            entry("private", 0o700, "runs", "runs"),
            entry("replaced", 0o755, "newer", "older"),
        ];
        Layer(entries).share(&unpacked).unwrap();

        let is_shared = |name: &str| {
            fs::metadata(host.join(name)).unwrap().ino()
                == fs::metadata(unpacked.join(name)).unwrap().ino()
        };

        let root = fs::metadata(&host).unwrap().uid() == 0;
        assert_eq!(
            [
                is_shared("program"),
                is_shared("private"),
                is_shared("replaced")
            ],
            [root, false, false]
        );

        assert_eq!(fs::read(unpacked.join("replaced")).unwrap(), b"older");
        assert_eq!(fs::read_dir(&unpacked).unwrap().count(), 3);
    }
}
