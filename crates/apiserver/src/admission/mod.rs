//! Admission: plugins that change or refuse a write that is authorized.
//!
//! [`PLUGINS`] is the table of them, in upstream's order, with one line per plugin: its name, whether
//! it is on by default, and its implementation. Each plugin first gets the object as the client sent
//! it and may change it (`admit`); when the kind's strategy has prepared and validated the object,
//! each may refuse the result (`validate`). Plugins read the watch cache through
//! [`Cluster`](coracle_kinds::Cluster); they do not call the API.

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
use coracle_api::catalog::Resource;
use coracle_kinds::{ApiError, Context, Part};
use coracle_metrics::{Buckets, Histograms, Registry, Stable};
use tokio::time::Instant;

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
    pub cx: Context<'a>,
    pub operation: Operation,
    /// Empty where the name is yet to be generated.
    pub name: &'a str,
    /// The object that is there: on an update and on a delete.
    pub old: Option<&'a Value>,
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
        self.cx.resource.group == group && self.cx.resource.plural == plural
    }

    /// Whether the operation is on an object of this resource itself.
    fn does(&self, operation: Operation, group: &str, plural: &str) -> bool {
        self.operation == operation && self.cx.part == Part::Main && self.is_of(group, plural)
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
        ApiError::forbidden(self.cx.resource, name, why)
    }

    /// A cluster-wide object that is there, or one of the namespace that is written to.
    fn lookup(&self, resource: &'static Resource, name: &str) -> Option<Arc<Value>> {
        let key = if resource.namespaced {
            format!("{}/{name}", self.cx.namespace)
        } else {
            name.to_owned()
        };
        self.cx.cluster.get(resource, &key)
    }
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

/// A plugin. Its name is in [`PLUGINS`].
#[expect(
    unused_variables,
    reason = "the names of parameters document what many plugins need not look at"
)]
#[async_trait]
pub trait Plugin: Send + Sync {
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

/// Whether a plugin runs.
#[derive(Clone, Copy)]
enum State {
    /// Unless it is disabled.
    On(&'static dyn Plugin),
    /// Only if it is enabled.
    OnRequest(&'static dyn Plugin),
    /// Upstream has it, this server does not yet.
    Unsupported,
}
use State::{On, OnRequest, Unsupported};

/// Every plugin of upstream, in the order in which they run.
#[rustfmt::skip]
const PLUGINS: &[(&str, State)] = &[
    ("AlwaysAdmit", Unsupported),
    ("NamespaceAutoProvision", Unsupported),
    ("NamespaceLifecycle", On(&namespace_lifecycle::NamespaceLifecycle)),
    ("NamespaceExists", Unsupported),
    ("LimitPodHardAntiAffinityTopology", Unsupported),
    ("LimitRanger", On(&limit_ranger::LimitRanger)),
    ("ServiceAccount", On(&service_account::ServiceAccount)),
    ("NodeRestriction", OnRequest(&node_restriction::NodeRestriction)),
    ("TaintNodesByCondition", On(&taint_nodes_by_condition::TaintNodesByCondition)),
    ("AlwaysPullImages", Unsupported),
    ("ImagePolicyWebhook", Unsupported),
    ("PodSecurity", On(&pod_security::PodSecurity)),
    ("PodNodeSelector", Unsupported),
    ("Priority", On(&priority::Priority)),
    ("DefaultTolerationSeconds", On(&default_toleration_seconds::DefaultTolerationSeconds)),
    ("PodTolerationRestriction", Unsupported),
    ("EventRateLimit", Unsupported),
    ("ExtendedResourceToleration", Unsupported),
    ("DefaultStorageClass", On(&default_storage_class::DefaultStorageClass)),
    ("StorageObjectInUseProtection", On(&storage_object_in_use_protection::StorageObjectInUseProtection)),
    ("PodGroupProtection", Unsupported),
    ("OwnerReferencesPermissionEnforcement", Unsupported),
    ("PersistentVolumeClaimResize", On(&persistent_volume_claim_resize::PersistentVolumeClaimResize)),
    ("RuntimeClass", On(&runtime_class::RuntimeClass)),
    ("CertificateApproval", On(&certificates::CertificateApproval)),
    ("CertificateSigning", On(&certificates::CertificateSigning)),
    ("ClusterTrustBundleAttest", Unsupported),
    ("CertificateSubjectRestriction", On(&certificates::CertificateSubjectRestriction)),
    ("DefaultIngressClass", On(&default_ingress_class::DefaultIngressClass)),
    ("DenyServiceExternalIPs", Unsupported),
    ("PodTopologyLabels", Unsupported),
    ("PodGroupWorkloadExists", Unsupported),
    ("NodeDeclaredFeatureValidator", Unsupported),
    ("JobValidation", Unsupported),
    ("PodResizeValidator", Unsupported),
    ("MutatingAdmissionPolicy", Unsupported),
    ("MutatingAdmissionWebhook", Unsupported),
    ("ValidatingAdmissionPolicy", Unsupported),
    ("ValidatingAdmissionWebhook", Unsupported),
    ("ResourceQuota", On(&resource_quota::ResourceQuota)),
    ("AlwaysDeny", Unsupported),
];

/// The plugins that are on, in their order.
pub struct Admission {
    plugins: Vec<&'static dyn Plugin>,
    steps: Histograms<(&'static str, bool, &'static str)>,
}

/// The flags `--enable-admission-plugins` and `--disable-admission-plugins`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginFlags {
    pub enable: Vec<String>,
    pub disable: Vec<String>,
}

impl PluginFlags {
    /// The errors in the flags, with upstream's texts where it has any.
    pub fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        let state = |name: &str| PLUGINS.iter().find(|(known, _)| *known == name);
        for (flag, names) in [
            ("enable-admission-plugins", &self.enable),
            ("disable-admission-plugins", &self.disable),
        ] {
            for name in names {
                match state(name) {
                    None => errors.push(format!("{flag} plugin {name:?} is unknown")),
                    Some((_, Unsupported)) if flag == "enable-admission-plugins" => {
                        errors.push(format!("{flag} plugin {name:?} is not supported yet"));
                    }
                    Some(_) => {}
                }
            }
        }

