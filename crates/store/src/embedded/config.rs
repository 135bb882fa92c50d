//! What can be chosen about the embedded engine.

use bytes::Bytes;
use std::time::Duration;

/// The engine's settings. The defaults suit a cluster; tests make things small.
#[derive(Clone, Debug)]
pub struct Config {
    /// History younger than this is kept, across restarts too…
    pub retention: Duration,
    /// …and so are at least this many revisions.
    pub retained_revisions: u64,
    /// A log segment is closed once it is this large.
    pub segment_bytes: u64,
    /// Settled data is kept in files of about this size, the unit of giving space back.
    pub part_bytes: u64,
    /// Values of the newest changes held in memory for watchers that keep up; older ones are read
    /// from disk.
    pub recent_bytes: usize,
    /// The largest transaction taken: what etcd takes by default.
    pub request_bytes: usize,
    /// Write coalescing, off by default; see [`Coalesce`].
    pub coalesce: Option<Coalesce>,
}

/// Spares flash: a transaction that writes below `prefix` only may wait up to `delay` for other
/// writes to share their disk flush with. It is acknowledged late, never early: every guarantee
/// holds, such a write is just slow. Meant for node leases (`/registry/leases/kube-node-lease/`),
/// which a node renews every ten seconds and which are judged stale after forty: a delay of two
/// seconds turns the renewals of a whole cluster into at most one flush every two seconds. Nothing
/// else should be put below the prefix: its writers would wait for nothing.
#[derive(Clone, Debug)]
pub struct Coalesce {
    pub prefix: Bytes,
    pub delay: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            retention: Duration::from_secs(5 * 60),
            retained_revisions: 10_000,
            segment_bytes: 8 << 20,
            part_bytes: 8 << 20,
            recent_bytes: 2 << 20,
            request_bytes: 1536 << 10,
            coalesce: None,
        }
    }
}
