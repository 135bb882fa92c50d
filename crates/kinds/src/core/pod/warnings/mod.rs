//! Warnings about valid pods and pod templates.

mod containers;
mod paths;
mod ports;

use std::collections::BTreeSet;

use coracle_api::go_text::Quoted;
use coracle_api::names::{dns1123_label, label_value};
use coracle_api::quantity::Quantity;
use coracle_api::{Path, ip};
use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorTerm, Pod, PodAffinityTerm, PodSpec, PodTemplateSpec, Volume,
    WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::validate::resources::Amounts;
use crate::validate::resources::read;
use crate::validate::{items, text};
use crate::warnings::Gathered;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Warnings about a new pod.
pub(super) fn new_pod(pod: &Pod) -> Vec<String> {
    let mut warnings = Gathered::default();
    let messages = dns1123_label(text(&pod.metadata.name));
    if !messages.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            messages.join(" ")
        ));
    }

    let none = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    warn_spec(spec, &pod.metadata, &Path::Root, false, &mut warnings);

    warnings.into_texts()
}

/// Warnings about a new or changed template.
pub(crate) fn template(template: &PodTemplateSpec, at: &Path<'_>) -> Vec<String> {
    let (no_metadata, no_spec) = (ObjectMeta::default(), PodSpec::default());
    let metadata = template.metadata.as_ref().unwrap_or(&no_metadata);
    let mut warnings = Gathered::default();
    warn_spec(
        template.spec.as_ref().unwrap_or(&no_spec),
        metadata,
        at,
        true,
        &mut warnings,
    );
    warnings.into_texts()
}

