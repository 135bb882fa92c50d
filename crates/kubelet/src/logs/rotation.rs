//! Log rotation: a log that is too large is renamed, later compressed, and removed when there are
//! too many.
//!
//! `0.log` becomes `0.log.20261116-224604`, and the runtime opens another `0.log`. The newest
//! rotated log stays uncompressed until the next rotation: a log collector may still be reading it.
//! Only logs of running containers are checked; others do not grow.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use coracle_api::time::{Time, Timestamp};
use coracle_cri::v1::{ContainerFilter, ContainerState, ContainerStateValue};
use coracle_files::{private, read};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cgroups::blocking;
use crate::host::Host;

/// Limits of container logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRotation {
    /// Size in bytes at which a log is rotated.
    pub max_size: u64,
    /// Files per container, including the current one; at least two.
    pub max_files: usize,
    pub check_interval: Duration,
}

impl Default for LogRotation {
    /// Upstream's defaults.
    fn default() -> LogRotation {
        LogRotation {
            max_size: 10 << 20,
            max_files: 5,
            check_interval: Duration::from_secs(10),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum RotationError {
    #[error(transparent)]
    Runtime(#[from] coracle_cri::Error),
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
}

/// Checks the logs of all running containers periodically.
pub(crate) async fn run(host: &Host, rotation: &LogRotation) {
    let running = ContainerStateValue {
        state: ContainerState::ContainerRunning.into(),
    };
    let filter = ContainerFilter {
        state: Some(running),
        ..ContainerFilter::default()
    };

    loop {
        tokio::time::sleep(rotation.check_interval).await;

        match host.runtime.list_containers(filter.clone()).await {
            Ok(containers) => {
                for container in containers {
                    if let Err(error) = rotate_if_large(host, rotation, &container.id).await {
                        tracing::warn!(container = container.id, %error, "cannot rotate container log");
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "cannot list containers for log rotation"),
        }
    }
}

async fn rotate_if_large(
    host: &Host,
    rotation: &LogRotation,
    id: &str,
) -> Result<(), RotationError> {
    let status = host
        .runtime
        .container_status(id, false)
        .await?
        .status
        .unwrap_or_default();

    if status.log_path.is_empty() {
        return Ok(());
    }

    let path = PathBuf::from(status.log_path);
    let failed = |source| RotationError::File {
        path: path.clone(),
        source,
    };

    match tokio::fs::symlink_metadata(&path).await {
        Ok(found) if found.len() < rotation.max_size => return Ok(()),
        Ok(_) => {}
        // It was deleted: reopen it, so that further output is kept.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(host.runtime.reopen_container_log(id).await?);
        }
        Err(error) => return Err(failed(error)),
    }

    let (log, max_files) = (path.clone(), rotation.max_files);
    let pruned = tokio::task::spawn_blocking(move || prune(&log, max_files)).await;
    pruned
        .map_err(|error| failed(error.into()))?
        .map_err(failed)?;

    let rotated = with_suffix(&path, &stamp(host.now()));
    if tokio::fs::try_exists(&rotated).await.map_err(failed)? {
        // Another rotation happened in the same second.
        return Ok(());
    }

    tokio::fs::rename(&path, &rotated).await.map_err(failed)?;

    if let Err(error) = host.runtime.reopen_container_log(id).await {
        // The container still writes to it: undo, and retry at the next check.
        tokio::fs::rename(&rotated, &path).await.map_err(failed)?;
        return Err(error.into());
    }

    Ok(())
}

/// Removes a log and its rotated files. Errors are ignored: the rest is removed with the pod.
pub(crate) async fn remove(log: &Path) {
    let log = log.to_owned();
    blocking(move || {
        let names = rotated_names(&log).unwrap_or_default();
        for path in names
            .iter()
            .map(|name| log.with_file_name(name))
            .chain([log.clone()])
        {
            fs::remove_file(path).unwrap_or_default();
        }
    })
    .await;
}

/// Removes and compresses rotated logs to make place for one more.
fn prune(log: &Path, max_files: usize) -> io::Result<()> {
    let plan = plan(&rotated_names(log)?, max_files);
    for name in &plan.remove {
        fs::remove_file(log.with_file_name(name))?;
    }
    plan.compress
        .iter()
        .try_for_each(|name| compress(&log.with_file_name(name)))
}

/// The names of files with the log's name and a dot as prefix.
fn rotated_names(log: &Path) -> io::Result<Vec<String>> {
    let (Some(folder), Some(name)) = (log.parent(), log.file_name()) else {
        return Ok(Vec::new());
    };
    let begin = format!("{}.", name.to_string_lossy());
    let names = fs::read_dir(folder)?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| name.starts_with(&begin)).collect())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    remove: Vec<String>,
    compress: Vec<String>,
}

/// What to do with rotated logs before the next rotation.
fn plan(names: &[String], max_files: usize) -> Plan {
    // Leftovers of an interrupted compression: a partial result, or its source.
    let is_done =
        |name: &String| name.ends_with(PART) || names.contains(&format!("{name}{COMPRESSED}"));
    let (mut remove, mut kept): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(is_done);

    // Sorted by time.
    kept.sort();

    // One is the current log, one the log to rotate now.
    let excess = kept.len().saturating_sub(max_files.saturating_sub(2));
    remove.extend(kept.drain(..excess));
    kept.retain(|name| !name.ends_with(COMPRESSED));

    Plan {
        remove,
        compress: kept,
    }
}

const COMPRESSED: &str = ".gz";
const PART: &str = ".tmp";

fn compress(log: &Path) -> io::Result<()> {
    let (part, whole) = (
        with_suffix(log, &PART[1..]),
        with_suffix(log, &COMPRESSED[1..]),
    );
    let mut from = read::open_regular(log)?;
    let to = private::create(&part)?;
    to.set_permissions(from.metadata()?.permissions())?;
    let mut encoder = GzEncoder::new(to, Compression::default());
    io::copy(&mut from, &mut encoder)?;
    encoder.finish()?;
    fs::rename(&part, &whole)?;
    fs::remove_file(log)
}

/// The path with a dot and a suffix.
fn with_suffix(log: &Path, ending: &str) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// `20261116-224604`, upstream's format.
fn stamp(now: Timestamp) -> String {
    let text = Time(now).text();
    text.chars()
        .filter(|one| one.is_ascii_digit() || *one == 'T')
        .collect::<String>()
        .replace('T', "-")
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use super::*;

    fn check(names: &[&str], max_files: usize, remove: &[&str], compress: &[&str]) {
        let owned = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };

        let expected = Plan {
            remove: owned(remove),
            compress: owned(compress),
        };

        assert_eq!(
            plan(&owned(names), max_files),
            expected,
            "{names:?}, at most {max_files}"
        );
    }

    #[test]
    fn the_oldest_are_removed_and_the_rest_is_compressed() {
        check(&[], 5, &[], &[]);
        check(&["l.1"], 5, &[], &["l.1"]);
        check(&["l.2", "l.1.gz"], 5, &[], &["l.2"]);
        check(
            &["l.4", "l.3.gz", "l.1.gz", "l.2.gz"],
            5,
            &["l.1.gz"],
            &["l.4"],
        );

        check(&["l.1", "l.2"], 2, &["l.1", "l.2"], &[]);

        // A compression was interrupted before its result was complete, or before its source was
        // removed.
        check(&["l.1", "l.1.tmp"], 5, &["l.1.tmp"], &["l.1"]);
        check(&["l.1", "l.1.gz"], 5, &["l.1"], &[]);
    }

    #[test]
    fn no_more_rotated_logs_remain_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("0.log");
        fs::write(folder.path().join("1.log"), "another").unwrap();

        for turn in 0..10 {
            fs::write(&log, format!("turn {turn}")).unwrap();
            prune(&log, 4).unwrap();
            fs::rename(&log, with_suffix(&log, &format!("2026010{turn}-000000"))).unwrap();
        }

        let mut names = rotated_names(&log).unwrap();
        names.sort();

        let expected = [
            "0.log.20260107-000000.gz",
            "0.log.20260108-000000.gz",
            "0.log.20260109-000000",
        ];
        assert_eq!(names, expected);

        let mut text = String::new();
        let packed = File::open(log.with_file_name(expected[0])).unwrap();
        flate2::read::GzDecoder::new(packed)
            .read_to_string(&mut text)
            .unwrap();

        assert_eq!(text, "turn 7");
        assert!(
            folder.path().join("1.log").exists(),
            "another container's log is left alone"
        );
    }

    #[test]
    fn names_contain_the_time() {
        assert_eq!(
            stamp(Timestamp::from_unix(1_794_869_164, 5)),
            "20261116-224604"
        );
    }
}
