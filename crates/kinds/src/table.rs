//! The table of kinds: one line maps a resource of the catalogue to its behaviour.

use crate::behaviour::Behaviour;
use crate::{
    admissionregistration, apiextensions, apiregistration, apiserverinternal, apps, authentication,
    authorization, autoscaling, batch, certificates, coordination, core, discovery, flowcontrol,
    networking, node, policy, rbac, resource, scheduling, storage, storagemigration,
};

/// API group, plural name, behaviour; sorted by the first two.
#[rustfmt::skip]
const KINDS: &[(&str, &str, &Behaviour)] = &[
    ("", "bindings", &core::binding::BEHAVIOUR),
    ("", "componentstatuses", &core::component_status::BEHAVIOUR),
    ("", "configmaps", &core::config_map::BEHAVIOUR),
    ("", "endpoints", &core::endpoints::BEHAVIOUR),
    ("", "events", &core::event::BEHAVIOUR),
    ("", "limitranges", &core::limit_range::BEHAVIOUR),
    ("", "namespaces", &core::namespace::BEHAVIOUR),
    ("", "nodes", &core::node::BEHAVIOUR),
    ("", "persistentvolumeclaims", &core::persistent_volume_claim::BEHAVIOUR),
    ("", "persistentvolumes", &core::persistent_volume::BEHAVIOUR),
    ("", "pods", &core::pod::BEHAVIOUR),
    ("", "podtemplates", &core::pod_template::BEHAVIOUR),
    ("", "replicationcontrollers", &core::replication_controller::BEHAVIOUR),
    ("", "resourcequotas", &core::resource_quota::BEHAVIOUR),
    ("", "secrets", &core::secret::BEHAVIOUR),
    ("", "serviceaccounts", &core::service_account::BEHAVIOUR),
    ("", "services", &core::service::BEHAVIOUR),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", &admissionregistration::policy::MUTATING),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", &admissionregistration::binding::MUTATING),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", &admissionregistration::webhook::MUTATING),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", &admissionregistration::policy::VALIDATING),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", &admissionregistration::binding::VALIDATING),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", &admissionregistration::webhook::VALIDATING),
    ("apiextensions.k8s.io", "customresourcedefinitions", &apiextensions::custom_resource_definition::BEHAVIOUR),
    ("apiregistration.k8s.io", "apiservices", &apiregistration::api_service::BEHAVIOUR),
    ("apps", "controllerrevisions", &apps::controller_revision::BEHAVIOUR),
    ("apps", "daemonsets", &apps::daemon_set::BEHAVIOUR),
    ("apps", "deployments", &apps::deployment::BEHAVIOUR),
    ("apps", "replicasets", &apps::replica_set::BEHAVIOUR),
    ("apps", "statefulsets", &apps::stateful_set::BEHAVIOUR),
    ("authentication.k8s.io", "selfsubjectreviews", &authentication::SELF_SUBJECT_REVIEWS),
    ("authentication.k8s.io", "tokenreviews", &authentication::TOKEN_REVIEWS),
    ("authorization.k8s.io", "localsubjectaccessreviews", &authorization::ACCESS_REVIEWS),
    ("authorization.k8s.io", "selfsubjectaccessreviews", &authorization::ACCESS_REVIEWS),
    ("authorization.k8s.io", "selfsubjectrulesreviews", &authorization::RULES_REVIEWS),
    ("authorization.k8s.io", "subjectaccessreviews", &authorization::ACCESS_REVIEWS),
    ("autoscaling", "horizontalpodautoscalers", &autoscaling::horizontal_pod_autoscaler::BEHAVIOUR),
    ("batch", "cronjobs", &batch::cron_job::BEHAVIOUR),
    ("batch", "jobs", &batch::job::BEHAVIOUR),
    ("certificates.k8s.io", "certificatesigningrequests", &certificates::certificate_signing_request::BEHAVIOUR),
    ("certificates.k8s.io", "clustertrustbundles", &certificates::cluster_trust_bundle::BEHAVIOUR),
    ("certificates.k8s.io", "podcertificaterequests", &certificates::pod_certificate_request::BEHAVIOUR),
    ("coordination.k8s.io", "leasecandidates", &coordination::lease_candidate::BEHAVIOUR),
    ("coordination.k8s.io", "leases", &coordination::lease::BEHAVIOUR),
    ("discovery.k8s.io", "endpointslices", &discovery::endpoint_slice::BEHAVIOUR),
    ("events.k8s.io", "events", &core::event::BEHAVIOUR),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", &flowcontrol::flow_schema::BEHAVIOUR),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", &flowcontrol::priority_level::BEHAVIOUR),
    ("internal.apiserver.k8s.io", "storageversions", &apiserverinternal::storage_version::BEHAVIOUR),
    ("networking.k8s.io", "ingressclasses", &networking::ingress_class::BEHAVIOUR),
    ("networking.k8s.io", "ingresses", &networking::ingress::BEHAVIOUR),
    ("networking.k8s.io", "ipaddresses", &networking::ip_address::BEHAVIOUR),
    ("networking.k8s.io", "networkpolicies", &networking::network_policy::BEHAVIOUR),
    ("networking.k8s.io", "servicecidrs", &networking::service_cidr::BEHAVIOUR),
    ("node.k8s.io", "runtimeclasses", &node::runtime_class::BEHAVIOUR),
    ("policy", "poddisruptionbudgets", &policy::pod_disruption_budget::BEHAVIOUR),
    ("rbac.authorization.k8s.io", "clusterrolebindings", &rbac::binding::CLUSTER_ROLE_BINDINGS),
    ("rbac.authorization.k8s.io", "clusterroles", &rbac::role::CLUSTER_ROLES),
    ("rbac.authorization.k8s.io", "rolebindings", &rbac::binding::ROLE_BINDINGS),
    ("rbac.authorization.k8s.io", "roles", &rbac::role::ROLES),
    ("resource.k8s.io", "deviceclasses", &resource::device_class::BEHAVIOUR),
    ("resource.k8s.io", "devicetaintrules", &resource::device_taint_rule::BEHAVIOUR),
    ("resource.k8s.io", "resourceclaims", &resource::resource_claim::BEHAVIOUR),
    ("resource.k8s.io", "resourceclaimtemplates", &resource::resource_claim_template::BEHAVIOUR),
    ("resource.k8s.io", "resourcepoolstatusrequests", &resource::resource_pool_status_request::BEHAVIOUR),
    ("resource.k8s.io", "resourceslices", &resource::resource_slice::BEHAVIOUR),
    ("scheduling.k8s.io", "podgroups", &scheduling::pod_group::BEHAVIOUR),
    ("scheduling.k8s.io", "priorityclasses", &scheduling::priority_class::BEHAVIOUR),
    ("scheduling.k8s.io", "workloads", &scheduling::workload::BEHAVIOUR),
    ("storage.k8s.io", "csidrivers", &storage::csi_driver::BEHAVIOUR),
    ("storage.k8s.io", "csinodes", &storage::csi_node::BEHAVIOUR),
    ("storage.k8s.io", "csistoragecapacities", &storage::csi_storage_capacity::BEHAVIOUR),
    ("storage.k8s.io", "storageclasses", &storage::storage_class::BEHAVIOUR),
    ("storage.k8s.io", "volumeattachments", &storage::volume_attachment::BEHAVIOUR),
    ("storage.k8s.io", "volumeattributesclasses", &storage::volume_attributes_class::BEHAVIOUR),
    ("storagemigration.k8s.io", "storageversionmigrations", &storagemigration::storage_version_migration::BEHAVIOUR),
];

