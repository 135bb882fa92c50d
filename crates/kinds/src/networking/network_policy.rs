//! NetworkPolicy: which pods may exchange traffic. Stored, but not enforced yet; a warning says so.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::ip::Network;
use coracle_api::selector::Values;
use coracle_api::time::Timestamp;
use coracle_api::{Path, ip, names, selector};
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, items};

const NOT_ENFORCED: &str = "NetworkPolicy is stored, but this cluster does not enforce it yet";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &NetworkPolicies,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct NetworkPolicies;

impl Strategy for NetworkPolicies {
    type Object = NetworkPolicy;

    fn validate(&self, new: &View<'_, NetworkPolicy>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(
            new,
            &OldFaults {
                values: Values::Validated,
                networks: Vec::new(),
            },
            errors,
        );
    }

    fn validate_update(
        &self,
        new: &View<'_, NetworkPolicy>,
        old: &View<'_, NetworkPolicy>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_spec(new, &OldFaults::of(old), errors);
    }

    fn warnings(
        &self,
        new: &View<'_, NetworkPolicy>,
        _: Option<&View<'_, NetworkPolicy>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if cx.keeps_object() {
            warnings.push(NOT_ENFORCED.to_owned());
        }

        let Some(spec) = &new.spec else {
            return warnings;
        };
        for rule in rules(spec) {
            for (index, peer) in rule.peers.iter().enumerate() {
                let Some(block) = &peer.ip_block else {
                    continue;
                };
                let at = Path::Root.field(&rule.at);
                let at = at.field(rule.peers_name);
                let at = at.index(index);
                let at = at.field("ipBlock");
                warnings.extend(ip::network_warnings(&block.cidr, &at.field("cidr")));

                for (index, except) in items(&block.except).iter().enumerate() {
                    warnings.extend(ip::network_warnings(
                        except,
                        &at.field("except").index(index),
                    ));
                }
            }
        }

        warnings
    }
}

/// Invalid fields that the old policy has already.
struct OldFaults {
    values: Values,
    /// The old CIDRs, which need not be canonical.
    networks: Vec<String>,
}

impl OldFaults {
    fn of(old: &NetworkPolicy) -> OldFaults {
        let Some(spec) = &old.spec else {
            return OldFaults {
                values: Values::Validated,
                networks: Vec::new(),
            };
        };

        let mut faults = Errors::new();
        selector::validate(
            spec.pod_selector.as_ref(),
            Values::Validated,
            &SPEC,
            &mut faults,
        );

        let rules = rules(spec);
        let blocks = rules
            .iter()
            .flat_map(|rule| rule.peers)
            .filter_map(|peer| peer.ip_block.as_ref());

        let networks =
            blocks.flat_map(|block| std::iter::once(&block.cidr).chain(items(&block.except)));

        OldFaults {
            values: if faults.is_empty() {
                Values::Validated
            } else {
                Values::Kept
            },
            networks: networks.cloned().collect(),
        }
    }
}

/// A rule of either direction.
struct Rule<'a> {
    at: String,
    ports: &'a [NetworkPolicyPort],
    peers: &'a [NetworkPolicyPeer],
    /// `from` or `to`.
    peers_name: &'static str,
}

/// Ingress rules, then egress rules.
fn rules(spec: &NetworkPolicySpec) -> Vec<Rule<'_>> {
    let incoming = items(&spec.ingress)
        .iter()
        .enumerate()
        .map(|(index, rule)| Rule {
            at: format!("spec.ingress[{index}]"),
            ports: items(&rule.ports),
            peers: items(&rule.from),
            peers_name: "from",
        });

    let outgoing = items(&spec.egress)
        .iter()
        .enumerate()
        .map(|(index, rule)| Rule {
            at: format!("spec.egress[{index}]"),
            ports: items(&rule.ports),
            peers: items(&rule.to),
            peers_name: "to",
        });

    incoming.chain(outgoing).collect()
}

