//! What one kind does differently: its strategy.
//!
//! The road of a write is the same for every kind; where behaviour is the kind's own, the road asks
//! the kind's [`Strategy`]. On a create: `begin` reserves what lives outside the object (a
//! Service's addresses), `prepare_create` shapes the tree, `validate` judges it, `warnings` says
//! what the client should know. On an update the same, with the old object beside the new. Trees
//! are changed, typed views are judged: a view is decoded once, after the shaping, and whoever must
//! tell absent from zero looks at the tree beside it.
//!
//! A kind has its strategy in `registry/<group>/<kind>.rs` and its line in [`of`]. Kinds without
//! one take the road alone.

mod erased;
mod generic;

pub(super) use erased::AnyStrategy;

use coracle_api::catalog::Resource;
use coracle_api::field_error::FieldErrors;
use coracle_api::names::{self, Rule};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use super::{
    OwnMetadata, Part, Registry, Scope, admissionregistration, apiextensions, apiregistration,
    apps, autoscaling, batch, certificates, coordination, core, discovery, flowcontrol, networking,
    policy, rbac, scheduling, storage,
};
use crate::ApiError;

/// What a strategy may look at besides the objects.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub registry: &'a Registry,
    pub scope: &'a Scope<'a>,
    pub part: Part,
    pub dry_run: bool,
    pub now: Timestamp,
}

impl Context<'_> {
    /// Whether the object itself is kept if all goes well: its writer should know where that has no
    /// effect yet. What is only tried is not kept.
    pub fn keeps_object(&self) -> bool {
        self.part == Part::Main && !self.dry_run
    }
}

/// An object as a strategy judges it.
pub struct Judged<'a, T> {
    /// The typed view; `Deref` leads here.
    pub view: T,
    /// What the view was made from. It knows whether a field was absent.
    pub tree: &'a Value,
}

impl<T> std::ops::Deref for Judged<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

/// Runs when the fate of a write is known: `true`, it happened. Gives back what was reserved, or
/// lets go of what the old object held.
pub type Settle<'a> = Box<dyn FnOnce(bool) -> BoxFuture<'a, ()> + Send + 'a>;

/// Where errors are gathered.
pub type Errors = FieldErrors;

/// How a delete of one object goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// The object goes at once, or when its finalizers are gone.
    None,
    /// The object stays for so many seconds, for somebody to end what it stands for.
    Seconds(i64),
}

/// What a kind adds to the road of a write.
#[expect(
    unused_variables,
    reason = "the names of parameters document what most kinds need not look at"
)]
pub trait Strategy: Send + Sync + 'static {
    /// The view that it judges by.
    type Object: DeserializeOwned + Send;

    /// The rule of its names.
    fn name_rule(&self) -> Rule {
        names::dns1123_subdomain
    }

    /// A name for an object that asks for one. `random` is chance.
    fn generate_name(&self, base: &str, random: u64) -> String {
        names::generate(base, random)
    }

    /// What it itself looks at in metadata when this part is written.
    fn own_metadata(&self, part: Part) -> OwnMetadata {
        OwnMetadata::named(self.name_rule())
    }

    /// Reserves what lives outside the object, before it is shaped and judged. `old` is there on an
    /// update.
    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        None
    }

    /// Whether a new object may come with a status.
    fn keeps_status(&self) -> bool {
        false
    }

    /// Whether it can take long to tell what is wrong with an object.
    fn takes_long(&self) -> bool {
        false
    }

    /// What the writer of a new object should know whatever becomes of it. `sent` is not shaped
    /// yet.
    fn notices(&self, sent: &Value, cx: &Context<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Shapes a new object: fields that clients may not set, fields that follow from others. The
    /// status of a kind that has the subresource is gone already.
    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {}

    /// Shapes a changed object. What the part does not own has been carried over from the old one
    /// already, for [`Part::Main`] and [`Part::Status`]; other parts are the kind's own, and `new`
    /// is as the client sent it.
    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {}

    /// Judges a new object. Its metadata has been judged by [`Strategy::own_metadata`].
    fn validate(&self, new: &Judged<'_, Self::Object>, cx: &Context<'_>, errors: &mut Errors) {}

    /// Judges a changed object as if it were new, metadata included. Many kinds do so on an update.
    fn validate_anew(&self, new: &Judged<'_, Self::Object>, cx: &Context<'_>, errors: &mut Errors) {
        self.own_metadata(cx.part).judge(new.tree, cx, errors);
        self.validate(new, cx, errors);
    }

    /// Judges a changed object. The change of its metadata has been judged by
    /// [`Strategy::own_metadata`]; a kind that judges the new metadata once more calls
    /// [`OwnMetadata::judge`] or [`Strategy::validate_anew`].
    fn validate_update(
        &self,
        new: &Judged<'_, Self::Object>,
        old: &Judged<'_, Self::Object>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
    }

    /// Brings an object that was found good into the form that is kept.
    fn canonicalize(&self, new: &mut Value) {}

    /// What the writer should know though nothing is wrong.
    fn warnings(
        &self,
        new: &Judged<'_, Self::Object>,
        old: Option<&Judged<'_, Self::Object>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        Vec::new()
    }

    /// Whether a write counts as a change of what is wanted, so that `generation` goes up. Asked
    /// for kinds that count generations, after the shaping.
    fn counts_generation(&self, new: &Value, old: &Value, part: Part) -> bool {
        part == Part::Main && super::update::content_changed(old, new)
    }

    /// Whether what belongs to a deleted object stays, where nobody says otherwise.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// Why the object of that name is not deleted, whoever asks.
    fn never_deleted(&self, name: &str) -> Option<&'static str> {
        None
    }

    /// How long a deleted object lingers. `asked` is what the client wants.
    fn grace(&self, object: &Value, asked: Option<i64>) -> Grace {
        Grace::None
    }

    /// Whether something besides `metadata.finalizers` keeps a deleted object.
    fn holds(&self, object: &Value) -> bool {
        false
    }

    /// Shows on an object that it has been marked as deleted.
    fn mark_deleted(&self, object: &mut Value) {}

    /// What whoever deletes an object should know who does not say what becomes of what belongs to
    /// it.
    fn delete_notice(&self) -> Option<&'static str> {
        None
    }

    /// Lets go of what a deleted object held.
    fn after_delete<'a>(
        &'a self,
        object: &'a Value,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'a, ()>> {
        None
    }
}