fn warn_spec(
    spec: &PodSpec,
    metadata: &ObjectMeta,
    at: &Path<'_>,
    is_template: bool,
    warnings: &mut Gathered,
) {
    let place = at.field("spec");
    for key in spec
        .node_selector
        .iter()
        .flat_map(|selector| selector.keys())
    {
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!(
                "{}: {message}",
                place.field("nodeSelector").key(key)
            ));
        }
    }

    warn_node_affinity(
        spec.affinity.as_ref(),
        &place.field("affinity").field("nodeAffinity"),
        warnings,
    );

    warn_spread(spec, &place.field("topologySpreadConstraints"), warnings);
    let annotations = at.field("metadata");

    let annotations = annotations.field("annotations");
    for (key, message) in DEPRECATED_ANNOTATIONS {
        if metadata
            .annotations
            .as_ref()
            .is_some_and(|annotations| annotations.contains_key(*key))
        {
            warnings.push(format!("{}: {message}", annotations.key(key)));
        }
    }

    for (index, volume) in items(&spec.volumes).iter().enumerate() {
        warn_deprecated_volume(volume, &place.field("volumes").index(index), warnings);
    }

    paths::overlapping(items(&spec.volumes), warnings);
    warn_duplicates(spec, &place, warnings);
    warn_fractions(
        spec.overhead.as_ref(),
        &["memory", "ephemeral-storage"],
        &place.field("overhead"),
        warnings,
    );

    containers::containers(spec, metadata, &place, &annotations, is_template, warnings);
    ports::ports(spec, &place, warnings);

    if spec
        .termination_grace_period_seconds
        .is_some_and(|seconds| seconds < 0)
    {
        let place = place.field("terminationGracePeriodSeconds");
        warnings.push(format!(
            "{place}: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }

    warn_pod_affinity(spec.affinity.as_ref(), &place.field("affinity"), warnings);
    warn_addresses(spec, &place, warnings);
}

fn warn_node_affinity(affinity: Option<&Affinity>, at: &Path<'_>, warnings: &mut Gathered) {
    let Some(nodes) = affinity.and_then(|affinity| affinity.node_affinity.as_ref()) else {
        return;
    };
    let required = &nodes.required_during_scheduling_ignored_during_execution;

    let terms = required
        .iter()
        .flat_map(|selector| &selector.node_selector_terms);
    for (index, term) in terms.enumerate() {
        let at = at.field(REQUIRED);
        let at = at.field("nodeSelectorTerms");
        warn_node_term(term, false, &at.index(index), warnings);
    }

    let preferred = items(&nodes.preferred_during_scheduling_ignored_during_execution);
    for (index, term) in preferred.iter().enumerate() {
        let at = at.field(PREFERRED);
        warn_node_term(
            &term.preference,
            true,
            &at.index(index).field("preference"),
            warnings,
        );
    }
}

/// Warns about values where they are not refused.
fn warn_node_term(term: &NodeSelectorTerm, values: bool, at: &Path<'_>, warnings: &mut Gathered) {
    for (index, expression) in items(&term.match_expressions).iter().enumerate() {
        let at = at.field("matchExpressions");
        let at = at.index(index);
        if let Some(message) = deprecated_label(&expression.key) {
            warnings.push(format!(
                "{}: {} is {message}",
                at.field("key"),
                expression.key
            ));
        }

        for (index, value) in items(&expression.values)
            .iter()
            .enumerate()
            .filter(|_| values)
        {
            for message in label_value(value) {
                let place = at.field("values");
                warnings.push(format!(
                    "{}: {value} is invalid, {message}",
                    place.index(index)
                ));
            }
        }
    }
}

fn warn_spread(spec: &PodSpec, at: &Path<'_>, warnings: &mut Gathered) {
    for (index, constraint) in items(&spec.topology_spread_constraints).iter().enumerate() {
        let at = at.index(index);
        let key = &constraint.topology_key;
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {message}", at.field("topologyKey")));
        }
        if constraint.label_selector.is_none() {
            warnings.push(format!("{}: {NO_SELECTOR}", at.field("labelSelector")));
        }
    }
}

fn warn_deprecated_volume(volume: &Volume, at: &Path<'_>, warnings: &mut Gathered) {
    let mut old = |given: bool, name: &str, message: &str| {
        if given {
            warnings.push(format!("{}: {message}", at.field(name)));
        }
    };

    old(
        volume.photon_persistent_disk.is_some(),
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    );

    old(
        volume.git_repo.is_some(),
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    );

    old(
        volume.scale_io.is_some(),
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    );

    old(
        volume.flocker.is_some(),
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    );

    old(
        volume.storageos.is_some(),
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    );

    old(
        volume.quobyte.is_some(),
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    );

    old(
        volume.glusterfs.is_some(),
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    );

    if let Some(template) = volume
        .ephemeral
        .as_ref()
        .and_then(|source| source.volume_claim_template.as_ref())
    {
        let at = at.field("ephemeral");
        let at = at.field("volumeClaimTemplate");
        let at = at.field("spec");
        let resources = template.spec.resources.as_ref();
        let limits = resources.and_then(|resources| resources.limits.as_ref());

        let requests = resources.and_then(|resources| resources.requests.as_ref());
        warn_fractions(
            requests,
            &["storage"],
            &at.field("resources").field("requests"),
            warnings,
        );

        warn_fractions(
            limits,
            &["storage"],
            &at.field("resources").field("limits"),
            warnings,
        );
    }

    let mut old = |given: bool, name: &str| {
        if given {
            warnings.push(format!(
                "{}: deprecated in v1.28, non-functional in v1.31+",
                at.field(name)
            ));
        }
    };

    old(volume.cephfs.is_some(), "cephfs");
    old(volume.rbd.is_some(), "rbd");
}

/// Warns about duplicate aliases and secrets.
fn warn_duplicates(spec: &PodSpec, at: &Path<'_>, warnings: &mut Gathered) {
    let mut seen = BTreeSet::new();
    for (index, alias) in items(&spec.host_aliases).iter().enumerate() {
        if !seen.insert(&alias.ip) {
            let at = at.field("hostAliases");
            warnings.push(format!(
                "{}: duplicate ip {}",
                at.index(index).field("ip"),
                Quoted(&alias.ip)
            ));
        }
    }

    let at = at.field("imagePullSecrets");
    let secrets = items(&spec.image_pull_secrets);

    let mut seen = BTreeSet::new();
    for (index, secret) in secrets.iter().enumerate() {
        if !seen.insert(&secret.name) {
            warnings.push(format!(
                "{}: duplicate name {}",
                at.index(index).field("name"),
                Quoted(&secret.name)
            ));
        }
    }

    for (index, _) in secrets
        .iter()
        .enumerate()
        .filter(|(_, secret)| secret.name.is_empty())
    {
        warnings.push(format!(
            "{}: invalid empty name \"\"",
            at.index(index).field("name")
        ));
    }
}

/// Warns about fractional amounts of bytes.
fn warn_fractions(
    amounts: Option<&Amounts>,
    names: &[&str],
    at: &Path<'_>,
    warnings: &mut Gathered,
) {
    for name in names {
        let found: Option<Quantity> = amounts.and_then(|amounts| amounts.get(*name)).map(read);
        if let Some(found) = found.filter(|found| found.milli_value() % 1000 != 0) {
            let shown = found.to_string();
            let place = at.key(name);
            warnings.push(format!(
                "{place}: fractional byte value {} is invalid, must be an integer",
                Quoted(&shown)
            ));
        }
    }
}

fn warn_pod_affinity(affinity: Option<&Affinity>, at: &Path<'_>, warnings: &mut Gathered) {
    let Some(affinity) = affinity else { return };
    if let Some(pods) = &affinity.pod_affinity {
        let required = items(&pods.required_during_scheduling_ignored_during_execution);
        let preferred = items(&pods.preferred_during_scheduling_ignored_during_execution);
        warn_missing_selectors(required, preferred, &at.field("podAffinity"), warnings);
    }
    if let Some(pods) = &affinity.pod_anti_affinity {
        let required = items(&pods.required_during_scheduling_ignored_during_execution);
        let preferred = items(&pods.preferred_during_scheduling_ignored_during_execution);
        warn_missing_selectors(required, preferred, &at.field("podAntiAffinity"), warnings);
    }
}

fn warn_missing_selectors(
    required: &[PodAffinityTerm],
    preferred: &[WeightedPodAffinityTerm],
    at: &Path<'_>,
    warnings: &mut Gathered,
) {
    for (index, _) in required
        .iter()
        .enumerate()
        .filter(|(_, term)| term.label_selector.is_none())
    {
        let at = at.field(REQUIRED);
        warnings.push(format!(
            "{}: {NO_SELECTOR}",
            at.index(index).field("labelSelector")
        ));
    }

    for (index, term) in preferred.iter().enumerate() {
        if term.pod_affinity_term.label_selector.is_none() {
            let at = at.field(PREFERRED);
            let at = at.index(index);
            warnings.push(format!(
                "{}: {NO_SELECTOR}",
                at.field("podAffinityTerm").field("labelSelector")
            ));
        }
    }
}

fn warn_addresses(spec: &PodSpec, at: &Path<'_>, warnings: &mut Gathered) {
    let servers = spec
        .dns_config
        .iter()
        .flat_map(|config| items(&config.nameservers));

    for (index, server) in servers.enumerate() {
        let at = at.field("dnsConfig");
        warnings.extend(ip::warning(server, &at.field("nameservers").index(index)));
    }

    for (index, alias) in items(&spec.host_aliases).iter().enumerate() {
        let at = at.field("hostAliases");
        warnings.extend(ip::warning(&alias.ip, &at.index(index).field("ip")));
    }
}

/// The warning for a deprecated node label.
pub(crate) fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

const DEPRECATED_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
