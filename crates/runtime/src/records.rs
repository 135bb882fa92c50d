//! Records of pods and containers on disk, from which a restart recovers them.
//!
//! A record is a file to which newer states are appended; the last complete one is valid. So a
//! record needs one file however often it changes, and a writer that is killed in the middle of a
//! write leaves the previous state.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use coracle_cri::v1::{ContainerConfig, PodSandboxConfig};
use coracle_files::private;
use prost::Message;

use crate::error::Error;

/// The record of a pod.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct SandboxRecord {
    #[prost(message, required, tag = "1")]
    pub(crate) config: PodSandboxConfig,
    #[prost(int64, tag = "2")]
    pub(crate) created_at: i64,
    #[prost(string, tag = "3")]
    pub(crate) handler: String,
    #[prost(string, repeated, tag = "4")]
    pub(crate) addresses: Vec<String>,
    /// It was created completely; without this a restart removes it.
    #[prost(bool, tag = "5")]
    pub(crate) complete: bool,
    /// It was stopped: nothing of it runs, and its network is released.
    #[prost(bool, tag = "6")]
    pub(crate) stopped: bool,
}

/// The record of a container.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ContainerRecord {
    #[prost(string, tag = "1")]
    pub(crate) sandbox: String,
    #[prost(message, required, tag = "2")]
    pub(crate) config: ContainerConfig,
    #[prost(int64, tag = "3")]
    pub(crate) created_at: i64,
    #[prost(int64, tag = "4")]
    pub(crate) started_at: i64,
    #[prost(string, tag = "5")]
    pub(crate) image_id: String,
    #[prost(string, tag = "6")]
    pub(crate) image_ref: String,
    #[prost(string, tag = "7")]
    pub(crate) log_path: String,
    #[prost(string, tag = "8")]
    pub(crate) cgroup: String,
    /// The process spec sent to the supervisor, the template for exec.
    #[prost(bytes = "vec", tag = "9")]
    pub(crate) process: Vec<u8>,
    #[prost(int32, tag = "10")]
    pub(crate) stop_signal: i32,
    /// It was created completely.
    #[prost(bool, tag = "11")]
    pub(crate) complete: bool,
    /// Why it could not be started.
    #[prost(string, tag = "12")]
    pub(crate) start_error: String,
}

const RECORD: &str = "record";
/// Size of the length prefix of a state.
const LENGTH: usize = size_of::<u32>();

/// Appends the newest state to a record.
pub(crate) fn save(folder: &Path, record: &impl Message) -> Result<(), Error> {
    let path = folder.join(RECORD);
    let mut state = vec![0; LENGTH];
    record.encode(&mut state).expect("a vector grows as needed");
    let length = u32::try_from(state.len() - LENGTH).expect("a record is far below 4 GiB");
    state[..LENGTH].copy_from_slice(&length.to_le_bytes());
    // Private: it contains the environment of the container, with its secrets.
    let append = || private::append(&path)?.write_all(&state);
    append().map_err(Error::io("write", &path))
}

/// The record in a folder; none if no state is complete.
pub(crate) fn load<R: Message + Default>(folder: &Path) -> Option<R> {
    R::decode(last_whole(&fs::read(folder.join(RECORD)).ok()?).0?).ok()
}

/// Truncates an incomplete state of a killed writer, to which the next state would be appended.
/// There must be no other writer. On a read-only disk the record is left as it is.
pub(crate) fn repair(folder: &Path) -> Result<(), Error> {
    match cut_unfinished(folder) {
        Err(error) if error.is_read_only() => Ok(()),
        repaired => repaired,
    }
}

fn cut_unfinished(folder: &Path) -> Result<(), Error> {
    let path = folder.join(RECORD);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        bytes => bytes.map_err(Error::io("read", &path))?,
    };

    // Older versions created it world-readable.
    private::restrict(&path, private::FILE).map_err(Error::io("restrict the mode of", &path))?;
    let whole = last_whole(&bytes).1;
    if whole < bytes.len() {
        cut(&path, whole).map_err(Error::io("truncate", &path))
    } else {
        Ok(())
    }
}

/// The last complete state, and the offset of its end.
fn last_whole(bytes: &[u8]) -> (Option<&[u8]>, usize) {
    let (mut last, mut end) = (None, 0);
    while let Some(length) = bytes[end..].first_chunk() {
        let begin = end + LENGTH;
        let state = usize::try_from(u32::from_le_bytes(*length))
            .ok()
            .and_then(|length| begin.checked_add(length));
        let Some((end_of_state, state)) = state.and_then(|end| Some((end, bytes.get(begin..end)?)))
        else {
            break;
        };
        (last, end) = (Some(state), end_of_state);
    }

    (last, end)
}

fn cut(path: &Path, length: usize) -> io::Result<()> {
    File::options()
        .write(true)
        .open(path)?
        .set_len(u64::try_from(length).map_err(io::Error::other)?)
}

/// The names in a folder; empty if it does not exist.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(created_at: i64) -> SandboxRecord {
        SandboxRecord {
            created_at,
            addresses: vec!["10.0.0.2".to_owned()],
            ..SandboxRecord::default()
        }
    }

    #[test]
    fn the_last_state_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load::<SandboxRecord>(folder.path()), None);
        for state in 1..4 {
            save(folder.path(), &record(state)).unwrap();
            assert_eq!(load(folder.path()), Some(record(state)));
        }
    }

    #[test]
    fn a_truncated_state_leaves_the_previous_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RECORD);
        save(folder.path(), &record(1)).unwrap();
        let first = fs::read(&path).unwrap().len();
        save(folder.path(), &record(2)).unwrap();

        let both = fs::read(&path).unwrap();
        for length in 0..both.len() {
            fs::write(&path, &both[..length]).unwrap();
            let before = (length >= first).then(|| record(1));
            assert_eq!(load(folder.path()), before, "{length} bytes");
            repair(folder.path()).unwrap();
            assert_eq!(load(folder.path()), before, "{length} bytes, repaired");
            save(folder.path(), &record(3)).unwrap();
            assert_eq!(load(folder.path()), Some(record(3)), "after {length} bytes");
        }
    }
}
