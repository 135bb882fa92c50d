//! Executables that a test writes and then runs.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Writes an executable that can be run at once. The kernel does not execute a file that a process
/// has open for writing ("Text file busy"). A child that another thread forks while the test writes
/// the file holds it open until its exec. So a single-threaded child process writes the file, and
/// has ended before this returns.
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
