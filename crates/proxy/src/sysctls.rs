//! Settings of connection tracking that a proxy makes on its node: room for the connections of all
//! pods, and how long idle ones are remembered.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

/// What is set. Zero leaves the kernel's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conntrack {
    /// Connections for every processor, but `min` at least.
    pub max_per_core: u64,
    pub min: u64,
    pub tcp_established_timeout: Duration,
    pub tcp_close_wait_timeout: Duration,
    /// Packets outside of a connection's window are not marked as invalid.
    pub tcp_be_liberal: bool,
    pub udp_timeout: Duration,
    pub udp_stream_timeout: Duration,
}

/// A setting that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot set {name} to {value}")]
pub struct SysctlError {
    name: String,
    value: u64,
    source: io::Error,
}

/// Connections that are tracked at most on machines with many processors.
const LIMIT: u64 = 1 << 20;
const SYSCTLS: &str = "proc/sys/net/netfilter";
const HASH_SIZE: &str = "sys/module/nf_conntrack/parameters/hashsize";

impl Conntrack {
    /// Makes the settings, all that can be made.
    ///
    /// # Errors
    /// The first that could not be made.
    pub fn apply(&self, processors: usize) -> Result<(), SysctlError> {
        self.apply_below(Path::new("/"), processors)
    }

    fn apply_below(&self, root: &Path, processors: usize) -> Result<(), SysctlError> {
        let (mut done, max) = (Ok(()), self.max(processors));
        for (name, value) in self.values(max) {
            done = done.and(set(&root.join(SYSCTLS).join(name), value));
        }

        // The kernel finds connections by hash: with too few buckets it searches long lists.
        let (hash_size, buckets) = (root.join(HASH_SIZE), max / 4);
        match read(&hash_size) {
            Ok(size) if size >= buckets => done,
            _ if max == 0 => done,
            _ => done.and(set(&hash_size, buckets)),
        }
    }

    fn max(&self, processors: usize) -> u64 {
        let scaled = self.max_per_core.saturating_mul(processors as u64);
        match self.max_per_core {
            0 => 0,
            _ if scaled > LIMIT => LIMIT,
            _ => scaled.max(self.min),
        }
    }

    /// Names and values of what is set.
    fn values(&self, max: u64) -> Vec<(&'static str, u64)> {
        let all = [
            ("nf_conntrack_max", max),
            (
                "nf_conntrack_tcp_timeout_established",
                self.tcp_established_timeout.as_secs(),
            ),
            (
                "nf_conntrack_tcp_timeout_close_wait",
                self.tcp_close_wait_timeout.as_secs(),
            ),
            (
                "nf_conntrack_tcp_be_liberal",
                u64::from(self.tcp_be_liberal),
            ),
            ("nf_conntrack_udp_timeout", self.udp_timeout.as_secs()),
            (
                "nf_conntrack_udp_timeout_stream",
                self.udp_stream_timeout.as_secs(),
            ),
        ];
        all.into_iter().filter(|(_, value)| *value > 0).collect()
    }
}

fn set(file: &Path, value: u64) -> Result<(), SysctlError> {
    if read(file).is_ok_and(|current| current == value) {
        return Ok(());
    }
    tracing::info!(file = %file.display(), value, "changing a setting of the kernel");
    fs::write(file, value.to_string()).map_err(|source| SysctlError {
        name: file.display().to_string(),
        value,
        source,
    })
}

fn read(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    text.trim()
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAMS: Conntrack = Conntrack {
        max_per_core: 32_768,
        min: 131_072,
        tcp_established_timeout: Duration::from_secs(86_400),
        tcp_close_wait_timeout: Duration::from_secs(3_600),
        tcp_be_liberal: false,
        udp_timeout: Duration::ZERO,
        udp_stream_timeout: Duration::ZERO,
    };

    #[test]
    fn the_maximum_follows_the_processors_within_limits() {
        let check = |processors: usize, expected: u64| {
            assert_eq!(UPSTREAMS.max(processors), expected, "{processors}");
        };
        check(2, 131_072);
        check(8, 262_144);
        check(200, 1_048_576);

        let off = Conntrack {
            max_per_core: 0,
            ..UPSTREAMS
        };
        assert_eq!(off.max(8), 0);
    }

    #[test]
    fn only_what_differs_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let sysctl = |name: &str| folder.path().join(SYSCTLS).join(name);
        let hash_size = folder.path().join(HASH_SIZE);
        fs::create_dir_all(folder.path().join(SYSCTLS)).unwrap();
        fs::create_dir_all(hash_size.parent().unwrap()).unwrap();
        fs::write(&hash_size, "1024\n").unwrap();
        for (name, value) in [
            ("nf_conntrack_max", "65536\n"),
            ("nf_conntrack_tcp_timeout_established", "86400\n"),
            ("nf_conntrack_tcp_timeout_close_wait", "60\n"),
            ("nf_conntrack_udp_timeout", "30\n"),
        ] {
            fs::write(sysctl(name), value).unwrap();
        }

        UPSTREAMS.apply_below(folder.path(), 2).unwrap();
        let found = |name: &str| fs::read_to_string(sysctl(name)).unwrap();
        assert_eq!(found("nf_conntrack_max"), "131072");
        assert_eq!(found("nf_conntrack_tcp_timeout_established"), "86400\n");
        assert_eq!(found("nf_conntrack_tcp_timeout_close_wait"), "3600");
        assert_eq!(found("nf_conntrack_udp_timeout"), "30\n");
        assert_eq!(fs::read_to_string(&hash_size).unwrap(), "32768");
        assert!(!sysctl("nf_conntrack_tcp_be_liberal").exists());
    }
}