fn validate_spec(policy: &NetworkPolicy, kept: &OldFaults, errors: &mut Errors) {
    let Some(spec) = &policy.spec else { return };
    selector::validate(
        spec.pod_selector.as_ref(),
        kept.values,
        &SPEC.field("podSelector"),
        errors,
    );

    for rule in rules(spec) {
        let at = Path::Root.field(&rule.at);
        for (index, port) in rule.ports.iter().enumerate() {
            validate_port(port, &at.field("ports").index(index), errors);
        }
        for (index, peer) in rule.peers.iter().enumerate() {
            validate_peer(peer, kept, &at.field(rule.peers_name).index(index), errors);
        }
    }

    let types = items(&spec.policy_types);
    let at = SPEC.field("policyTypes");
    if types.len() > 2 {
        let detail = "may not specify more than two policyTypes";
        return errors.push(FieldError::invalid(
            &at,
            internal::texts(Some(types)),
            detail,
        ));
    }

    for (index, found) in types.iter().enumerate() {
        if !matches!(found.as_str(), "Ingress" | "Egress") {
            errors.push(FieldError::not_supported(
                &at.index(index),
                found,
                &["Ingress", "Egress"],
            ));
        }
    }
}

fn validate_port(port: &NetworkPolicyPort, at: &Path<'_>, errors: &mut Errors) {
    let known = ["TCP", "UDP", "SCTP"];
    if let Some(protocol) = port
        .protocol
        .as_deref()
        .filter(|protocol| !known.contains(protocol))
    {
        errors.push(FieldError::not_supported(
            &at.field("protocol"),
            protocol,
            &known,
        ));
    }

    let number = |found: i32, name: &str, errors: &mut Errors| {
        let faults = names::port_number(found.into()).into_iter();
        errors.extend(
            faults.map(|fault| FieldError::invalid(&at.field(name), found.to_string(), fault)),
        );
    };

    let end = at.field("endPort");
    let no_end = |detail: &str, errors: &mut Errors| {
        errors.extend(
            port.end_port
                .map(|found| FieldError::invalid(&end, found.to_string(), detail)),
        );
    };

    match &port.port {
        None => no_end("may not be specified when `port` is not specified", errors),
        Some(IntOrString::String(name)) => {
            no_end("may not be specified when `port` is non-numeric", errors);
            refuse(&at.field("port"), name, names::port_name(name), errors);
        }
        Some(IntOrString::Int(first)) => {
            number(*first, "port", errors);
            let Some(last) = port.end_port else { return };
            if last < *first {
                let detail = "must be greater than or equal to `port`";
                errors.push(FieldError::invalid(&end, first.to_string(), detail));
            }
            number(last, "endPort", errors);
        }
    }
}

fn validate_peer(peer: &NetworkPolicyPeer, kept: &OldFaults, at: &Path<'_>, errors: &mut Errors) {
    let selectors = [
        ("podSelector", &peer.pod_selector),
        ("namespaceSelector", &peer.namespace_selector),
    ];

    for (name, found) in selectors {
        selector::validate(found.as_ref(), kept.values, &at.field(name), errors);
    }

    if let Some(block) = &peer.ip_block {
        validate_block(block, kept, &at.field("ipBlock"), errors);
    }

    let selects = selectors.iter().any(|(_, found)| found.is_some());
    match (selects, peer.ip_block.is_some()) {
        (false, false) => errors.push(FieldError::required(at, "must specify a peer")),
        (true, true) => {
            errors.push(FieldError::forbidden(
                at,
                "may not specify both ipBlock and another peer",
            ));
        }
        _ => {}
    }
}

fn validate_block(block: &IPBlock, kept: &OldFaults, at: &Path<'_>, errors: &mut Errors) {
    if block.cidr.is_empty() {
        return errors.push(FieldError::required(&at.field("cidr"), ""));
    }

    ip::check_network(&block.cidr, &kept.networks, &at.field("cidr"), errors);
    let Some(network) = Network::parse(&block.cidr) else {
        return;
    };
    for (index, found) in items(&block.except).iter().enumerate() {
        let at = at.field("except");
        let at = at.index(index);
        ip::check_network(found, &kept.networks, &at, errors);

        let Some(except) = Network::parse(found) else {
            continue;
        };
        if !network.contains(except.first()) || network.bits >= except.bits {
            errors.push(FieldError::invalid_str(
                &at,
                found,
                "must be a strict subset of `cidr`",
            ));
        }
    }
}

fn print_row(policy: &NetworkPolicy, now: Timestamp) -> Row {
    let pods = policy
        .spec
        .as_ref()
        .and_then(|spec| spec.pod_selector.as_ref());
    row![
        cells::name(&policy.metadata),
        cells::selector(pods),
        cells::age(&policy.metadata, now)
    ]
}
