//! Folders and files that other users of the host must not read.
//!
//! Their mode is right from the moment they exist, whatever the umask is. Those that are there with
//! a wider one get the right one.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// What only root, or who runs us, may read.
pub const FOLDER: u32 = 0o700;
pub const FILE: u32 = 0o600;

/// Makes a folder, and those above it that are missing, for nobody else.
pub fn folder(path: &Path) -> io::Result<()> {
    folder_for(path, FOLDER)
}

/// The same for those whom the mode names. A folder that is there loses what goes beyond the mode,
/// also one on another disk that an administrator made a link to.
pub fn folder_for(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    tighten(&File::open(path)?, mode)
}

/// Opens a file for writing that is made, or emptied.
pub fn create(path: &Path) -> io::Result<File> {
    open(
        path,
        OpenOptions::new().write(true).create(true).truncate(true),
    )
}

/// Opens a file for writing at its end. It is made if it is missing.
pub fn append(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().append(true).create(true))
}

/// Opens a file for reading and writing. It is made if it is missing.
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

/// Writes a file under another name and gives it its name: it is there whole or not at all. Nothing
/// is synced.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    create(Path::new(&unfinished))?.write_all(bytes)?;
    fs::rename(unfinished, path)
}

fn open(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    // Bits of flags have no sign.
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

/// Takes from a file or folder that is there what goes beyond a mode. What is not there is left
/// alone.
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
