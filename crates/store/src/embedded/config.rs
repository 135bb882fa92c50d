//! The configuration of the embedded engine.

use bytes::Bytes;
use std::time::Duration;

/// The engine's settings. The defaults suit a cluster; tests use small values.
#[derive(Clone, Debug)]
pub struct Config {
    /// History younger than this is kept, also across restarts…
    pub retention: Duration,
    /// …and so are at least this many revisions, whatever their age. None by default: paged lists
    /// expire with the history, and clients rely on that they do.
    pub retained_revisions: u64,
    /// A log segment is closed once it is this large.
    pub segment_bytes: u64,
    /// The approximate size of a part file, the unit of reclaiming space.
    pub part_bytes: u64,
    /// Bytes of recent events held in memory for watchers that keep up; older ones are read from
    /// disk.
    pub recent_bytes: usize,
    /// The largest transaction accepted: etcd's default.
    pub request_bytes: usize,
    /// Write coalescing, off by default; see [`Coalesce`].
    pub coalesce: Option<Coalesce>,
}

/// Reduces flash wear: a transaction that writes only below `prefix` may wait up to `delay` to
/// share a disk flush with other writes. It is acknowledged late, never early: every guarantee
/// holds, such a write is only slow. Meant for node leases (`/registry/leases/kube-node-lease/`),
/// which a node renews every ten seconds and which expire after forty: a delay of two seconds turns
/// the renewals of a whole cluster into at most one flush every two seconds. The prefix should
/// cover nothing else, whose writers would wait needlessly.
#[derive(Clone, Debug)]
pub struct Coalesce {
    pub prefix: Bytes,
    pub delay: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            retention: Duration::from_secs(5 * 60),
            retained_revisions: 0,
            segment_bytes: 8 << 20,
            part_bytes: 8 << 20,
            recent_bytes: 2 << 20,
            request_bytes: 1536 << 10,
            coalesce: None,
        }
    }
}
