//! Programs that a test writes and then runs.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Writes a program that can be run at once.
///
/// The system does not run a file that some process has open for writing ("Text file busy"). A test
/// that writes the file itself cannot be sure that none has: a child that another thread forks at
/// that moment holds every open file until it has become its own program. So a process that has no
/// other threads writes it, and is gone before this returns.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    let mut text = OsString::from(path);
    text.push(".text");
    std::fs::write(&text, content).unwrap();
    let status = Command::new("install")
        .args(["-m", "755"])
        .arg(&text)
        .arg(path)
        .status()
        .unwrap();
    assert!(status.success(), "cannot write {}", path.display());
    std::fs::remove_file(&text).unwrap();
}
