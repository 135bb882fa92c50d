//! `/metrics`, with upstream's names.

use http::StatusCode;

use super::Server;
use super::answer::{self, Answer};

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn answer(server: &Server) -> Answer {
    let entries = server.pod_manager.list();
    let pods = entries
        .iter()
        .filter(|entry| entry.observed.ready_sandbox().is_some())
        .count();

    let containers: usize = entries
        .iter()
        .map(|entry| entry.observed.running().count())
        .sum();

    let text = format!(
        "# HELP kubelet_desired_pods [ALPHA] The number of pods the kubelet is being instructed to run.\n\
         # TYPE kubelet_desired_pods gauge\n\
         kubelet_desired_pods {}\n\
         # HELP kubelet_running_containers [ALPHA] Number of containers currently running\n\
         # TYPE kubelet_running_containers gauge\n\
         kubelet_running_containers{{container_state=\"running\"}} {containers}\n\
         # HELP kubelet_running_pods [ALPHA] Number of pods that have a running pod sandbox\n\
         # TYPE kubelet_running_pods gauge\n\
         kubelet_running_pods {pods}\n",
        entries.len(),
    );

    answer::with_type(StatusCode::OK, TEXT, text)
}
