//! The fields that the proxy uses of Services, EndpointSlices and its Node.

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

/// The valid addresses of a list.
fn addresses(items: &[Value]) -> Vec<IpAddr> {
    items
        .iter()
        .filter_map(|item| item.as_str()?.parse().ok())
        .collect()
}
