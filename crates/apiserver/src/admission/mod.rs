//! Admission: plugins that change or refuse a write that is authorized.
//!
//! [`PLUGINS`] is the table of them, in upstream's order, with one line per plugin: its name, whether
//! it is on by default, and how it is made. Each plugin first gets the object as the client sent
//! it and may change it (`admit`); when the kind's strategy has prepared and validated the object,
//! each may refuse the result (`validate`). Plugins read the watch cache through
//! [`Cluster`](coracle_kinds::Cluster); they do not call the API.
//!
//! The chain is asked about every write of every kind and subresource, about each object of a
//! collection that is deleted, and about connections to pods, services and nodes. A plugin names the
//! operations that it handles. What it is told is in [`Attributes`]; what it leaves beside its
//! verdict (warnings, audit annotations, the request to run the chain once more) in [`Notes`]. A
//! plugin with state is made with what it needs of the server ([`Setup`]), and keeps its state up
//! to date in `run`. Policies and webhooks decide by [`matching`] which requests concern them.

mod always;
mod always_pull_images;
mod attributes;
mod certificates;
mod configuration;
mod containers;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod event_rate_limit;
pub mod expressions;
mod extended_resource_toleration;
mod image_policy_webhook;
mod invoked;
mod limit_pod_hard_anti_affinity_topology;
mod limit_ranger;
pub mod matching;
mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;
mod node_declared_feature_validator;
mod node_restriction;
mod notes;
mod owner_references_permission_enforcement;
mod patched;
mod persistent_volume_claim_resize;
mod pod_node_selector;
mod pod_resize_validator;
mod pod_security;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod policy;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
mod tolerations;
mod webhook;

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use coracle_api::{Value, gates};
use coracle_client::World;
use coracle_kinds::ApiError;
use coracle_metrics::{Buckets, Histogram, Histograms, Registry, Stable, metrics};
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use attributes::{Attributes, Operation, Options};
pub use configuration::{
    AdmissionConfiguration, ConfigurationError, PluginConfigurations, TolerationSeconds,
};
pub use notes::{AuditAnnotations, BadAnnotation, Notes, Reinvocation, Warnings};

use crate::authz::Authorization;
use crate::cache::Caches;
use crate::webhook::Webhooks;

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
    /// Whether it is asked about this operation.
    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    /// Changes the object, or refuses it before it is shaped. There is none on a delete: it is
    /// `null` then.
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

    /// What it does beside requests, as long as the server runs: following the objects that configure
    /// it, say.
    async fn run(&self) {}
}

/// What plugins are made with: what they use of the server beside what a request brings them.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// Filled, and followed by the feed.
    pub caches: &'a Arc<Caches>,
    pub authorization: &'a Authorization,
    pub metrics: &'a Registry,
    /// Permits for work that may take long.
    pub long_work: &'a Arc<Semaphore>,
    pub configurations: &'a PluginConfigurations,
    /// The clock and random source of the server.
    pub world: World,
    /// The clients of webhooks, by the plugin that calls them.
    pub mutating_webhooks: &'a Arc<Webhooks>,
    pub validating_webhooks: &'a Arc<Webhooks>,
}

