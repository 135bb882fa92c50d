//! The row of a Node.

use std::collections::BTreeSet;

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::Node;

use crate::print::Row;
use crate::print::cells::{NONE, UNKNOWN, age, name, or};

pub(super) fn print_row(node: &Node, now: Timestamp) -> Row {
    let info = node
        .status
        .as_ref()
        .and_then(|status| status.node_info.as_ref());
    let version = info.map_or("", |info| &info.kubelet_version);

    let os_image = or(info.map(|info| info.os_image.as_str()), UNKNOWN);
    let kernel = or(info.map(|info| info.kernel_version.as_str()), UNKNOWN);
    let kernel = match info.map_or("", |info| &info.architecture) {
        "" => kernel.to_string(),
        architecture => format!("{kernel} ({architecture})"),
    };

    let runtime = or(
        info.map(|info| info.container_runtime_version.as_str()),
        UNKNOWN,
    );

    row![
        name(&node.metadata),
        status(node),
        roles(node),
        age(&node.metadata, now),
        version,
        address(node, "InternalIP"),
        address(node, "ExternalIP"),
        os_image,
        kernel,
        runtime
    ]
}

fn status(node: &Node) -> String {
    let mut conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());

    // Of several conditions of this type the last counts.
    let ready = conditions.rfind(|condition| condition.type_ == "Ready");
    let status = match ready.map(|condition| condition.status.as_str()) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };

    let closed = node
        .spec
        .as_ref()
        .and_then(|spec| spec.unschedulable)
        .unwrap_or_default();

    if closed {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_string()
    }
}

/// The roles in its labels.
fn roles(node: &Node) -> String {
    let labels = node.metadata.labels.iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None if key == "kubernetes.io/role" => Some(value.as_str()),
                None => None,
            },
        )
        .filter(|role| !role.is_empty())
        .collect();

    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    or(Some(&roles), NONE).to_string()
}

fn address<'a>(node: &'a Node, kind: &str) -> &'a str {
    let mut addresses = node
        .status
        .iter()
        .flat_map(|status| status.addresses.iter().flatten());
    addresses
        .find(|address| address.type_ == kind)
        .map_or(NONE, |address| &address.address)
}
