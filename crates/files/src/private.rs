//! Directories and files that other users of the host must not read.
//!
//! Their mode is set when they are created, whatever the umask is. Existing ones with a wider mode
//! are corrected.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Accessible by the owner only.
pub const FOLDER: u32 = 0o700;
pub const FILE: u32 = 0o600;

/// Creates a directory and its missing parents, accessible by the owner only.
pub fn folder(path: &Path) -> io::Result<()> {
    folder_for(path, FOLDER)
}

/// Creates a directory with this mode. An existing one loses permissions beyond the mode, also if
/// it is on another disk behind a symlink.
pub fn folder_for(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    tighten(&File::open(path)?, mode)
}

/// Opens a file for writing, created or truncated.
pub fn create(path: &Path) -> io::Result<File> {
    open(
        path,
        OpenOptions::new().write(true).create(true).truncate(true),
    )
}

/// Opens a file for appending, created if it is missing.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().append(true).create(true))
}

/// Opens a file for reading and writing, created if it is missing.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    open(
        path,
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false),
    )
}

/// Writes a file atomically, through a temporary file and a rename. Does not sync.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    create(Path::new(&unfinished))?.write_all(bytes)?;
    fs::rename(unfinished, path)
}

fn open(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    // The flag bits are never negative.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = how.mode(FILE).custom_flags(flags).open(path)?;
    tighten(&file, FILE)?;
    Ok(file)
}

fn tighten(file: &File, mode: u32) -> io::Result<()> {
    let now = file.metadata()?.permissions().mode() & 0o7777;
    if now & 0o777 & !mode != 0 {
        let rest = now & !0o777 | now & mode;
        rustix::fs::fchmod(file, Mode::from_raw_mode(rest))?;
    }
    Ok(())
}

/// Removes permissions beyond `mode` from an existing file or directory. A missing one is no error.
pub fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    let now = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.permissions().mode(),
    };
    if now & 0o777 & !mode == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(now & 0o7000 | now & mode))
}