        for name in self
            .enable
            .iter()
            .filter(|name| self.disable.contains(name))
        {
            errors.push(format!(
                "{name:?} in enable-admission-plugins and disable-admission-plugins overlapped"
            ));
        }

        errors
    }
}

impl Admission {
    /// All that are on by default or enabled, and not disabled.
    pub fn new(flags: &PluginFlags, metrics: &Registry) -> Admission {
        let has = |names: &[String], plugin: &str| names.iter().any(|name| name == plugin);
        let runs = |(name, state): &(&str, State)| match *state {
            _ if has(&flags.disable, name) => None,
            On(plugin) => Some(plugin),
            OnRequest(plugin) => has(&flags.enable, name).then_some(plugin),
            Unsupported => None,
        };
        Admission {
            plugins: PLUGINS.iter().filter_map(runs).collect(),
            steps: metrics.histograms(
                Stable,
                "apiserver_admission_step_admission_duration_seconds",
                "Duration of admission in seconds: by all plugins, before or after validation.",
                ["operation", "rejected", "type"],
                Buckets::seconds(&[0.005, 0.025, 0.1, 0.5, 1.0, 2.5]),
            ),
        }
    }

    pub async fn admit(
        &self,
        object: &mut Value,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        self.timed("admit", attributes, async {
            for plugin in &self.plugins {
                plugin.admit(object, attributes).await?;
            }
            Ok(())
        })
        .await
    }

    pub async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        self.timed("validate", attributes, async {
            for plugin in &self.plugins {
                plugin.validate(object, attributes).await?;
            }
            Ok(())
        })
        .await
    }

    async fn timed(
        &self,
        step: &'static str,
        attributes: &Attributes<'_>,
        work: impl Future<Output = Result<(), ApiError>>,
    ) -> Result<(), ApiError> {
        let began = Instant::now();
        let result = work.await;
        let operation = match attributes.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        };
        let key = (operation, result.is_err(), step);
        self.steps.of(&key).took(began.elapsed());
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_name_plugins_that_there_are() {
        let check = |enable: &[&str], disable: &[&str], expected: &[&str]| {
            let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
            assert_eq!(
                PluginFlags {
                    enable: list(enable),
                    disable: list(disable)
                }
                .errors(),
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
