//! Trees as hostile programs create them, with a small descriptor limit.
#![expect(clippy::unwrap_used, reason = "tests panic on failure")]

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::thread;

use coracle_files::{Usage, WalkEntry, open_folder, remove_tree, usage, walk};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Far beyond the path limit, and too deep to recurse on a thread's stack.
const DEEP: usize = 50_000;

fn with_few_descriptors() {
    let hard = getrlimit(Resource::Nofile).maximum;
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(1024),
            maximum: hard,
        },
    )
    .unwrap();
}

/// A directory in which thousands of directories are created per second.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Nested directories, with files here and there, before and after the next directory in any
/// listing order.
fn dig(top: &Path, depth: usize) {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here: OwnedFd = openat(CWD, top, folder, Mode::empty()).unwrap();
    for level in 0..depth {
        if level % 1000 == 0 {
            for number in 0..5 {
                mkdirat(
                    &here,
                    format!("beside-{number}"),
                    Mode::from_raw_mode(0o700),
                )
                .unwrap();
            }
        }

        mkdirat(&here, "d", Mode::from_raw_mode(0o700)).unwrap();
        here = openat(&here, "d", folder, Mode::empty()).unwrap();
    }
}

fn inodes_of(depth: usize) -> u64 {
    (depth + depth.div_ceil(1000) * 5) as u64
}

fn measured(tree: &Path) -> Usage {
    let (usage, walked) = usage(open_folder(tree).unwrap());
    walked.unwrap();
    usage
}

#[test]
fn a_deep_tree_is_removed() {
    with_few_descriptors();
    let folder = in_memory();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    dig(&tree, DEEP);
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
    remove_tree(&tree).unwrap();
    remove_tree(&tree.join("below")).unwrap();
}

#[test]
fn a_deep_tree_is_walked_once() {
    with_few_descriptors();
    let folder = in_memory();
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    dig(&tree, DEEP);
    assert_eq!(measured(&tree).inodes, inodes_of(DEEP));
    remove_tree(&tree).unwrap();
}

#[test]
fn a_tree_that_is_both_deep_and_wide_is_removed() {
    with_few_descriptors();
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");

    let deep = tree.join("d/".repeat(40));
    for number in 0..150 {
        fs::create_dir_all(deep.join(format!("{number}/{}", "e/".repeat(number % 70)))).unwrap();
        fs::write(deep.join(format!("file-{number}")), "x").unwrap();
    }

    // The name that a removal uses for its temporary directory.
    fs::create_dir_all(tree.join(".coracle-removed-0/0/1")).unwrap();
    fs::write(tree.join(".coracle-removed-1"), "").unwrap();
    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn links_and_pipes_are_removed_and_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("kept"), "kept").unwrap();

    let tree = folder.path().join("tree");
    fs::create_dir_all(tree.join("inner")).unwrap();
    symlink(&victim, tree.join("link")).unwrap();

    symlink("../../victim/kept", tree.join("inner/link")).unwrap();
    rustix::fs::mknodat(
        CWD,
        tree.join("inner/pipe"),
        rustix::fs::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();

    assert_eq!(measured(&tree).inodes, 4);

    remove_tree(&tree).unwrap();
    assert!(!tree.exists());

    let link = folder.path().join("link");
    symlink(&victim, &link).unwrap();
    remove_tree(&link).unwrap();
    assert!(fs::symlink_metadata(&link).is_err());
    assert_eq!(fs::read(victim.join("kept")).unwrap(), b"kept");
}

#[test]
fn mounts_are_kept_and_everything_else_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    let at = tree.join("a/mounted");
    fs::create_dir_all(&at).unwrap();
    fs::write(tree.join("file"), "").unwrap();
    fs::create_dir_all(tree.join("b/c")).unwrap();
    mount("test", &at, "tmpfs", MountFlags::empty(), None).unwrap();
    fs::write(at.join("kept"), "kept").unwrap();

    let removed = remove_tree(&tree);
    let whole = remove_tree(&at);
    let kept = fs::read(at.join("kept"));
    let (measured, walked) = usage(open_folder(&tree).unwrap());
    unmount(&at, UnmountFlags::empty()).unwrap();
    assert_eq!(removed.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    assert_eq!(whole.unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    assert_eq!(kept.unwrap(), b"kept");

    walked.unwrap();
    assert_eq!(measured.inodes, 2);
    assert_eq!(
        fs::read_dir(&tree).unwrap().count(),
        1,
        "everything but the path to the mount is removed"
    );

    remove_tree(&tree).unwrap();
    assert!(!tree.exists());
}

#[test]
fn modes_that_deny_access_do_not_stop_the_owner() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    let deep = tree.join("closed/".repeat(60));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file"), "").unwrap();

    for above in deep
        .ancestors()
        .take_while(|above| above.starts_with(&tree))
    {
        fs::set_permissions(above, fs::Permissions::from_mode(0o000)).unwrap();
    }

    // On a thread without root's capabilities.
    let removed = thread::spawn(move || {
        let mut allowed = capabilities(None).unwrap();
        allowed
            .effective
            .remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, allowed).unwrap();
        assert!(fs::read_dir(&tree).is_err());
        remove_tree(&tree).map(|()| tree.exists())
    });
    assert!(!removed.join().unwrap().unwrap());
}

#[test]
fn a_walk_visits_everything_and_returns_the_visitors_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    fs::write(folder.path().join("a/b/file"), vec![1; 10_000]).unwrap();

    let mut names = Vec::new();
    walk(
        open_folder(folder.path()).unwrap(),
        &mut |found: &WalkEntry<'_>| {
            names.push(found.name.to_string_lossy().into_owned());
            Ok(())
        },
    )
    .unwrap();

    assert_eq!(names, ["a", "b", "file"]);

    let Usage { bytes, inodes } = measured(folder.path());
    assert!(bytes >= 10_000 && inodes == 3, "{bytes} {inodes}");

    let refused = walk(open_folder(folder.path()).unwrap(), &mut |_: &WalkEntry<
        '_,
    >| {
        Err(io::Error::other("no"))
    });
    assert_eq!(refused.unwrap_err().to_string(), "no");
}
