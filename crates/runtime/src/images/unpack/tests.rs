//! Unpacks valid layers and hostile ones.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

use tar::{Builder, EntryType, Header};

use super::*;

#[test]
fn what_is_in_the_archive_is_in_the_folder() {
    let layer = Layer::new();
    let mut archive = Archive::new();
    archive.extended(&[
        ("SCHILY.xattr.security.capability", CAPABILITY),
        ("mtime", b"12.000000345"),
    ]);

    archive.file("usr/bin/tool", b"text", |header| {
        header.set_mode(0o4755);
        header.set_uid(7);
        header.set_gid(8);
    });

    archive.entry(EntryType::Symlink, "bin", "usr/bin");
    archive.entry(EntryType::Link, "usr/bin/same", "usr/bin/tool");
    archive.entry(EntryType::Fifo, "pipe", "");
    archive.add(EntryType::Char, "null", "", |header| {
        header.set_device_major(1).unwrap();
        header.set_device_minor(3).unwrap();
    });

    archive.add(EntryType::Directory, "usr", "", |header| {
        header.set_mtime(99)
    });
    let bytes = archive.done();
    let (digest, unpacked) = layer.unpack(&bytes).unwrap();
    assert_eq!(digest, Digest::of(&bytes));
    assert_eq!(unpacked.implied, BTreeSet::from(["usr/bin".into()]));

    let tool = fs::metadata(layer.path("usr/bin/tool")).unwrap();
    assert_eq!(
        (tool.uid(), tool.gid(), tool.mode() & 0o7777),
        (7, 8, 0o4755)
    );

    assert_eq!(
        (tool.mtime(), tool.mtime_nsec(), tool.nlink()),
        (12, 345, 2)
    );

    assert_eq!(
        layer
            .attribute("usr/bin/tool", "security.capability")
            .as_deref(),
        Some(CAPABILITY)
    );

    assert_eq!(
        fs::read_link(layer.path("bin")).unwrap(),
        Path::new("usr/bin")
    );

    assert!(
        fs::metadata(layer.path("pipe"))
            .unwrap()
            .file_type()
            .is_fifo()
    );

    assert_eq!(
        fs::metadata(layer.path("null")).unwrap().rdev(),
        rustix::fs::makedev(1, 3)
    );

    assert_eq!(fs::metadata(layer.path("usr")).unwrap().mtime(), 99);
}

#[test]
fn later_entries_take_the_place_of_earlier_ones() {
    let layer = Layer::new();
    let mut archive = Archive::new();
    archive.file("a/b/c", b"deep", |_| {});
    archive.file("a", b"now a file", |_| {});
    archive.entry(EntryType::Symlink, "l", "elsewhere");
    archive.file("l", b"now a file too", |_| {});
    archive.file("f", b"", |_| {});
    archive.entry(EntryType::Directory, "f", "");

    archive.file("same", b"kept", |_| {});
    archive.entry(EntryType::Link, "same", "same");
    layer.unpack(&archive.done()).unwrap();
    assert_eq!(fs::read(layer.path("a")).unwrap(), b"now a file");
    assert_eq!(fs::read(layer.path("l")).unwrap(), b"now a file too");
    assert!(fs::symlink_metadata(layer.path("f")).unwrap().is_dir());
    assert_eq!(fs::read(layer.path("same")).unwrap(), b"kept");
}

