//! What strategies and admission plugins need from the API server.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::catalog::Resource;
use coracle_api::ip::Network;
use futures_util::future::BoxFuture;
use k8s_openapi::api::rbac::v1::RoleRef;

use crate::access::Attributes;
use crate::core::service::NodePorts;
use crate::rbac::{Rule, Unresolved};
use crate::{ApiError, User};

/// An attempt to allocate an address or a port for a Service.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// The range of an address; `None`: a node port.
    pub range: Option<Network>,
    /// The client chose it.
    pub chosen: bool,
    pub succeeded: bool,
}

/// The objects and rules around the object that is written. The API server's registry implements
/// it; reads come from the watch cache.
pub trait Cluster: Send + Sync {
    /// An object as it is now. `key` is `namespace/name`, or the name of a cluster-wide object.
    fn get(&self, resource: &Resource, key: &str) -> Option<Arc<Value>>;

    /// Whether there is such an object.
    fn exists(&self, resource: &Resource, key: &str) -> bool;

    /// Every object of a resource in a namespace as it is now; in all namespaces where it is empty.
    fn list(&self, resource: &Resource, namespace: &str) -> Vec<Arc<Value>>;

    /// Whether the server serves a built-in resource.
    fn serves(&self, resource: &Resource) -> bool;

    /// The plural name of the resource whose objects are of a kind of this group and version.
    fn resource_of_kind(&self, version: (&str, &str), kind: &str) -> Option<String>;

    /// Waits until there is such an object.
    fn appears<'a>(
        &'a self,
        resource: &'a Resource,
        key: &'a str,
    ) -> BoxFuture<'a, Option<Arc<Value>>>;

    /// Creates a cluster-wide object in the server's own name.
    fn create<'a>(
        &'a self,
        resource: &'static Resource,
        object: Value,
    ) -> BoxFuture<'a, Result<(), ApiError>>;

    /// Deletes a cluster-wide object in the server's own name.
    fn delete<'a>(
        &'a self,
        resource: &'static Resource,
        name: &'a str,
    ) -> BoxFuture<'a, Result<(), ApiError>>;

    /// Changes a stored object without admission, strategy or field owners. `change` runs again if
    /// another write came first.
    fn change<'a>(
        &'a self,
        resource: &'static Resource,
        namespace: &'a str,
        name: &'a str,
        change: &'a (dyn Fn(&mut Value) -> Result<(), ApiError> + Send + Sync),
    ) -> BoxFuture<'a, Result<(), ApiError>>;

    /// Whether a user may do something.
    fn authorize<'a>(&'a self, attributes: Attributes<'a>) -> BoxFuture<'a, bool>;

    /// What RBAC allows a user in a namespace, and which roles could not be found.
    fn rules_of_user(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<Unresolved>);

    /// The rules of the role that a binding in a namespace refers to.
    fn rules_of_role(&self, role: &RoleRef, namespace: &str) -> Result<Vec<Rule>, Unresolved>;

    /// The node ports of all Services.
    fn node_ports(&self) -> &NodePorts;

    /// Counts an allocation.
    fn count_allocation(&self, allocation: Allocation);

    /// Whether containers may be privileged.
    fn allow_privileged(&self) -> bool;

    /// 64 random bits.
    fn random(&self) -> u64;
}
