//! Which process the kernel kills when memory runs out: a pod's, not the server.

use std::fs;

use tracing::info;

/// As upstream's kubelet and kube-proxy: below every container (-998 and up), above what must never
/// be killed (-1000).
const SCORE: &str = "-999";

/// Tells the kernel to kill others first. Processes that are started later set a score of their
/// own: supervisors -998, and containers what their pod's class says.
pub(super) fn lower_own_score() {
    if let Err(error) = fs::write("/proc/self/oom_score_adj", SCORE) {
        info!(
            wanted = SCORE,
            %error,
            "cannot lower oom_score_adj, which takes CAP_SYS_RESOURCE; pods may not use the last of the memory, \
             but when other processes do, the kernel may kill the server like any of them"
        );
    }
}
