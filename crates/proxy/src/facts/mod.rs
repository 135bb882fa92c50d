//! What the proxy needs to know of Services, EndpointSlices and its own Node, and nothing else.

mod node;
mod service;
mod slice;
#[cfg(test)]
mod tests;

pub use node::Node;
pub(crate) use service::OTHER_PROXY;
pub use service::{Service, ServicePort};
pub(crate) use slice::HEADLESS;
pub use slice::{Endpoint, Slice, SlicePort};

use std::net::IpAddr;

use coracle_api::Value;

/// The addresses among texts.
fn addresses(items: &[Value]) -> Vec<IpAddr> {
    items
        .iter()
        .filter_map(|item| item.as_str()?.parse().ok())
        .collect()
}
