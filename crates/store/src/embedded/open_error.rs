//! Why a store cannot be opened: the cause, the file, and what to do about it.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the store in {path} is in use by another process: stop that process first, or use another directory"
    )]
    InUse { path: String },
    #[error(
        "the store in {path} is damaged: {file}: {what}. Nothing was changed. Restore a backup into an empty \
         directory; keep this one for analysis"
    )]
    Corrupt {
        path: String,
        file: String,
        what: String,
    },
    #[error(
        "the store in {path} was written by a newer version (format {format}): use that version"
    )]
    Newer { path: String, format: u8 },
    #[error("no space left on the disk of {path}: free space and start again")]
    DiskFull { path: String },
    #[error("the disk of {path} is read-only: remount it read-write, or use another directory")]
    ReadOnly { path: String },
    #[error("cannot open the store in {path}: {action}")]
    Io {
        path: String,
        action: String,
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(path: &str, action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        let action = action.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                OpenError::DiskFull { path }
            }
            io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { path },
            _ => OpenError::Io {
                path,
                action,
                source,
            },
        }
    }
}