static DEFAULT: Behaviour = Behaviour::DEFAULT;

/// The behaviour of a resource. `group` is the one that objects are stored in: a resource that
/// shows the objects of another group behaves as that.
pub fn behaviour(group: &str, plural: &str) -> &'static Behaviour {
    match KINDS.binary_search_by_key(&(group, plural), |(group, plural, _)| (*group, *plural)) {
        Ok(found) => KINDS[found].2,
        Err(_) => &DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::catalog::BUILTIN;

    use super::*;
    use crate::Part;

    #[test]
    fn lines_are_sorted_and_name_resources_of_the_catalogue() {
        assert!(KINDS.is_sorted_by_key(|(group, plural, _)| (*group, *plural)));

        for (group, plural, behaviour) in KINDS {
            let found: Vec<_> = BUILTIN
                .resources()
                .iter()
                .filter(|resource| resource.group == *group && resource.plural == *plural)
                .collect();
            assert!(!found.is_empty(), "{plural} of {group:?} is no resource");

            let has = |name: &str| {
                let mut all = found
                    .iter()
                    .flat_map(|resource| resource.subresources.iter());
                name.is_empty() || all.any(|subresource| subresource.name == name)
            };
            for (part, _) in behaviour.reset_fields {
                assert!(
                    *part == Part::Main || has(part.name()),
                    "{plural}: {part:?}"
                );
            }
            for (subresource, handler) in behaviour.handlers {
                assert!(has(subresource), "{plural}: {handler:?}");
            }
        }
    }
}