/// Makes a plugin for one server.
type Make = fn(&Setup<'_>) -> Arc<dyn Plugin>;

/// Whether a plugin runs.
#[derive(Clone, Copy)]
enum State {
    /// Unless it is disabled.
    On(Make),
    /// As long as a feature gate is on, too.
    Gated(&'static str, Make),
    /// Only if it is enabled.
    OnRequest(Make),
    /// Upstream has it, this server does not yet. While the feature gate is off, upstream's does nothing
    /// either.
    WithoutEffect(&'static str),
}
use State::{Gated, On, OnRequest, WithoutEffect};

/// Every plugin of upstream, in the order in which they run.
#[rustfmt::skip]
const PLUGINS: &[(&str, State)] = &[
    ("AlwaysAdmit", OnRequest(|_| Arc::new(always::AlwaysAdmit))),
    ("NamespaceAutoProvision", OnRequest(|_| Arc::new(namespace_auto_provision::NamespaceAutoProvision))),
    ("NamespaceLifecycle", On(|_| Arc::new(namespace_lifecycle::NamespaceLifecycle))),
    ("NamespaceExists", OnRequest(|_| Arc::new(namespace_exists::NamespaceExists))),
    ("LimitPodHardAntiAffinityTopology", OnRequest(|_| Arc::new(limit_pod_hard_anti_affinity_topology::LimitPodHardAntiAffinityTopology))),
    ("LimitRanger", On(|_| Arc::new(limit_ranger::LimitRanger))),
    ("ServiceAccount", On(|_| Arc::new(service_account::ServiceAccount))),
    ("NodeRestriction", OnRequest(|_| Arc::new(node_restriction::NodeRestriction))),
    ("TaintNodesByCondition", On(|_| Arc::new(taint_nodes_by_condition::TaintNodesByCondition))),
    ("AlwaysPullImages", OnRequest(|_| Arc::new(always_pull_images::AlwaysPullImages))),
    ("ImagePolicyWebhook", OnRequest(image_policy_webhook::ImagePolicyWebhook::make)),
    ("PodSecurity", On(pod_security::PodSecurity::make)),
    ("PodNodeSelector", OnRequest(|setup| Arc::new(pod_node_selector::PodNodeSelector::new(&setup.configurations.node_selectors)))),
    ("Priority", On(|_| Arc::new(priority::Priority))),
    ("DefaultTolerationSeconds", On(|setup| Arc::new(default_toleration_seconds::DefaultTolerationSeconds::new(setup.configurations.toleration_seconds)))),
    ("PodTolerationRestriction", OnRequest(|setup| Arc::new(pod_toleration_restriction::PodTolerationRestriction::new(&setup.configurations.tolerations)))),
    ("EventRateLimit", OnRequest(|setup| Arc::new(event_rate_limit::EventRateLimit::new(&setup.configurations.event_limits)))),
    ("ExtendedResourceToleration", OnRequest(|_| Arc::new(extended_resource_toleration::ExtendedResourceToleration))),
    ("DefaultStorageClass", On(|_| Arc::new(default_storage_class::DefaultStorageClass))),
    ("StorageObjectInUseProtection", On(|_| Arc::new(storage_object_in_use_protection::StorageObjectInUseProtection))),
    ("PodGroupProtection", WithoutEffect("GenericWorkload")),
    ("OwnerReferencesPermissionEnforcement", OnRequest(|setup| Arc::new(owner_references_permission_enforcement::OwnerReferencesPermissionEnforcement::new(setup.caches)))),
    ("PersistentVolumeClaimResize", On(|_| Arc::new(persistent_volume_claim_resize::PersistentVolumeClaimResize))),
    ("RuntimeClass", On(|_| Arc::new(runtime_class::RuntimeClass))),
    ("CertificateApproval", On(|_| Arc::new(certificates::CertificateApproval))),
    ("CertificateSigning", On(|_| Arc::new(certificates::CertificateSigning))),
    ("ClusterTrustBundleAttest", Gated("ClusterTrustBundle", |_| Arc::new(certificates::ClusterTrustBundleAttest))),
    ("CertificateSubjectRestriction", On(|_| Arc::new(certificates::CertificateSubjectRestriction))),
    ("DefaultIngressClass", On(|_| Arc::new(default_ingress_class::DefaultIngressClass))),
    ("DenyServiceExternalIPs", OnRequest(|_| Arc::new(deny_service_external_ips::DenyServiceExternalIPs))),
    ("PodTopologyLabels", Gated("PodTopologyLabelsAdmission", |_| Arc::new(pod_topology_labels::PodTopologyLabels))),
    ("PodGroupWorkloadExists", WithoutEffect("GenericWorkload")),
    ("NodeDeclaredFeatureValidator", Gated("NodeDeclaredFeatures", |_| Arc::new(node_declared_feature_validator::NodeDeclaredFeatureValidator))),
    ("JobValidation", WithoutEffect("GenericWorkload")),
    ("PodResizeValidator", On(|_| Arc::new(pod_resize_validator::PodResizeValidator))),
    ("MutatingAdmissionPolicy", On(policy::MutatingAdmissionPolicy::make)),
    ("MutatingAdmissionWebhook", On(webhook::MutatingAdmissionWebhook::make)),
    ("ValidatingAdmissionPolicy", On(policy::ValidatingAdmissionPolicy::make)),
    ("ValidatingAdmissionWebhook", On(webhook::ValidatingAdmissionWebhook::make)),
    ("ResourceQuota", On(|_| Arc::new(resource_quota::ResourceQuota))),
    ("AlwaysDeny", OnRequest(|_| Arc::new(always::AlwaysDeny))),
];

/// The plugins that are on, in their order.
pub struct Admission {
    plugins: Vec<Named>,
    metrics: AdmissionMetrics,
}

/// A plugin with its name.
struct Named {
    name: &'static str,
    plugin: Arc<dyn Plugin>,
    /// By operation, step and whether it refused; each is made when it is first counted in.
    durations: [[[OnceLock<Arc<Histogram>>; 2]; 2]; 4],
}

/// Before or after validation.
#[derive(Clone, Copy)]
enum Step {
    Admit,
    Validate,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Admit => "admit",
            Step::Validate => "validate",
        }
    }
}

type Text = &'static str;

metrics! {
    struct AdmissionMetrics {
        steps: Histograms<(Text, bool, Text)> = histograms(
            Stable,
            "apiserver_admission_step_admission_duration_seconds",
            "Duration of admission in seconds: by all plugins, before or after validation.",
            ["operation", "rejected", "type"],
            Buckets::seconds(BOUNDS),
        ),
        plugins: Histograms<(Text, Text, bool, Text)> = histograms(
            Stable,
            "apiserver_admission_controller_admission_duration_seconds",
            "Duration of admission in seconds by plugin, before or after validation.",
            ["name", "operation", "rejected", "type"],
            Buckets::seconds(BOUNDS),
        ),
    }
}

const BOUNDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

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
        let lacks = |state: &State| match state {
            WithoutEffect(gate) => gates::is_on(gate),
            _ => false,
        };
        let state = |name: &str| PLUGINS.iter().find(|(known, _)| *known == name);
        for (flag, names) in [
            ("enable-admission-plugins", &self.enable),
            ("disable-admission-plugins", &self.disable),
        ] {
            for name in names {
                match state(name) {
                    None => errors.push(format!("{flag} plugin {name:?} is unknown")),
                    Some((_, state)) if lacks(state) && flag == "enable-admission-plugins" => {
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
    pub fn new(flags: &PluginFlags, setup: &Setup<'_>) -> Admission {
        let has = |names: &[String], plugin: &str| names.iter().any(|name| name == plugin);
        let runs = |(name, state): &(&str, State)| match *state {
            _ if has(&flags.disable, name) => None,
            On(make) => Some(make(setup)),
            Gated(gate, make) => gates::is_on(gate).then(|| make(setup)),
            OnRequest(make) => has(&flags.enable, name).then(|| make(setup)),
            WithoutEffect(_) => None,
        };
        Admission {
            plugins: PLUGINS
                .iter()
                .filter_map(|row| {
                    let (name, plugin) = (row.0, runs(row)?);
                    Some(Named {
                        name,
                        plugin,
                        durations: Default::default(),
                    })
                })
                .collect(),
            metrics: AdmissionMetrics::new(setup.metrics),
        }
    }

    /// What plugins do beside requests.
    pub async fn run(&self) {
        join_all(self.plugins.iter().map(|named| named.plugin.run())).await;
    }

    /// Passes the object through the plugins, and once more if one of them asks for that.
    pub async fn admit(
        &self,
        object: &mut Value,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        self.timed(Step::Admit, attributes, async {
            let mut began = Instant::now();
            loop {
                for named in self.asked(attributes) {
                    let result = named.plugin.admit(object, attributes).await;
                    began = self.measure(named, Step::Admit, attributes, result.is_err(), began);
                    result?;
                }
                if !attributes.notes.reinvocation.begin_second() {
                    return Ok(());
                }
            }
        })
        .await
    }

    pub async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        self.timed(Step::Validate, attributes, async {
            let mut began = Instant::now();
            for named in self.asked(attributes) {
                let result = named.plugin.validate(object, attributes).await;
                began = self.measure(named, Step::Validate, attributes, result.is_err(), began);
                result?;
            }
            Ok(())
        })
        .await
    }

    fn asked(&self, attributes: &Attributes<'_>) -> impl Iterator<Item = &Named> {
        let operation = attributes.operation;
        self.plugins
            .iter()
            .filter(move |named| named.plugin.handles(operation))
    }

    async fn timed(
        &self,
        step: Step,
        attributes: &Attributes<'_>,
        work: impl Future<Output = Result<(), ApiError>>,
    ) -> Result<(), ApiError> {
        let began = Instant::now();
        let result = work.await;
        let key = (attributes.operation.as_str(), result.is_err(), step.name());
        self.metrics.steps.of(&key).took(began.elapsed());
        result
    }

    /// Counts how long one plugin took; returns the time at which the next one begins.
    fn measure(
        &self,
        named: &Named,
        step: Step,
        attributes: &Attributes<'_>,
        rejected: bool,
        began: Instant,
    ) -> Instant {
        let operation = attributes.operation;
        let durations = &named.durations[operation as usize][step as usize][usize::from(rejected)];
        let durations = durations.get_or_init(|| {
            let key = (named.name, operation.as_str(), rejected, step.name());
            self.metrics.plugins.of(&key)
        });

        let now = Instant::now();
        durations.took(now.duration_since(began));
        now
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

        check(&["PodGroupProtection"], &[], &[]);

        check(
            &["Priority"],
            &["Priority"],
            &["\"Priority\" in enable-admission-plugins and disable-admission-plugins overlapped"],
        );
    }
}
