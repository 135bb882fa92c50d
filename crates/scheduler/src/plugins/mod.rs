//! The plugins, one file each, the list of them, and the registry that creates them by name.

mod allocation;
mod args;
mod default_binder;
mod default_preemption;
mod dynamic_resources;
mod image_locality;
mod inter_pod_affinity;
mod node_affinity;
mod node_name;
mod node_ports;
mod node_resources_balanced_allocation;
mod node_resources_fit;
mod node_unschedulable;
mod normalize;
mod pod_topology_spread;
mod priority_sort;
mod registry;
mod scheduling_gates;
mod taint_toleration;
#[cfg(test)]
mod tests;
mod volume_binding;

use std::sync::Arc;

use coracle_api::Value;

use crate::framework::{Bind, Extensions};
pub use allocation::{Point, ResourceWeight, Strategy, StrategyKind};
pub use registry::{Registry, RegistryError};

/// All plugins, in the order of the default profile: name, weight of the score (0: it has none)
/// and constructor.
pub(crate) const PLUGINS: &[(&str, i64, Create)] = &[
    ("SchedulingGates", 0, scheduling_gates::create),
    ("PrioritySort", 0, priority_sort::create),
    ("NodeUnschedulable", 0, node_unschedulable::create),
    ("NodeName", 0, node_name::create),
    ("TaintToleration", 3, taint_toleration::create),
    ("NodeAffinity", 2, node_affinity::create),
    ("NodePorts", 0, node_ports::create),
    ("NodeResourcesFit", 1, node_resources_fit::create),
    ("VolumeRestrictions", 0, not_implemented),
    ("NodeVolumeLimits", 0, not_implemented),
    ("VolumeBinding", 0, volume_binding::create),
    ("VolumeZone", 0, not_implemented),
    ("PodTopologySpread", 2, pod_topology_spread::create),
    ("InterPodAffinity", 2, inter_pod_affinity::create),
    ("DynamicResources", 2, dynamic_resources::create),
    ("DefaultPreemption", 0, default_preemption::create),
    (
        "NodeResourcesBalancedAllocation",
        1,
        node_resources_balanced_allocation::create,
    ),
    ("ImageLocality", 1, image_locality::create),
    ("DefaultBinder", 0, default_binder::create),
    ("NodeDeclaredFeatures", 0, not_implemented),
];

/// Creates a plugin from its arguments.
pub(crate) type Create = fn(&Handle, Args<'_>) -> Result<Extensions, String>;

/// The arguments of one plugin; `None` if the profile has none.
pub(crate) type Args<'a> = Option<&'a Value>;

/// What the event loop provides to plugins.
pub struct Handle {
    /// Binds a pod through the API.
    pub binder: Arc<dyn Bind>,
}

/// A plugin that a configuration may name and that implements no extension point yet. Pods with
/// claims, which the volume plugins are about, are held back by `VolumeBinding`.
fn not_implemented(_: &Handle, _: Args<'_>) -> Result<Extensions, String> {
    Ok(Extensions::default())
}
