//! Single files: only regular files are read, and private files are private from the start.
#![expect(clippy::unwrap_used, reason = "tests panic on failure")]

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use coracle_files::{private, read};
use rustix::fs::{CWD, FileType, Mode, mknodat};

#[test]
fn only_regular_files_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "0123456789").unwrap();

    symlink("file", at("link")).unwrap();
    mknodat(
        CWD,
        at("pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o666),
        0,
    )
    .unwrap();

    let open = |name: &str| read::open_regular(&at(name));
    assert_eq!(
        read::whole(open("file").unwrap(), 10).unwrap(),
        b"0123456789"
    );

    assert_eq!(
        read::whole(open("file").unwrap(), 9).unwrap_err().kind(),
        ErrorKind::FileTooLarge
    );

    assert_eq!(read::head(open("file").unwrap(), 3).unwrap(), b"012");
    assert_eq!(read::tail(open("file").unwrap(), 3).unwrap(), b"789");
    assert_eq!(
        read::tail(open("file").unwrap(), 30).unwrap(),
        b"0123456789"
    );

    for other in ["pipe", "link", "."] {
        assert_eq!(
            open(other).unwrap_err().kind(),
            ErrorKind::InvalidInput,
            "{other}"
        );
    }

    assert_eq!(open("absent").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        read::open_regular(Path::new("/dev/null"))
            .unwrap_err()
            .kind(),
        ErrorKind::InvalidInput
    );
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn existing_files_and_folders_are_made_private() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    private::folder(&at("a/b")).unwrap();
    assert_eq!((mode(&at("a")), mode(&at("a/b"))), (0o700, 0o700));

    fs::set_permissions(at("a/b"), fs::Permissions::from_mode(0o1755)).unwrap();
    private::folder(&at("a/b")).unwrap();
    assert_eq!(mode(&at("a/b")), 0o1700);

    private::folder_for(&at("shared"), 0o750).unwrap();
    assert_eq!(mode(&at("shared")), 0o750);

    fs::write(at("old"), "old").unwrap();
    fs::set_permissions(at("old"), fs::Permissions::from_mode(0o644)).unwrap();
    private::append(&at("old"))
        .unwrap()
        .write_all(b" and new")
        .unwrap();

    assert_eq!(
        (mode(&at("old")), fs::read(at("old")).unwrap().as_slice()),
        (0o600, &b"old and new"[..])
    );

    private::write(&at("old"), b"newest").unwrap();
    assert_eq!(
        (mode(&at("old")), fs::read(at("old")).unwrap().as_slice()),
        (0o600, &b"newest"[..])
    );

    assert!(!at("old.new").exists());

    fs::set_permissions(at("old"), fs::Permissions::from_mode(0o666)).unwrap();
    private::restrict(&at("old"), 0o600).unwrap();
    private::restrict(&at("absent"), 0o600).unwrap();
    assert_eq!(mode(&at("old")), 0o600);
}
