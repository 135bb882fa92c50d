//! Node: a machine. A new node may have a status; its provider ID and pod networks cannot change
//! once they are set.

mod annotations;
mod config_source;
mod print;

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::field_error::{FieldError, FieldErrorKind, as_json};
use coracle_api::ip::{self, Network};
use coracle_api::{Path, Value, names};
use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, items, resources, taints, text};
use crate::{OwnMetadata, Part};

const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");
const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Nodes,
    printer: printer!(print::print_row),
    ..Behaviour::DEFAULT
};

struct Nodes;

impl Strategy for Nodes {
    type Object = Node;

    /// On an update of the node itself it is validated as new first.
    fn own_metadata(&self, part: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: part == Part::Status,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn keeps_status(&self) -> bool {
        true
    }

    fn validate(&self, new: &View<'_, Node>, _: &Context<'_>, errors: &mut Errors) {
        annotations::validate(new.tree.meta(), &METADATA.field("annotations"), errors);
        validate_taints(new, errors);
        validate_resources(new, errors);

        if let Some(swap) = new
            .status
            .as_ref()
            .and_then(swap_capacity)
            .filter(|capacity| *capacity <= 0)
        {
            let at = METADATA.field("nodeSwapStatus.capacity");
            errors.push(FieldError::invalid(
                &at,
                swap.to_string(),
                "must be greater than zero",
            ));
        }

        validate_features(new, errors);
        validate_networks(networks(new), errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, Node>,
        old: &View<'_, Node>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part != Part::Status {
            self.validate_anew(new, cx, errors);
            self.own_metadata(cx.part)
                .validate_change(new.tree, old.tree, errors);
        }

        annotations::validate(new.tree.meta(), &METADATA.field("annotations"), errors);
        validate_resources(new, errors);
        validate_features(new, errors);
        validate_addresses(new, errors);
        validate_kept(new, old, errors);

        if let Some(source) = new
            .spec
            .as_ref()
            .and_then(|spec| spec.config_source.as_ref())
        {
            config_source::validate_wanted(source, &SPEC.field("configSource"), errors);
        }

        if let Some(config) = new
            .status
            .as_ref()
            .and_then(|status| status.config.as_ref())
        {
            config_source::validate_status(config, &STATUS.field("config"), errors);
        }

        validate_taints(new, errors);

        if external_id(new) != external_id(old) {
            errors.push(FieldError::forbidden(
                &SPEC.field("externalID"),
                "may not be updated",
            ));
        }
    }

    fn warnings(
        &self,
        new: &View<'_, Node>,
        _: Option<&View<'_, Node>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if cx.part == Part::Status {
            return warnings;
        }

        if new
            .spec
            .as_ref()
            .is_some_and(|spec| spec.config_source.is_some())
        {
            warnings.push("spec.configSource: the feature is removed".to_owned());
        }

        if !external_id(new).is_empty() {
            warnings.push(
                "spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned(),
            );
        }

        let at = SPEC.field("podCIDRs");
        for (index, network) in networks(new).iter().enumerate() {
            warnings.extend(ip::network_warnings(network, &at.index(index)));
        }

        warnings
    }
}

fn networks<'a>(node: &'a View<'_, Node>) -> &'a [String] {
    node.spec
        .as_ref()
        .map(|spec| items(&spec.pod_cidrs))
        .unwrap_or_default()
}

fn external_id<'a>(node: &'a View<'_, Node>) -> &'a str {
    node.spec
        .as_ref()
        .map(|spec| text(&spec.external_id))
        .unwrap_or_default()
}

fn swap_capacity(status: &NodeStatus) -> Option<i64> {
    status.node_info.as_ref()?.swap.as_ref()?.capacity
}

