//! The names that signatures use: type variables, and the types of Kubernetes' libraries.

use crate::declare::Sig;

pub(super) const A: Sig = Sig::Param("A");
pub(super) const B: Sig = Sig::Param("B");
pub(super) const K: Sig = Sig::Param("K");
pub(super) const T: Sig = Sig::Param("T");
pub(super) const V: Sig = Sig::Param("V");

pub(super) const IP: Sig = Sig::Opaque("net.IP");
pub(super) const CIDR: Sig = Sig::Opaque("net.CIDR");
pub(super) const URL: Sig = Sig::Object("kubernetes.URL");
pub(super) const QUANTITY: Sig = Sig::Object("kubernetes.Quantity");
pub(super) const SEMVER: Sig = Sig::Object("kubernetes.Semver");
pub(super) const FORMAT: Sig = Sig::Object("kubernetes.NamedFormat");
pub(super) const AUTHORIZER: Sig = Sig::Object("kubernetes.authorization.Authorizer");
pub(super) const PATH_CHECK: Sig = Sig::Object("kubernetes.authorization.PathCheck");
pub(super) const GROUP_CHECK: Sig = Sig::Object("kubernetes.authorization.GroupCheck");
pub(super) const RESOURCE_CHECK: Sig = Sig::Object("kubernetes.authorization.ResourceCheck");
pub(super) const DECISION: Sig = Sig::Object("kubernetes.authorization.Decision");
