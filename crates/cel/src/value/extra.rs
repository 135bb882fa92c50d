//! Values of Kubernetes' own types.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use coracle_api::quantity::Quantity;

pub use crate::library::authz::{Authorizer, Check, Request, Verdict};
pub use crate::library::format::NamedFormat;
pub use crate::library::semver::Semver;
pub use crate::library::urls::Url;

#[derive(Clone, Debug)]
pub enum Extra {
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Url),
    /// And whether it was computed: upstream cannot compare with one on the right.
    Quantity(Quantity, bool),
    Semver(Semver),
    Format(NamedFormat),
    Authorizer(Authorizer),
    PathCheck(Arc<Check>),
    /// Of an API group: no resource is known yet.
    GroupCheck(Arc<Check>),
    ResourceCheck(Arc<Check>),
    Decision(Verdict),
}

/// A network as written: bits beyond the prefix are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub address: IpAddr,
    pub bits: u8,
}

impl Extra {
    pub fn type_name(&self) -> &'static str {
        match self {
            Extra::Ip(_) => "net.IP",
            Extra::Cidr(_) => "net.CIDR",
            Extra::Url(_) => "kubernetes.URL",
            Extra::Quantity(..) => "kubernetes.Quantity",
            Extra::Semver(_) => "kubernetes.Semver",
            Extra::Format(_) => "kubernetes.NamedFormat",
            Extra::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Extra::PathCheck(_) => "kubernetes.authorization.PathCheck",
            Extra::GroupCheck(_) => "kubernetes.authorization.GroupCheck",
            Extra::ResourceCheck(_) => "kubernetes.authorization.ResourceCheck",
            Extra::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    pub(crate) fn size(&self) -> u64 {
        match self {
            Extra::Ip(IpAddr::V4(_)) => 4,
            Extra::Ip(IpAddr::V6(_)) => 16,
            Extra::Cidr(network) => u64::from(network.bits).div_ceil(8),
            _ => 1,
        }
    }
}

impl fmt::Display for Extra {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extra::Ip(address) => write!(out, "{address}"),
            Extra::Cidr(network) => write!(out, "{}/{}", network.address, network.bits),
            Extra::Url(url) => out.write_str(&url.text()),
            Extra::Quantity(quantity, _) => write!(out, "{quantity}"),
            Extra::Semver(version) => write!(out, "{version}"),
            other => out.write_str(other.type_name()),
        }
    }
}
