//! Rows of the core group.

mod component_status;
mod config_map;
mod endpoints;
mod event;
mod namespace;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
mod service;
mod service_account;
#[cfg(test)]
mod tests;

use coracle_api::typed::from_tree;

use super::printers::Printer;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    let printer: Printer = match kind {
        "ComponentStatus" => |tree, _| Ok(component_status::row(&from_tree(tree)?)),
        "ConfigMap" => |tree, now| Ok(config_map::row(&from_tree(tree)?, now)),
        "Endpoints" => |tree, now| Ok(endpoints::row(&from_tree(tree)?, now)),
        "Event" => |tree, now| Ok(event::row(&from_tree(tree)?, now)),
        "Namespace" => |tree, now| Ok(namespace::row(&from_tree(tree)?, now)),
        "Node" => |tree, now| Ok(node::row(&from_tree(tree)?, now)),
        "PersistentVolume" => |tree, now| Ok(persistent_volume::row(&from_tree(tree)?, now)),
        "PersistentVolumeClaim" => {
            |tree, now| Ok(persistent_volume_claim::row(&from_tree(tree)?, now))
        }
        "Pod" => |tree, now| Ok(pod::row(&from_tree(tree)?, now)),
        "PodTemplate" => |tree, _| Ok(pod_template::row(&from_tree(tree)?)),
        "ReplicationController" => {
            |tree, now| Ok(replication_controller::row(&from_tree(tree)?, now))
        }
        "ResourceQuota" => |tree, now| Ok(resource_quota::row(&from_tree(tree)?, now)),
        "Secret" => |tree, now| Ok(secret::row(&from_tree(tree)?, now)),
        "Service" => |tree, now| Ok(service::row(&from_tree(tree)?, now)),
        "ServiceAccount" => |tree, now| Ok(service_account::row(&from_tree(tree)?, now)),
        _ => return None,
    };

    Some(printer)
}
