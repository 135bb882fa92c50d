//! The plugins, one file each, and the registry that creates them by name.

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

pub use allocation::{Point, ResourceWeight, Strategy, StrategyKind};
pub use registry::{Registry, RegistryError};
