//! An APIService for every group and version that this server serves itself. They are created at
//! startup: one that an administrator deletes is recreated at the next start.

use coracle_api::catalog::{Resource, ServedApis};
use coracle_api::{Value, typed};
use coracle_kinds::Part;
use futures_util::future::try_join_all;
use http::StatusCode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{APIService, APIServiceSpec};

use super::{MANAGER, once};
use crate::ApiError;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};

/// Objects with this label are managed by this server.
pub(crate) const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// The label's value of those that are created at startup.
const ON_START: &str = "onstart";

/// The priorities of groups and of their versions in discovery. They decide between groups that
/// have the same resource name.
const PRIORITIES: [(&str, &str, i32, i32); 36] = [
    ("", "v1", 18000, 1),
    ("apps", "v1", 17800, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("certificates.k8s.io", "v1beta1", 17300, 9),
    ("certificates.k8s.io", "v1alpha1", 17300, 1),
    ("networking.k8s.io", "v1", 17200, 15),
    ("networking.k8s.io", "v1beta1", 17200, 9),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("storage.k8s.io", "v1", 16800, 15),
    ("storage.k8s.io", "v1beta1", 16800, 9),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1beta1", 16700, 12),
    ("admissionregistration.k8s.io", "v1alpha1", 16700, 9),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("scheduling.k8s.io", "v1alpha2", 16600, 2),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("coordination.k8s.io", "v1beta1", 16500, 13),
    ("coordination.k8s.io", "v1alpha2", 16500, 12),
    ("node.k8s.io", "v1", 16300, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("resource.k8s.io", "v1beta2", 16200, 15),
    ("resource.k8s.io", "v1beta1", 16200, 9),
    ("resource.k8s.io", "v1alpha3", 16200, 1),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("internal.apiserver.k8s.io", "v1alpha1", 16000, 9),
    ("storagemigration.k8s.io", "v1beta1", 15800, 9),
    // Requests to this group are not served through an APIService.
    ("apiregistration.k8s.io", "v1", 0, 0),
];

/// The priorities of groups of definitions and of their versions.
pub(crate) const OF_DEFINITIONS: (i32, i32) = (1000, 100);

/// The priorities of a group and version that this server serves itself. The group that says who
/// serves the others is the first of all.
pub(crate) fn priorities(group: &str, version: &str) -> (i64, i64) {
    let mut known = PRIORITIES.iter();
    match known.find(|(name, of, ..)| *name == group && *of == version) {
        Some((_, _, 0, _)) => (20_001, 0),
        Some((_, _, of_group, of_version)) => (i64::from(*of_group), i64::from(*of_version)),
        None => (OF_DEFINITIONS.0.into(), OF_DEFINITIONS.1.into()),
    }
}

pub(super) async fn run(loopback: &Loopback, hook: &Hook) {
    let definitions = loopback.registry.caches.definitions();
    let served = definitions.served();
    once(hook, async || {
        // All at once: writes that wait together share a flush of the disk.
        try_join_all(wanted(served).map(|object| ensure(loopback, object))).await?;
        delete_unserved(loopback, served).await
    })
    .await;
}

/// Deletes those of groups and versions that were served before this start.
async fn delete_unserved(loopback: &Loopback, served: &ServedApis) -> Result<(), ApiError> {
    for object in loopback.registry.lookup_all(api_services(), "") {
        let spec = |name: &str| object.at(&["spec", name]).and_then(Value::as_str);
        let (group, version) = (spec("group").unwrap_or_default(), spec("version"));
        let is_ours = object.meta().label(AUTOMANAGED) == Some(ON_START);
        if is_ours && !served.has_version(group, version.unwrap_or_default()) {
            loopback
                .delete(api_services(), "", object.meta().name())
                .await?;
        }
    }
    Ok(())
}

async fn ensure(loopback: &Loopback, wanted: Value) -> Result<(), ApiError> {
    let Some(found) = loopback.get(api_services(), wanted.meta().name()) else {
        return loopback.ensure(api_services(), "", MANAGER, &wanted).await;
    };

    // One without the label is an administrator's.
    if found.meta().label(AUTOMANAGED).is_none() || found.get("spec") == wanted.get("spec") {
        return Ok(());
    }

    let mut updated = found;
    let spec = wanted.get("spec").cloned().unwrap_or_else(Value::object);
    updated
        .as_object_mut()
        .expect("a stored value is an object")
        .insert("spec", spec);

    match loopback
        .update(api_services(), "", Part::Main, MANAGER, &updated)
        .await
    {
        Err(error) if error.code != StatusCode::CONFLICT => Err(error),
        _ => Ok(()),
    }
}

fn wanted(served: &ServedApis) -> impl Iterator<Item = Value> {
    let versions = served.groups().iter().flat_map(|group| {
        group
            .versions
            .iter()
            .map(move |version| (group.name.as_str(), version.as_str()))
    });

    versions.filter_map(|(group, version)| {
        let (_, _, group_priority, version_priority) = *PRIORITIES
            .iter()
            .find(|(name, of, _, _)| *name == group && *of == version)?;
        (group_priority > 0)
            .then(|| api_service(group, version, (group_priority, version_priority), ON_START))
    })
}

/// One that this server serves itself; `managed` is the value of the label for how it is
/// reconciled.
pub(crate) fn api_service(
    group: &str,
    version: &str,
    priorities: (i32, i32),
    managed: &str,
) -> Value {
    let (group_priority, version_priority) = priorities;
    let object = APIService {
        metadata: ObjectMeta {
            name: Some(format!("{version}.{group}")),
            labels: Some([(AUTOMANAGED.to_string(), managed.to_string())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(APIServiceSpec {
            group: (!group.is_empty()).then(|| group.to_string()),
            group_priority_minimum: group_priority,
            version: Some(version.to_string()),
            version_priority,
            ..APIServiceSpec::default()
        }),
        status: None,
    };

    typed::to_tree(&object).expect("a typed object has a tree")
}

pub(crate) fn api_services() -> &'static Resource {
    resource("apiregistration.k8s.io", "v1", "apiservices")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_and_version_of_the_catalogue_has_its_place() {
        for group in coracle_api::catalog::groups() {
            for version in group.versions.iter() {
                let known = PRIORITIES
                    .iter()
                    .any(|(name, of, ..)| group.name == *name && version == of);
                assert!(known, "{}/{version}", group.name);
            }
        }
    }
}