#[test]
fn whiteouts_become_overlay_whiteouts() {
    let layer = Layer::new();
    let mut archive = Archive::new();
    archive.file("d/.wh.gone", b"", |_| {});
    archive.file("opaque/.wh..wh..opq", b"", |_| {});
    archive.file("opaque/new", b"", |_| {});
    archive.file(".wh..wh.plnk", b"", |_| {});
    archive.file(".wh.again", b"", |_| {});
    archive.entry(EntryType::Directory, "again", "");

    archive.file("mine", b"kept", |_| {});
    archive.file(".wh.mine", b"", |_| {});
    archive.entry(EntryType::Directory, "folder", "");
    archive.file(".wh.folder", b"", |_| {});
    layer.unpack(&archive.done()).unwrap();
    let gone = fs::symlink_metadata(layer.path("d/gone")).unwrap();
    assert!(gone.file_type().is_char_device() && gone.rdev() == 0);

    for folder in ["opaque", "again", "folder"] {
        assert_eq!(
            layer.attribute(folder, "trusted.overlay.opaque").as_deref(),
            Some(&b"y"[..]),
            "{folder}"
        );
    }

    assert_eq!(fs::read(layer.path("mine")).unwrap(), b"kept");

    let mut names: Vec<_> = fs::read_dir(layer.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();

    assert_eq!(names, ["again", "d", "folder", "mine", "opaque"]);
}

#[test]
fn what_a_link_of_the_layer_leads_to_is_made_inside_the_layer() {
    let check = |links: &[(&str, &str)], name: &str, expected: Result<&str, &str>| {
        let layer = Layer::new();
        let mut archive = Archive::new();
        links
            .iter()
            .for_each(|(link, target)| archive.entry(EntryType::Symlink, link, target));
        archive.file(name, b"x", |_| {});

        match (layer.unpack(&archive.done()), expected) {
            (Ok((_, unpacked)), Ok(path)) => {
                assert_eq!(
                    fs::read(layer.path(path)).unwrap(),
                    b"x",
                    "{links:?} {name}"
                );

                for folder in &unpacked.implied {
                    let found = fs::symlink_metadata(layer.content.join(folder)).unwrap();
                    assert!(found.is_dir(), "{links:?} {name}: {folder:?}");
                }

                let parent = Path::new(path).parent().unwrap().to_owned();
                assert!(
                    parent == Path::new("") || unpacked.implied.contains(&parent),
                    "{links:?} {name}"
                );
            }
            (Err(UnpackError::Entry { source, .. }), Err(text)) => {
                assert!(
                    source.to_string().contains(text),
                    "{links:?} {name}: {source}"
                );
            }
            (other, _) => panic!("{links:?} {name}: {other:?}"),
        }
    };

    check(&[("var/run", "/run")], "var/run/x", Ok("run/x"));
    check(&[("var/run", "../run")], "var/run/x", Ok("run/x"));
    check(
        &[("var/run", "../run/")],
        "var/run/lock/x",
        Ok("run/lock/x"),
    );

    check(
        &[("a", "b"), ("b", "/c/d"), ("c", "./e")],
        "a/x",
        Ok("e/d/x"),
    );

    check(&[("a", "b/../c")], "a/x", Ok("c/x"));
    check(&[("a", "/../../..")], "a/b/x", Ok("b/x"));
    check(&[("a", "../../../etc")], "a/x", Ok("etc/x"));
    check(&[("a", "b"), ("b", "a")], "a/x", Err("symbolic links"));
    check(&[("a", "a")], "a/x", Err("symbolic links"));
    check(&[("a", "a/b")], "a/x", Err("symbolic links"));

    // Each link leads deeper than the one before: together, deeper than a path can.
    let layer = Layer::new();
    let mut archive = Archive::new();
    for (link, target) in [("a", "b/"), ("b", "c/")] {
        archive.extended(&[(
            "linkpath",
            format!("{target}{}", "d/".repeat(1500)).as_bytes(),
        )]);
        archive.entry(EntryType::Symlink, link, "");
    }

    archive.file("a/x", b"x", |_| {});
    let refused = layer.unpack(&archive.done()).unwrap_err();
    assert!(
        matches!(&refused, UnpackError::Entry { source, .. } if source.to_string().contains("too long"))
    );
}

#[test]
fn a_folder_with_an_entry_through_a_link_is_not_implied() {
    let layer = Layer::new();
    let mut archive = Archive::new();
    archive.entry(EntryType::Symlink, "var/run", "/run");
    archive.file("var/run/lock/x", b"", |_| {});
    archive.add(EntryType::Directory, "var/run/lock", "", |header| {
        header.set_mode(0o1777);
        header.set_mtime(99);
    });

    let (_, unpacked) = layer.unpack(&archive.done()).unwrap();
    assert_eq!(
        unpacked.implied,
        BTreeSet::from(["run".into(), "var".into()])
    );

    let found = fs::metadata(layer.path("run/lock")).unwrap();
    assert_eq!((found.mode() & 0o7777, found.mtime()), (0o1777, 99));
}

#[test]
fn nothing_leads_out_of_the_layer() {
    let outside = Layer::new();
    let victim = outside.folder.path().join("victim");
    let absolute = |name: &str| victim.join(name).to_str().unwrap().to_owned();
    let folder = absolute("");

    let check = |fill: &dyn Fn(&mut Archive)| {
        let layer = Layer::within(&victim);
        let mut archive = Archive::new();
        fill(&mut archive);
        let outcome = layer.unpack(&archive.done()).map(drop);
        let left: Vec<_> = fs::read_dir(&victim)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();

        assert_eq!(
            left.iter()
                .filter(|name| *name != "layer")
                .collect::<Vec<_>>(),
            ["secret"]
        );

        assert_eq!(fs::read(victim.join("secret")).unwrap(), b"secret");
        assert_eq!(fs::metadata(victim.join("secret")).unwrap().nlink(), 1);

        outcome
    };
    let refused = |fill: &dyn Fn(&mut Archive)| assert!(check(fill).is_err());
    refused(&|archive| archive.file("../evil", b"x", |_| {}));

    refused(&|archive| archive.file("a/../../evil", b"x", |_| {}));
    refused(&|archive| archive.file("../layer/../secret", b"x", |_| {}));
    refused(&|archive| archive.entry(EntryType::Link, "stolen", "../secret"));

    refused(&|archive| archive.entry(EntryType::Link, "stolen", &absolute("secret")));
    refused(&|archive| archive.file(".wh...", b"", |_| {}));
    refused(&|archive| archive.file(".wh..", b"", |_| {}));
    refused(&|archive| archive.file("d/.wh.", b"", |_| {}));
    refused(&|archive| {
        archive.entry(EntryType::Symlink, "up", "..");
        archive.entry(EntryType::Link, "stolen", "up/secret");
    });

    // A link to the outside means a place inside, which is made.
    check(&|archive| {
        archive.entry(EntryType::Symlink, "out", &folder);
        archive.file("out/evil", b"x", |_| {});
        archive.file("out/.wh.secret", b"", |_| {});
        archive.add(EntryType::Directory, "out", "", |header| {
            header.set_mode(0o777)
        });
    })
    .unwrap();

    // Too many steps up end at the layer's root.
    check(&|archive| {
        archive.entry(EntryType::Symlink, "up", "../../..");
        archive.file("up/evil", b"x", |_| {});
        archive.file("up/.wh.secret", b"", |_| {});
    })
    .unwrap();

    // A file in the place of a link does not follow it.
    check(&|archive| {
        archive.entry(EntryType::Symlink, "file", &absolute("secret"));
        archive.file("file", b"x", |header| header.set_mode(0o777));
    })
    .unwrap();

    check(&|archive| {
        archive.entry(EntryType::Symlink, "folder", &folder);
        archive.add(EntryType::Directory, "folder", "", |header| {
            header.set_mode(0o777)
        });
    })
    .unwrap();

    // A second name for a link is the link, not what it leads to.
    check(&|archive| {
        archive.entry(EntryType::Symlink, "link", &absolute("secret"));
        archive.entry(EntryType::Link, "again", "link");
    })
    .unwrap();
}

#[test]
fn overlays_own_attributes_are_not_taken_over() {
    let layer = Layer::new();
    let mut archive = Archive::new();
    archive.extended(&[
        ("SCHILY.xattr.trusted.overlay.redirect", b"/etc"),
        ("SCHILY.xattr.trusted.overlay.metacopy", b""),
        ("SCHILY.xattr.user.overlay.opaque", b"y"),
        ("SCHILY.xattr.security.selinux", b"x"),
        ("SCHILY.xattr.user.note", b"kept"),
    ]);

    archive.entry(EntryType::Directory, "d", "");
    layer.unpack(&archive.done()).unwrap();

    for name in [
        "trusted.overlay.redirect",
        "trusted.overlay.metacopy",
        "user.overlay.opaque",
        "security.selinux",
    ] {
        assert_eq!(layer.attribute("d", name), None, "{name}");
    }

    assert_eq!(
        layer.attribute("d", "user.note").as_deref(),
        Some(&b"kept"[..])
    );
}

#[test]
fn a_layer_grows_no_further_than_it_may() {
    let limits = Limits {
        bytes: 1 << 20,
        entries: 100,
    };

    let check = |bytes: &[u8], expected: &str| {
        let folder = tempfile::tempdir().unwrap();
        let error = unpack(bytes, folder.path(), &limits).unwrap_err();
        let text = format!(
            "{error}: {:?}",
            std::error::Error::source(&error).map(ToString::to_string)
        );
        assert!(text.contains(expected), "{text}");
    };

    let mut large = Archive::new();
    large.file("zeros", &vec![0; 2 << 20], |_| {});
    check(&large.done(), "larger than 1048576 bytes");
    let mut sparse = Archive::new();
    sparse.sparse("hole", 1 << 32);
    check(&sparse.done(), "larger than 1048576 bytes");
    let mut many = Archive::new();
    (0..101).for_each(|number| many.file(&number.to_string(), b"", |_| {}));
    check(&many.done(), "more than 100 entries");

    let mut deep = Archive::new();
    (0..3).for_each(|number| deep.file(&format!("{number}/{}f", "d/".repeat(40)), b"", |_| {}));
    check(&deep.done(), "more than 100 entries");
    let mut headers = Archive::new();
    headers.raw(EntryType::XHeader, &vec![b'x'; 9 << 20]);
    check(&headers.done(), "a header is too large");

    let mut longer = Archive::new();
    longer.raw(EntryType::GNULongName, &vec![b'x'; 9 << 20]);
    check(&longer.done(), "a header is too large");

    check(&vec![0; 9 << 20], "a header is too large");
    check(
        b"this is not an archive, but longer than a block of one"
            .repeat(20)
            .as_slice(),
        "",
    );
}

#[test]
fn an_archive_that_is_cut_off_is_an_error() {
    let mut archive = Archive::new();
    archive.file("a", &[7; 3000], |_| {});
    let bytes = archive.done();
    for length in [100, 600, 2000, 3000] {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            unpack(&bytes[..length], folder.path(), &Limits::default()).is_err(),
            "{length}"
        );
    }
}

