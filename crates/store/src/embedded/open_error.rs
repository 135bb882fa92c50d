//! Why a store could not be opened: what is wrong, where, and what to do about it.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "the store in {place} is in use by another process: stop that one first, or name another directory"
    )]
    InUse { place: String },
    #[error(
        "the store in {place} is damaged: {file}: {what}. Nothing was changed. Restore a backup into an empty \
         directory; keep this one for a closer look"
    )]
    Corrupt {
        place: String,
        file: String,
        what: String,
    },
    #[error(
        "the store in {place} was written by a newer version (format {format}): use that version"
    )]
    Newer { place: String, format: u8 },
    #[error("no space left on the disk of {place}: free some and start again")]
    DiskFull { place: String },
    #[error("the disk of {place} is read-only: mount it writable, or name another directory")]
    ReadOnly { place: String },
    #[error("the store in {place} could not be opened: {action} failed")]
    Io {
        place: String,
        action: String,
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(place: &str, action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let place = place.to_owned();
        let action = action.into();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                OpenError::DiskFull { place }
            }
            io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { place },
            _ => OpenError::Io {
                place,
                action,
                source,
            },
        }
    }
}
