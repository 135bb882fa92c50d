//! The cluster's network between nodes.
//!
//! Each node has ranges of pod addresses. To those of nodes on the same segment there is a route
//! through the node's address; to those of other nodes there is one through a VXLAN interface,
//! which knows the node's address and asks nobody. This is decided per pair of nodes, from the
//! Node objects and from what the kernel says about the path to a node's address ([`plan`], pure).
//! `observe.rs` reads what the kernel has, `difference.rs` says what must change, `kernel.rs`
//! changes it, through netlink. `masquerade.rs` has the packet filter's part: what pods send out of
//! the cluster gets the node's address. [`run`] follows the API and the kernel.
//!
//! Nothing here handles packets: the kernel does, also while no process runs. What identifies a
//! node in the VXLAN (a hardware address and an identifier) follows from its range of pod
//! addresses, so that nodes exchange nothing but their Node objects.

mod difference;
mod kernel;
mod masquerade;
mod node;
mod observe;
pub mod plan;
mod record;
mod run;
#[cfg(test)]
mod tests;

pub use kernel::{Kernel, KernelError};
pub use node::Node;
pub use plan::Encapsulation;
pub use record::RecordError;
pub use run::{Config, Names, RunError, last_pod_mtu, remove, run};