#[test]
fn sparse_files_of_every_version_are_the_files_that_they_were() {
    let folder = tempfile::tempdir().unwrap();

    // Data after a hole, between two, and up to the very end.
    for (number, size) in [5_000_004_u64, 9_000_000].into_iter().enumerate() {
        let name = format!("{}/sparse{number}", "a-long-name".repeat(10));
        let path = folder.path().join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = fs::File::create(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"some", 1_000_000).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"more", 5_000_000).unwrap();
        file.set_len(size).unwrap();

        let expected = fs::read(&path).unwrap();
        for version in ["0.0", "0.1", "1.0"] {
            let mut tar = std::process::Command::new("tar");
            tar.args([
                "-S",
                "--format=posix",
                "--sparse-version",
                version,
                "-cf",
                "-",
                "-C",
            ]);

            let made = tar.arg(folder.path()).arg(&name).output().unwrap();
            assert!(
                made.status.success() && made.stdout.len() < 1 << 20,
                "tar makes no sparse files"
            );

            let layer = Layer::new();
            layer.unpack(&made.stdout).unwrap();
            assert!(
                fs::read(layer.path(&name)).unwrap() == expected,
                "{version}"
            );

            let found = fs::metadata(layer.path(&name)).unwrap();
            assert!(
                found.blocks() * 512 < 1 << 20,
                "{version}: the holes are holes"
            );

            assert_eq!(
                fs::read_dir(layer.path("")).unwrap().count(),
                1,
                "{version}"
            );
        }
    }
}

