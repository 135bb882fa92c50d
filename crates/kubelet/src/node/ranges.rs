//! The ranges of addresses that the cluster has given this node: the runtime is told, whoever makes
//! its network.

use std::time::Duration;

use coracle_api::Value;
use coracle_client::{Informer, Whole};
use coracle_cri::v1::{NetworkConfig, RuntimeConfig};
use tokio::sync::watch;

use crate::host::Host;

/// Between attempts to tell a runtime that does not take them, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(15);

/// Tells the runtime of the node's ranges when they are others than it has `known`; `told` says
/// that it has been.
pub(super) async fn follow(
    host: &Host,
    object: &Informer<Whole>,
    known: Option<String>,
    told: &watch::Sender<()>,
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

        tell(host, &ranges).await;
        known = ranges;
        told.send_replace(());
    }
}

/// Tells the runtime, until it has taken them.
pub(super) async fn tell(host: &Host, ranges: &str) {
    let config = RuntimeConfig {
        network_config: Some(NetworkConfig {
            pod_cidr: ranges.to_owned(),
        }),
    };

    let (mut pause, mut told) = (FIRST_PAUSE, String::new());
    while let Err(error) = host.runtime.update_runtime_config(config.clone()).await {
        let text = error.to_string();
        if text != told {
            tracing::warn!(%error, ranges, "the runtime does not accept the pod ranges of this node; retrying");
        }
        told = text;
        tokio::time::sleep(pause).await;
        pause = LAST_PAUSE.min(pause * 2);
    }

    tracing::info!(ranges, "pods get their addresses from here");
}

/// All ranges, the primary first, with commas between them, as the interface has it.
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