/// The strategy of a resource.
pub(super) fn of(resource: &Resource) -> &'static dyn AnyStrategy {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("events.k8s.io", "events") => &core::event::Events,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => {
            &admissionregistration::MutatingPolicies
        }
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings") => {
            &admissionregistration::MutatingBindings
        }
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations") => {
            &admissionregistration::MutatingWebhooks
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => {
            &admissionregistration::ValidatingPolicies
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => {
            &admissionregistration::ValidatingBindings
        }
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations") => {
            &admissionregistration::ValidatingWebhooks
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            &apiextensions::custom_resource_definition::CustomResourceDefinitions
        }
        ("apiregistration.k8s.io", "apiservices") => &apiregistration::api_service::APIServices,
        ("apps", "controllerrevisions") => &apps::controller_revision::ControllerRevisions,
        ("apps", "daemonsets") => &apps::daemon_set::DaemonSets,
        ("apps", "deployments") => &apps::deployment::Deployments,
        ("apps", "replicasets") => &apps::replica_set::ReplicaSets,
        ("apps", "statefulsets") => &apps::stateful_set::StatefulSets,
        ("autoscaling", "horizontalpodautoscalers") => {
            &autoscaling::horizontal_pod_autoscaler::HorizontalPodAutoscalers
        }
        ("batch", "cronjobs") => &batch::cron_job::CronJobs,
        ("batch", "jobs") => &batch::job::Jobs,
        ("certificates.k8s.io", "certificatesigningrequests") => {
            &certificates::certificate_signing_request::CertificateSigningRequests
        }
        ("coordination.k8s.io", "leases") => &coordination::lease::Leases,
        ("discovery.k8s.io", "endpointslices") => &discovery::endpoint_slice::EndpointSlices,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => &flowcontrol::FlowSchemas,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            &flowcontrol::PriorityLevels
        }
        ("networking.k8s.io", "ingresses") => &networking::ingress::Ingresses,
        ("networking.k8s.io", "ingressclasses") => &networking::ingress_class::IngressClasses,
        ("networking.k8s.io", "ipaddresses") => &networking::ip_address::IpAddresses,
        ("networking.k8s.io", "networkpolicies") => &networking::network_policy::NetworkPolicies,
        ("networking.k8s.io", "servicecidrs") => &networking::service_cidr::ServiceCidrs,
        ("policy", "poddisruptionbudgets") => &policy::pod_disruption_budget::PodDisruptionBudgets,
        ("rbac.authorization.k8s.io", "clusterrolebindings") => &rbac::ClusterRoleBindings,
        ("rbac.authorization.k8s.io", "clusterroles") => &rbac::ClusterRoles,
        ("rbac.authorization.k8s.io", "rolebindings") => &rbac::RoleBindings,
        ("rbac.authorization.k8s.io", "roles") => &rbac::Roles,
        ("scheduling.k8s.io", "priorityclasses") => &scheduling::priority_class::PriorityClasses,
        ("storage.k8s.io", "csidrivers") => &storage::csi_driver::CsiDrivers,
        ("storage.k8s.io", "csinodes") => &storage::csi_node::CsiNodes,
        ("storage.k8s.io", "csistoragecapacities") => {
            &storage::csi_storage_capacity::CsiStorageCapacities
        }
        ("storage.k8s.io", "storageclasses") => &storage::storage_class::StorageClasses,
        ("storage.k8s.io", "volumeattributesclasses") => {
            &storage::volume_attributes_class::VolumeAttributesClasses
        }
        ("", plural) => of_core(plural),
        _ => &generic::Generic,
    }
}

/// The strategy of a resource of the core group.
fn of_core(plural: &str) -> &'static dyn AnyStrategy {
    match plural {
        "configmaps" => &core::config_map::ConfigMaps,
        "endpoints" => &core::endpoints::EndpointsObjects,
        "events" => &core::event::Events,
        "limitranges" => &core::limit_range::LimitRanges,
        "namespaces" => &core::namespace::Namespaces,
        "nodes" => &core::node::Nodes,
        "persistentvolumeclaims" => &core::persistent_volume_claim::PersistentVolumeClaims,
        "persistentvolumes" => &core::persistent_volume::PersistentVolumes,
        "pods" => &core::pod::Pods,
        "podtemplates" => &core::pod_template::PodTemplates,
        "replicationcontrollers" => &core::replication_controller::ReplicationControllers,
        "resourcequotas" => &core::resource_quota::ResourceQuotas,
        "secrets" => &core::secret::Secrets,
        "services" => &core::service::Services,
        "serviceaccounts" => &core::service_account::ServiceAccounts,
        _ => &generic::Generic,
    }
}

/// Where a field of the spec is; most errors are below it.
pub const SPEC: Path<'static> = Path::Field(&Path::Root, "spec");
