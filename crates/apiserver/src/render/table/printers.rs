//! Which function makes the rows of which kind.

use coracle_api::Value;
use coracle_api::catalog::{Kind, Resource};
use coracle_api::time::Timestamp;
use coracle_api::typed::TypedError;

use super::{
    Row, admissionregistration, apiregistration, apps, autoscaling, batch, certificates,
    coordination, core, discovery, flowcontrol, networking, node, policy, rbac, resource,
    scheduling, storage,
};

/// Makes the row of an object at a moment.
pub(super) type Printer = fn(&Value, Timestamp) -> Result<Row, TypedError>;

/// The printer of a kind, as a request to the resource is answered with it; `None`: it has no
/// columns of its own.
///
/// Objects are shown as they are kept: a kind that is kept as another group's has that group's
/// rows.
pub(super) fn of(resource: &Resource, kind: &Kind) -> Option<Printer> {
    let kept_as = resource
        .storage
        .as_ref()
        .filter(|_| kind.name == resource.kind);
    let group = kept_as.map_or(&kind.group, |storage| &storage.group);
    by_name(group, &kind.name)
}

pub(super) fn by_name(group: &str, kind: &str) -> Option<Printer> {
    match group {
        "" => core::printer(kind),
        "admissionregistration.k8s.io" => admissionregistration::printer(kind),
        "apiregistration.k8s.io" => apiregistration::printer(kind),
        "apps" => apps::printer(kind),
        "autoscaling" => autoscaling::printer(kind),
        "batch" => batch::printer(kind),
        "certificates.k8s.io" => certificates::printer(kind),
        "coordination.k8s.io" => coordination::printer(kind),
        "discovery.k8s.io" => discovery::printer(kind),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::printer(kind),
        "networking.k8s.io" => networking::printer(kind),
        "node.k8s.io" => node::printer(kind),
        "policy" => policy::printer(kind),
        "rbac.authorization.k8s.io" => rbac::printer(kind),
        "resource.k8s.io" => resource::printer(kind),
        "scheduling.k8s.io" => scheduling::printer(kind),
        "storage.k8s.io" => storage::printer(kind),
        _ => None,
    }
}
