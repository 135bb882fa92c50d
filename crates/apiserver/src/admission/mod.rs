//! Admission: who may still change or refuse a write that is allowed.
//!
//! A chain of plugins in upstream's order. Each first sees the object as the client sent it and may
//! change it (`admit`); when the kind's strategy has shaped and judged the object, each may refuse
//! the outcome (`validate`). Plugins read the caches; they do not call the API.

mod certificates;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod limit_ranger;
mod namespace_lifecycle;
mod node_restriction;
mod persistent_volume_claim_resize;
mod pod_security;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Resource};

use crate::ApiError;
use crate::registry::{Registry, Scope};
use coracle_kinds::Part;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// A write, as plugins see it.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    pub registry: &'a Registry,
    pub scope: &'a Scope<'a>,
    pub operation: Operation,
    pub part: Part,
    /// Empty where the name is yet to be generated.
    pub name: &'a str,
    /// The object that is there: on an update and on a delete.
    pub old: Option<&'a Value>,
    pub dry_run: bool,
    /// What the writer should know, whatever becomes of the write.
    pub warnings: &'a Warnings,
}

/// Where plugins leave what the writer should know.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    pub fn add(&self, warning: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(warning);
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Attributes<'_> {
    /// Whether objects of this resource are written.
    fn is_of(&self, group: &str, plural: &str) -> bool {
        self.scope.resource.group == group && self.scope.resource.plural == plural
    }

    /// Whether an object of this resource itself is written in this way.
    fn does(&self, operation: Operation, group: &str, plural: &str) -> bool {
        self.operation == operation && self.part == Part::Main && self.is_of(group, plural)
    }

    /// A refusal. An object whose name is yet to be generated is called by what it will begin with.
    fn forbidden(&self, object: &Value, why: &str) -> ApiError {
        let named = [
            self.name,
            object.meta().name(),
            object.meta().generate_name(),
        ];
        let name = named
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or("Unknown");
        ApiError::forbidden(self.scope.resource, name, why)
    }

    /// A cluster-wide object that is there, or one of the namespace that is written to.
    fn lookup(&self, resource: &'static Resource, name: &str) -> Option<Arc<Value>> {
        let key = if resource.namespaced {
            format!("{}/{name}", self.scope.namespace)
        } else {
            name.to_owned()
        };
        self.registry.lookup(resource, &key)
    }
}

/// A resource that plugins look things up in.
fn builtin(group: &str, version: &str, plural: &str) -> &'static Resource {
    BUILTIN
        .resource(group, version, plural)
        .expect("the resource is built in")
}

/// Several refusals in one text.
fn together(mut refusals: Vec<String>) -> Option<String> {
    let mut seen = std::collections::BTreeSet::new();
    refusals.retain(|refusal| seen.insert(refusal.clone()));
    match refusals.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

/// One of the chain.
#[expect(
    unused_variables,
    reason = "the names of parameters document what many plugins need not look at"
)]
#[async_trait]
pub trait Plugin: Send + Sync {
    /// As `--enable-admission-plugins` knows it.
    fn name(&self) -> &'static str;

    /// Changes the object, or refuses it before it is shaped.
    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        Ok(())
    }

    /// Refuses what came of it. There is no object on a delete.
    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        Ok(())
    }
}

/// The plugins that are on, in their order.
pub struct Admission {
    plugins: Vec<Box<dyn Plugin>>,
}

/// Which plugins are on, besides those that always are, and which are off though they would be on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    pub enable: Vec<String>,
    pub disable: Vec<String>,
}

impl Wishes {
    /// What is wrong with them, in upstream's words where it has any.
    pub fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let exists = |name: &str| all().iter().any(|plugin| plugin.name() == name);
        for (flag, names) in [
            ("enable-admission-plugins", &self.enable),
            ("disable-admission-plugins", &self.disable),
        ] {
            for name in names {
                if !KNOWN.contains(&name.as_str()) {
                    mistakes.push(format!("{flag} plugin {name:?} is unknown"));
                } else if flag == "enable-admission-plugins" && !exists(name) {
                    mistakes.push(format!("{flag} plugin {name:?} is not supported yet"));
                }
            }
        }

        for name in self
            .enable
            .iter()
            .filter(|name| self.disable.contains(name))
        {
            mistakes.push(format!(
                "{name:?} in enable-admission-plugins and disable-admission-plugins overlapped"
            ));
        }

        mistakes
    }
}

/// Every plugin there is, in upstream's order.
fn all() -> Vec<Box<dyn Plugin>> {
    vec![
        Box::new(namespace_lifecycle::NamespaceLifecycle),
        Box::new(limit_ranger::LimitRanger),
        Box::new(service_account::ServiceAccount),
        Box::new(node_restriction::NodeRestriction),
        Box::new(taint_nodes_by_condition::TaintNodesByCondition),
        Box::new(pod_security::PodSecurity),
        Box::new(priority::Priority),
        Box::new(default_toleration_seconds::DefaultTolerationSeconds),
        Box::new(default_storage_class::DefaultStorageClass),
        Box::new(storage_object_in_use_protection::StorageObjectInUseProtection),
        Box::new(persistent_volume_claim_resize::PersistentVolumeClaimResize),
        Box::new(runtime_class::RuntimeClass),
        Box::new(certificates::CertificateApproval),
        Box::new(certificates::CertificateSigning),
        Box::new(certificates::CertificateSubjectRestriction),
        Box::new(default_ingress_class::DefaultIngressClass),
        Box::new(resource_quota::ResourceQuota),
    ]
}

impl Admission {
    /// All that are on by default and not wished away.
    pub fn new(wishes: &Wishes) -> Admission {
        let mut plugins = all();
        let wished = |names: &[String], plugin: &str| names.iter().any(|name| name == plugin);
        plugins.retain(|plugin| {
            let name = plugin.name();
            !wished(&wishes.disable, name)
                && (!ON_REQUEST.contains(&name) || wished(&wishes.enable, name))
        });
        Admission { plugins }
    }

    pub async fn admit(
        &self,
        object: &mut Value,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            plugin.admit(object, attributes).await?;
        }
        Ok(())
    }

    pub async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        for plugin in &self.plugins {
            plugin.validate(object, attributes).await?;
        }
        Ok(())
    }
}

/// Those that are off unless they are asked for.
const ON_REQUEST: [&str; 1] = ["NodeRestriction"];

/// What upstream has plugins for.
const KNOWN: [&str; 41] = [
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_known_and_stand_in_upstreams_order() {
        let places: Vec<_> = all()
            .iter()
            .map(|plugin| {
                KNOWN
                    .iter()
                    .position(|name| *name == plugin.name())
                    .unwrap()
            })
            .collect();
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn wishes_name_plugins_that_there_are() {
        let check = |enable: &[&str], disable: &[&str], expected: &[&str]| {
            let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
            assert_eq!(
                Wishes {
                    enable: list(enable),
                    disable: list(disable)
                }
                .mistakes(),
                expected
            );
        };
        check(&["LimitRanger"], &["EventRateLimit", "Priority"], &[]);

        check(
            &["Nope"],
            &[],
            &["enable-admission-plugins plugin \"Nope\" is unknown"],
        );

        check(
            &["AlwaysPullImages"],
            &[],
            &["enable-admission-plugins plugin \"AlwaysPullImages\" is not supported yet"],
        );

        check(
            &["Priority"],
            &["Priority"],
            &["\"Priority\" in enable-admission-plugins and disable-admission-plugins overlapped"],
        );
    }
}
