//! Exceptions in validation for objects that exist already.
//!
//! Rules grow stricter and features come behind gates; an object that was valid when it was written
//! stays writable. So every exception here depends on the old spec.

use coracle_api::Path;
use coracle_api::selector::{self, Values};
use k8s_openapi::api::core::v1::{Affinity, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::annotation::DELETION_COST;
use super::validate::{
    containers, deletion_cost, node_selector, resources, security, spread, volume,
};
use crate::strategy::Errors;
use crate::validate::items;

/// How strictly a spec is validated.
pub(crate) struct Options {
    /// A pod itself, rather than a template.
    pub(super) is_pod: bool,
    /// For selectors in affinity to pods.
    pub(super) selector_values: Values,
    /// For required affinity to nodes.
    pub(super) node_affinity_values: Values,
    pub(super) any_deletion_cost: bool,
    /// Selectors of spread constraints are not validated.
    pub(super) any_spread_selector: bool,
    /// Label keys of spread constraints are validated by the rule before v1.34.
    pub(super) older_label_keys: bool,
    /// Huge pages need not be a whole number.
    pub(super) any_pages: bool,
    /// Tokens may have paths that begin with two dots.
    pub(super) reserved_token_paths: bool,
    pub(super) sysctls_of_the_host: bool,
    /// User namespaces are allowed with the node's network.
    pub(super) users_in_host_network: bool,
    /// User namespaces are allowed with raw devices.
    pub(super) users_with_devices: bool,
    /// `RestartContainer` is allowed on init containers.
    pub(super) restarting_init_resizes: bool,
    pub(super) any_selinux_change: bool,
    /// Tolerations may compare numbers.
    pub(super) comparing_tolerations: bool,
    /// Containers may be privileged: a setting of the server, not of the old object.
    pub(super) privileged: bool,
}

impl Options {
    /// The options for a pod; `old` is given on an update. `privileged`: whether privileged
    /// containers are allowed.
    pub(super) fn of_pod(old: Option<(&ObjectMeta, &PodSpec)>, privileged: bool) -> Options {
        let (metadata, spec) = old.unzip();
        Options {
            is_pod: true,
            ..Options::of(metadata, spec, privileged)
        }
    }

    /// The options for a pod template; `old` is given on an update. `privileged`: whether
    /// privileged containers are allowed.
    pub(crate) fn of_template(old: Option<&PodTemplateSpec>, privileged: bool) -> Options {
        let metadata = old.and_then(|template| template.metadata.as_ref());
        Options::of(
            metadata,
            old.and_then(|template| template.spec.as_ref()),
            privileged,
        )
    }

    fn of(metadata: Option<&ObjectMeta>, old: Option<&PodSpec>, privileged: bool) -> Options {
        let cost = metadata.and_then(|metadata| metadata.annotations.as_ref()?.get(DELETION_COST));
        let none = PodSpec::default();
        let old = old.unwrap_or(&none);

        let kept = |has_bad: bool| {
            if has_bad {
                Values::Kept
            } else {
                Values::Validated
            }
        };

        let own_users = old.host_users == Some(false);
        Options {
            is_pod: false,
            privileged,
            selector_values: kept(
                affinity_selectors(old.affinity.as_ref()).any(|s| selector::has_bad_value(Some(s))),
            ),
            node_affinity_values: kept(has_bad_node_value(old.affinity.as_ref())),
            any_deletion_cost: cost.is_some_and(|cost| deletion_cost(cost).is_none()),
            any_spread_selector: has_bad_spread_selector(old),
            older_label_keys: has_bad_label_keys(old),
            any_pages: has_broken_pages(old),
            reserved_token_paths: volume::has_reserved_token_path(old),
            sysctls_of_the_host: has_sysctl_of_the_host(old),
            users_in_host_network: own_users && old.host_network == Some(true),
            users_with_devices: own_users
                && containers(old).any(|c| !items(&c.volume_devices).is_empty()),
            restarting_init_resizes: has_restarting_init_resize(old),
            any_selinux_change: old
                .security_context
                .as_ref()
                .is_some_and(|c| c.se_linux_change_policy.is_some()),
            comparing_tolerations: items(&old.tolerations)
                .iter()
                .any(|toleration| matches!(toleration.operator.as_deref(), Some("Lt" | "Gt"))),
        }
    }
}

fn affinity_selectors(affinity: Option<&Affinity>) -> impl Iterator<Item = &LabelSelector> {
    let terms = affinity.into_iter().flat_map(|affinity| {
        let towards = affinity.pod_affinity.iter().flat_map(|pods| {
            let preferred =
                items(&pods.preferred_during_scheduling_ignored_during_execution).iter();
            items(&pods.required_during_scheduling_ignored_during_execution)
                .iter()
                .chain(preferred.map(|weighted| &weighted.pod_affinity_term))
        });

        let against = affinity.pod_anti_affinity.iter().flat_map(|pods| {
            let preferred =
                items(&pods.preferred_during_scheduling_ignored_during_execution).iter();
            items(&pods.required_during_scheduling_ignored_during_execution)
                .iter()
                .chain(preferred.map(|weighted| &weighted.pod_affinity_term))
        });

        towards.chain(against)
    });

    terms
        .flat_map(|term| [&term.label_selector, &term.namespace_selector])
        .flatten()
}

fn has_bad_node_value(affinity: Option<&Affinity>) -> bool {
    let nodes = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let required = nodes.and_then(|nodes| {
        nodes
            .required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    required.is_some_and(|selector| node_selector::has_bad_value(&selector.node_selector_terms))
}

fn has_bad_spread_selector(spec: &PodSpec) -> bool {
    let mut errors = Errors::new();
    for constraint in items(&spec.topology_spread_constraints) {
        selector::validate(
            constraint.label_selector.as_ref(),
            Values::Validated,
            &Path::Root,
            &mut errors,
        );
    }
    !errors.is_empty()
}

fn has_bad_label_keys(spec: &PodSpec) -> bool {
    let mut errors = Errors::new();
    for constraint in items(&spec.topology_spread_constraints) {
        let keys = items(&constraint.match_label_keys);
        spread::validate_label_keys(
            keys,
            &[],
            constraint.label_selector.as_ref(),
            &Path::Root,
            &mut errors,
        );
    }

    !errors.is_empty()
}

fn has_broken_pages(spec: &PodSpec) -> bool {
    let of_containers = containers(spec).any(|container| {
        container.resources.as_ref().is_some_and(|resources| {
            resources::has_broken_pages(resources.limits.as_ref())
                || resources::has_broken_pages(resources.requests.as_ref())
        })
    });
    of_containers || resources::has_broken_pages(spec.overhead.as_ref())
}

fn has_sysctl_of_the_host(spec: &PodSpec) -> bool {
    let sysctls = spec
        .security_context
        .iter()
        .flat_map(|context| items(&context.sysctls));
    sysctls
        .into_iter()
        .any(|sysctl| security::sysctl_of_the_host(&sysctl.name, spec).is_some())
}

fn has_restarting_init_resize(spec: &PodSpec) -> bool {
    let plain = items(&spec.init_containers)
        .iter()
        .filter(|container| container.restart_policy.as_deref() != Some("Always"));
    plain
        .flat_map(|container| items(&container.resize_policy))
        .any(|policy| policy.restart_policy == "RestartContainer")
}
