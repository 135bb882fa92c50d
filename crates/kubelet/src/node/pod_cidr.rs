//! The node's pod CIDRs, which are sent to the runtime.

use std::time::Duration;

use coracle_api::Value;
use coracle_client::{Informer, Whole};
use coracle_cri::v1::{NetworkConfig, RuntimeConfig};
use tokio::sync::watch;

use crate::host::Host;

/// Retry delays, the first and the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(15);

/// Sends the node's pod CIDRs to the runtime when they differ from `known`, and notifies through
/// `sent`.
pub(super) async fn follow(
    host: &Host,
    object: &Informer<Whole>,
    known: Option<String>,
    sent: &watch::Sender<()>,
) {
    let mut changes = object.subscribe();
    let mut known = known.unwrap_or_default();
    loop {
        let change = changes.next().await;
        let ranges = change
            .object()
            .map(|node| of(&node.object))
            .unwrap_or_default();

        if ranges.is_empty() || ranges == known {
            continue;
        }

        send(host, &ranges).await;
        known = ranges;
        sent.send_replace(());
    }
}

/// Sends the CIDRs until the runtime accepts them.
pub(super) async fn send(host: &Host, ranges: &str) {
    let config = RuntimeConfig {
        network_config: Some(NetworkConfig {
            pod_cidr: ranges.to_owned(),
        }),
    };

    let (mut pause, mut logged) = (FIRST_RETRY, String::new());
    while let Err(error) = host.runtime.update_runtime_config(config.clone()).await {
        let text = error.to_string();
        if text != logged {
            tracing::warn!(%error, pod_cidrs = ranges, "container runtime rejected pod CIDRs; retrying");
        }
        logged = text;
        tokio::time::sleep(pause).await;
        pause = MAX_RETRY.min(pause * 2);
    }

    tracing::info!(
        pod_cidrs = ranges,
        "updated pod CIDRs of the container runtime"
    );
}

/// All pod CIDRs, the primary first, separated by commas, as CRI expects.
pub(super) fn of(node: &Value) -> String {
    let spec = node.get("spec");
    let all = spec
        .and_then(|spec| spec.get("podCIDRs"))
        .and_then(Value::as_array);
    let texts: Vec<&str> = all
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    texts.join(",")
}
