//! OwnerReferencesPermissionEnforcement: who gives an object an owner must be able to delete the
//! object, and who keeps an owner from being deleted must be able to change the owner's finalizers.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::catalog::{Resource, split_api_version};
use coracle_api::{Map, Value};
use coracle_kinds::Part;
use coracle_kinds::access::{self, ResourceTarget};

use super::{Attributes, Operation, Plugin};
use crate::ApiError;
use crate::cache::Caches;

pub(super) struct OwnerReferencesPermissionEnforcement {
    caches: Arc<Caches>,
}

impl OwnerReferencesPermissionEnforcement {
    pub(super) fn new(caches: &Arc<Caches>) -> OwnerReferencesPermissionEnforcement {
        OwnerReferencesPermissionEnforcement {
            caches: caches.clone(),
        }
    }
}

#[async_trait]
impl Plugin for OwnerReferencesPermissionEnforcement {
    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        // The status of a pod cannot change its owners, and older kubelets send them broken.
        let is_pod_status = attributes.is_of("", "pods") && attributes.cx.part == Part::Status;
        let Some(object) = object.filter(|_| !is_pod_status) else {
            return Ok(());
        };
        let before = attributes.old.map(owners).unwrap_or_default();
        if owners(object) == before {
            return Ok(());
        }

        if attributes.operation != Operation::Create && !may_delete(attributes).await {
            let why = "cannot set an ownerRef on a resource you can't delete: , <nil>";
            return Err(attributes.forbidden(object, why));
        }

        let blocking = newly_blocking(owners(object), before);
        if blocking.is_empty() || may_finalize(&EVERYTHING, attributes).await {
            return Ok(());
        }
        for owner in blocking {
            self.check_owner(owner, object, attributes).await?;
        }

        Ok(())
    }
}

const EVERYTHING: ResourceTarget<'static> = ResourceTarget {
    group: "*",
    version: "*",
    resource: "*",
    subresource: "finalizers",
    namespace: "",
    name: "*",
    field_selector: "",
};

impl OwnerReferencesPermissionEnforcement {
    async fn check_owner(
        &self,
        owner: &Map,
        object: &Value,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let (api_version, kind) = (owner.text("apiVersion"), owner.text("kind"));
        let resources = self.resources(api_version, kind);
        if resources.is_empty() {
            let why = format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}: no matches for kind \"{kind}\" in version \"{api_version}\""
            );
            return Err(attributes.forbidden(object, &why));
        }

        for resource in resources {
            let target = ResourceTarget {
                group: &resource.group,
                version: &resource.version,
                resource: &resource.plural,
                subresource: "finalizers",
                // An owner with a namespace is in that of the object.
                namespace: match resource.namespaced {
                    true => attributes.cx.namespace,
                    false => "",
                },
                name: owner.text("name"),
                ..ResourceTarget::default()
            };
            if !may_finalize(&target, attributes).await {
                let why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>";
                return Err(attributes.forbidden(object, why));
            }
        }

        Ok(())
    }

    /// The resources of a kind.
    fn resources(&self, api_version: &str, kind: &str) -> Vec<Resource> {
        let (group, version) = split_api_version(api_version);
        let catalog = self.caches.definitions().catalog();
        let resources = catalog.pages().flat_map(|page| page.resources());
        resources
            .filter(|resource| {
                resource.group == group && resource.version == version && resource.kind == kind
            })
            .cloned()
            .collect()
    }
}

async fn may_delete(attributes: &Attributes<'_>) -> bool {
    let cx = &attributes.cx;
    let target = ResourceTarget {
        group: &cx.resource.group,
        version: &cx.resource.version,
        resource: &cx.resource.plural,
        subresource: attributes.subresource,
        namespace: cx.namespace,
        name: attributes.name,
        ..ResourceTarget::default()
    };
    let question = access::Attributes::on(cx.user, "delete", target);
    cx.cluster.authorize(question).await
}

async fn may_finalize(target: &ResourceTarget<'_>, attributes: &Attributes<'_>) -> bool {
    let cx = &attributes.cx;
    let question = access::Attributes::on(cx.user, "update", *target);
    cx.cluster.authorize(question).await
}

fn owners(object: &Value) -> &[Value] {
    let owners = object.at(&["metadata", "ownerReferences"]);
    owners.and_then(Value::as_array).unwrap_or_default()
}

/// The owners that block their deletion, and did not before.
fn newly_blocking<'v>(new: &'v [Value], old: &[Value]) -> Vec<&'v Map> {
    let blocks = |owner: &Map| owner.get("blockOwnerDeletion") == Some(&Value::Bool(true));
    let old = old.iter().filter_map(Value::as_object);
    let old: BTreeMap<&str, bool> = old
        .map(|owner| (owner.text("uid"), blocks(owner)))
        .collect();

    new.iter()
        .filter_map(Value::as_object)
        .filter(|owner| blocks(owner) && old.get(owner.text("uid")) != Some(&true))
        .collect()
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn owners_that_begin_to_block_are_found() {
        let check = |new: &str, old: &str, expected: &[&str]| {
            let read = |text: &str| json::parse(text.as_bytes()).unwrap();
            let (new, old) = (read(new), read(old));
            let found = newly_blocking(new.as_array().unwrap(), old.as_array().unwrap());
            let found: Vec<_> = found.iter().map(|owner| owner.text("uid")).collect();
            assert_eq!(found, expected);
        };

        let blocking = r#"{"uid":"a","blockOwnerDeletion":true}"#;
        check(&format!("[{blocking}]"), "[]", &["a"]);
        check(&format!("[{blocking}]"), &format!("[{blocking}]"), &[]);
        check(&format!("[{blocking}]"), r#"[{"uid":"a"}]"#, &["a"]);
        check(r#"[{"uid":"b"}]"#, "[]", &[]);
    }
}