fn validate_taints(node: &View<'_, Node>, errors: &mut Errors) {
    let found = node
        .tree
        .at(&["spec", "taints"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    // Upstream's path has them in metadata.
    taints::validate_node_taints(found, &METADATA.field("taints"), errors);
}

fn validate_resources(node: &Node, errors: &mut Errors) {
    let Some(status) = &node.status else { return };
    let mut validate = |name: &str, amounts: &Option<BTreeMap<String, Written>>| {
        for (resource, amount) in amounts.iter().flatten() {
            resources::validate_resource_amount(
                resource,
                amount,
                &STATUS.field(name).field(resource),
                errors,
            );
        }
    };

    validate("capacity", &status.capacity);
    validate("allocatable", &status.allocatable);
}

/// Validates the declared features: sorted, without duplicates.
fn validate_features(node: &Node, errors: &mut Errors) {
    let at = STATUS.field("declaredFeatures");
    let features = node
        .status
        .as_ref()
        .map(|status| items(&status.declared_features))
        .unwrap_or_default();

    for (index, feature) in features.iter().enumerate() {
        if let Some(fault) = feature_fault(feature) {
            let detail = format!("invalid feature name {}: {fault}", internal::text(feature));
            errors.push(FieldError::invalid_str(&at.index(index), feature, detail));
        }

        let Some(next) = features.get(index + 1) else {
            continue;
        };

        let at = at.index(index + 1);
        if feature == next {
            errors.push(FieldError::duplicate(&at, internal::text(next)));
        } else if feature > next {
            errors.push(FieldError::invalid_str(
                &at,
                next,
                "list must be sorted alphabetically",
            ));
        }
    }
}

fn feature_fault(feature: &str) -> Option<&'static str> {
    if feature.len() > 253 {
        return Some("must be no more than 253 characters");
    }

    let mut segments = feature.split('/');
    let is_word = |segment: &str, first: fn(&u8) -> bool| {
        segment.as_bytes().first().is_some_and(first)
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };

    let named = segments
        .next()
        .is_some_and(|first| is_word(first, u8::is_ascii_uppercase))
        && segments.all(|segment| is_word(segment, u8::is_ascii_alphabetic));

    (!named).then_some("must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes")
}

fn validate_networks(networks: &[String], errors: &mut Errors) {
    let at = SPEC.field("podCIDRs");
    for (index, network) in networks.iter().enumerate() {
        ip::check_network(network, &[], &at.index(index), errors);
    }

    if networks.len() < 2 {
        return;
    }

    let read: Vec<Option<Network>> = networks
        .iter()
        .map(|network| Network::parse(network))
        .collect();

    if let Some(bad) = read.iter().position(Option::is_none) {
        let found = &networks[bad];
        errors.push(FieldError {
            kind: FieldErrorKind::Internal,
            field: at.to_string(),
            bad_value: None,
            detail: format!(
                "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{bad}]: <nil> (invalid CIDR address: {found})"
            ),
        });
    }

    let families: BTreeSet<bool> = read
        .iter()
        .flatten()
        .map(|network| network.address.is_ipv6())
        .collect();

    if read.iter().any(Option::is_none) || families.len() != 2 || networks.len() > 2 {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(
            &at,
            internal::texts(Some(networks)),
            detail,
        ));
    }
}

fn validate_addresses(node: &View<'_, Node>, errors: &mut Errors) {
    let at = STATUS.field("addresses");
    let mut seen = BTreeSet::new();
    let addresses = node
        .status
        .as_ref()
        .map(|status| items(&status.addresses))
        .unwrap_or_default();

    for (index, address) in addresses.iter().enumerate() {
        if !seen.insert((&address.type_, &address.address)) {
            let shown = internal::object(&[
                ("Type", internal::text(&address.type_)),
                ("Address", internal::text(&address.address)),
            ]);
            errors.push(FieldError::duplicate(&at.index(index), shown));
        }
    }
}

/// Validates fields that are set once.
fn validate_kept(new: &View<'_, Node>, old: &View<'_, Node>, errors: &mut Errors) {
    let (now, before) = (networks(new), networks(old));
    let changes = match before.len() {
        0 => 0,
        count if count != now.len() => 1,
        _ => now
            .iter()
            .zip(before)
            .filter(|(now, before)| now != before)
            .count(),
    };

    for _ in 0..changes {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(FieldError::forbidden(&SPEC.field("podCIDRs"), detail));
    }

    let provider = |node: &View<'_, Node>| node.tree.at(&["spec", "providerID"]).map(as_json);
    if provider(old).is_some() && provider(old) != provider(new) {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&SPEC.field("providerID"), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::check_causes;

    #[test]
    fn a_node_has_one_network_of_each_family() {
        let check = |networks: &[&str], expected: &[&str]| {
            let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
            let mut errors = Errors::new();
            validate_networks(&networks, &mut errors);
            check_causes(&errors, expected);
        };

        check(&["10.0.0.0/24", "fd00::/64"], &[]);
        check(
            &["10.0.0.1/24"],
            &["spec.podCIDRs[0]: Invalid value: \"10.0.0.1/24\": must not have bits set"],
        );

        check(
            &["10.0.0.0/24", "10.1.0.0/24"],
            &["spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may"],
        );

        check(
            &["10.0.0.0/24", "x"],
            &[
                "spec.podCIDRs[1]: Invalid value: \"x\": must be a valid CIDR value",
                "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[1]: <nil> (invalid CIDR address: x)",
                "spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"x\"]: may specify no more",
            ],
        );
    }

    #[test]
    fn feature_names_are_in_camel_case() {
        let check =
            |name: &str, good: bool| assert_eq!(feature_fault(name).is_none(), good, "{name}");
        check("MyFeature", true);
        check("MyFeature/mySub/Sub2", true);
        for bad in ["", "myFeature", "My-Feature", "My/", "My/1x"] {
            check(bad, false);
        }
    }
}
