//! Out of memory: lets the kernel kill processes of pods before the server.

use std::fs;

use tracing::info;

/// As upstream's kubelet and kube-proxy: below every container (-998 and up), above what must never
/// be killed (-1000).
const SCORE: &str = "-999";

/// Lowers the OOM score of this process. Child processes set their own: supervisors -998,
/// containers by the QoS class of their pod.
pub(crate) fn lower_own_score() {
    if let Err(error) = fs::write("/proc/self/oom_score_adj", SCORE) {
        info!(
            wanted = SCORE,
            %error,
            "cannot lower oom_score_adj without CAP_SYS_RESOURCE; the kernel may kill the server when memory runs out"
        );
    }
}