#[test]
fn maps_of_sparse_files_that_make_no_sense_are_refused() {
    const V1: [(&str, &[u8]); 3] = [
        ("GNU.sparse.major", b"1"),
        ("GNU.sparse.minor", b"0"),
        ("GNU.sparse.realsize", b"1000"),
    ];

    let check = |records: &[(&str, &[u8])], content: &[u8], expected: &str| {
        let layer = Layer::new();
        let mut archive = Archive::new();
        archive.extended(records);
        archive.file("f", content, |_| {});
        let shown: Vec<_> = records
            .iter()
            .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value)))
            .collect();

        let error = layer.unpack(&archive.done()).unwrap_err();
        let source = std::error::Error::source(&error)
            .map(ToString::to_string)
            .unwrap_or_default();
        let text = format!("{error}: {source}");
        assert!(text.contains(expected), "{shown:?}: {text}");

        assert!(
            expected.contains("larger than") || text.contains("sparse file \"f\""),
            "{shown:?}: {text}"
        );

        let left = fs::read_dir(layer.path("")).unwrap().count();
        assert_eq!(
            left, 0,
            "{shown:?}: nothing is made of a file that makes no sense"
        );
    };

    let listed = |map: &str, content: &[u8], expected: &str| {
        check(
            &[
                ("GNU.sparse.size", b"1000"),
                ("GNU.sparse.map", map.as_bytes()),
            ],
            content,
            expected,
        );
    };

    listed("0,4,2,4", b"somemore", "goes back");
    listed("100,4,0,4", b"somemore", "goes back");
    listed("998,4", b"some", "beyond the end of the file at 998");
    listed("18446744073709551615,4", b"some", "beyond the end");
    listed(
        "18446744073709551616,4",
        b"some",
        "invalid number \"18446744073709551616\"",
    );

    listed("-1,4", b"some", "invalid number \"-1\"");
    listed("0,4,", b"some", "invalid number \"\"");
    listed("0,4,8", b"some", "offset without a length");
    listed("0,4", b"something", "4 bytes of data, found 9");
    listed("0,9", b"some", "9 bytes of data, found 4");
    check(&[("GNU.sparse.map", b"0,4")], b"some", "lack the file size");

    let huge = (u64::MAX).to_string();
    check(
        &[
            ("GNU.sparse.size", huge.as_bytes()),
            ("GNU.sparse.map", b"0,4"),
        ],
        b"some",
        "larger than",
    );

    let versioned = |major: &'static [u8], minor: &'static [u8], expected: &str| {
        check(
            &[("GNU.sparse.major", major), ("GNU.sparse.minor", minor)],
            b"",
            expected,
        );
    };

    versioned(b"2", b"0", "version 2.0");
    versioned(b"1", b"1", "version 1.1");
    versioned(b"x", b"0", "invalid number \"x\"");

    let in_front = |map: &str, expected: &str| {
        let mut content = map.as_bytes().to_vec();
        content.resize(content.len().next_multiple_of(BLOCK), 0);
        content.extend_from_slice(b"some");
        check(&V1, &content, expected);
    };

    in_front("1\n0\n5\n", "5 bytes of data, found 4");
    in_front("1\n999\n4\n", "beyond the end");
    in_front("18446744073709551615\n0\n4\n", "sparse map is too long");
    in_front("9223372036854775807\n0\n4\n", "ends before the sparse map");
    in_front("1\nx\n", "invalid number \"x\"");
    check(&V1, b"1\n0\n", "ends before the sparse map");
    check(&V1, &[b'7'; 9 << 20], "sparse map is too long");
}

