//! What is written down about pods and containers, so that it is known again after a restart.

use std::fs;
use std::path::Path;

use coracle_cri::v1::{ContainerConfig, PodSandboxConfig};
use prost::Message;

use crate::error::Error;

/// A pod, as it is written down.
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
    /// It was made completely; without this a restart takes it away.
    #[prost(bool, tag = "5")]
    pub(crate) complete: bool,
    /// It was stopped: nothing of it runs, and its network is given back.
    #[prost(bool, tag = "6")]
    pub(crate) stopped: bool,
}

/// A container, as it is written down.
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
    /// The process as the supervisor was told, for those that are started in the container later.
    #[prost(bytes = "vec", tag = "9")]
    pub(crate) process: Vec<u8>,
    #[prost(int32, tag = "10")]
    pub(crate) stop_signal: i32,
    /// It was made completely.
    #[prost(bool, tag = "11")]
    pub(crate) complete: bool,
    /// Why it could not be started.
    #[prost(string, tag = "12")]
    pub(crate) start_error: String,
}

/// Writes a record, whole or not at all.
pub(crate) fn save(folder: &Path, record: &impl Message) -> Result<(), Error> {
    let (unfinished, path) = (folder.join("record.new"), folder.join("record"));
    fs::write(&unfinished, record.encode_to_vec()).map_err(Error::io("write", &unfinished))?;
    fs::rename(&unfinished, &path).map_err(Error::io("write", &path))
}

/// The record in a folder; none where it was never finished.
pub(crate) fn load<R: Message + Default>(folder: &Path) -> Option<R> {
    R::decode(fs::read(folder.join("record")).ok()?.as_slice()).ok()
}

/// The names in a folder; none where there is no such folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