#[test]
fn a_sparse_file_goes_where_its_own_name_says_and_not_out() {
    let layer = Layer::new();
    let records = |name: &'static [u8]| {
        [
            ("GNU.sparse.name", name),
            ("GNU.sparse.size", b"8".as_slice()),
            ("GNU.sparse.map", b"2,4,8,0"),
        ]
    };

    let mut archive = Archive::new();
    archive.extended(&records(b"d/real"));
    archive.file("GNUSparseFile.1/real", b"some", |header| {
        header.set_mode(0o640)
    });

    archive.extended(&records(b"../victim/secret"));
    archive.file("GNUSparseFile.1/other", b"some", |_| {});
    assert!(matches!(
        layer.unpack(&archive.done()),
        Err(UnpackError::Escapes(_))
    ));

    assert_eq!(fs::read(layer.path("d/real")).unwrap(), b"\0\0some\0\0");
    assert_eq!(
        fs::metadata(layer.path("d/real")).unwrap().mode() & 0o7777,
        0o640
    );

    assert_eq!(
        fs::read(layer.folder.path().join("victim/secret")).unwrap(),
        b"secret"
    );

    let mut archive = Archive::new();
    archive.extended(&records(b"link"));
    archive.entry(EntryType::Symlink, "l", "x");
    assert!(matches!(
        layer.unpack(&archive.done()),
        Err(UnpackError::Sparse { .. })
    ));
}

const CAPABILITY: &[u8] = &[1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A folder for a layer, with a secret beside it.
struct Layer {
    folder: tempfile::TempDir,
    content: PathBuf,
}

impl Layer {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("secret"), "secret").unwrap();
        let content = folder.path().join("layer");
        fs::create_dir(&content).unwrap();
        Self { folder, content }
    }

    fn within(victim: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let content = victim.join("layer");
        if content.exists() {
            fs::remove_dir_all(&content).unwrap();
        }
        fs::create_dir(&content).unwrap();
        fs::set_permissions(&content, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, content }
    }

    fn unpack(&self, bytes: &[u8]) -> Result<(Digest, Unpacked), UnpackError> {
        unpack(bytes, &self.content, &Limits::default())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.content.join(name)
    }

    fn attribute(&self, name: &str, attribute: &str) -> Option<Vec<u8>> {
        let mut value = vec![0; 256];
        let length =
            rustix::fs::lgetxattr(self.path(name), attribute, value.as_mut_slice()).ok()?;
        value.truncate(length);
        Some(value)
    }
}

/// Writes archives, also those that no tool would write.
struct Archive(Builder<Vec<u8>>);

impl Archive {
    fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    fn done(self) -> Vec<u8> {
        self.0.into_inner().unwrap()
    }

    fn entry(&mut self, kind: EntryType, name: &str, target: &str) {
        self.add(kind, name, target, |_| {});
    }

    fn file(&mut self, name: &str, content: &[u8], change: impl FnOnce(&mut Header)) {
        let mut header = header(EntryType::Regular, name, "");
        header.set_size(content.len() as u64);
        change(&mut header);
        header.set_cksum();
        self.0.append(&header, content).unwrap();
    }

    fn add(&mut self, kind: EntryType, name: &str, target: &str, change: impl FnOnce(&mut Header)) {
        let mut header = header(kind, name, target);
        change(&mut header);
        header.set_cksum();
        self.0.append(&header, &[][..]).unwrap();
    }

    fn extended(&mut self, records: &[(&str, &[u8])]) {
        self.0
            .append_pax_extensions(records.iter().copied())
            .unwrap();
    }

    fn raw(&mut self, kind: EntryType, content: &[u8]) {
        let mut header = header(kind, "x", "");
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.0.append(&header, content).unwrap();
    }

    /// A file that is one hole.
    fn sparse(&mut self, name: &str, size: u64) {
        let mut header = header(EntryType::GNUSparse, name, "");
        let gnu = header.as_gnu_mut().unwrap();
        gnu.realsize
            .copy_from_slice(format!("{size:011o} ").as_bytes());
        gnu.sparse[0]
            .offset
            .copy_from_slice(format!("{size:011o} ").as_bytes());
        gnu.sparse[0].numbytes.copy_from_slice(b"00000000000 ");
        header.set_cksum();
        self.0.append(&header, &[][..]).unwrap();
    }
}

/// A header with exactly this name, which the library would refuse to set.
fn header(kind: EntryType, name: &str, target: &str) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.name[..name.len()].copy_from_slice(name.as_bytes());
    gnu.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header
}
