//! ServiceCIDR: the address ranges of services. A second family may be added, nothing else changes.

use coracle_api::field_error::FieldError;
use coracle_api::ip::Network;
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, ip};
use k8s_openapi::api::networking::v1::ServiceCIDR;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, items};
use crate::{Part, keep_metadata};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ServiceCidrs,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct ServiceCidrs;

impl Strategy for ServiceCidrs {
    type Object = ServiceCIDR;

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(&self, new: &View<'_, ServiceCIDR>, _: &Context<'_>, errors: &mut Errors) {
        validate_networks(networks(new), &SPEC.field("cidrs"), errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ServiceCIDR>,
        old: &View<'_, ServiceCIDR>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            return;
        }

        let at = SPEC.field("cidrs");
        let (now, before) = (networks(new), networks(old));
        let mut kept = |count: usize| {
            for (index, network) in now.iter().enumerate().take(count) {
                if *network != before[index] {
                    errors.push(FieldError::invalid_str(
                        &at.index(index),
                        network,
                        IMMUTABLE,
                    ));
                }
            }
        };

        match (before.len(), now.len()) {
            (was, is) if was == is => kept(was),
            (1, 2) => {
                kept(1);
                validate_networks(now, &at, errors);
            }
            _ => {
                let found = new.spec.as_ref().and_then(|spec| spec.cidrs.as_deref());
                errors.push(FieldError::invalid(&at, internal::texts(found), IMMUTABLE));
            }
        }
    }
}

fn networks<'a>(cidr: &'a View<'_, ServiceCIDR>) -> &'a [String] {
    cidr.spec
        .as_ref()
        .map(|spec| items(&spec.cidrs))
        .unwrap_or_default()
}

fn validate_networks(networks: &[String], at: &Path<'_>, errors: &mut Errors) {
    match networks.len() {
        0 => return errors.push(FieldError::required(at, "at least one CIDR required")),
        1 | 2 => {}
        _ => {
            let shown = internal::object(&[("CIDRs", internal::texts(Some(networks)))]);
            return errors.push(FieldError::invalid(
                at,
                shown,
                "may only hold up to 2 values",
            ));
        }
    }

    for (index, network) in networks.iter().enumerate() {
        ip::check_canonical_network(network, &at.index(index), errors);
    }

    let families: Vec<bool> = networks
        .iter()
        .filter_map(|network| Network::parse(network))
        .map(|network| network.address.is_ipv6())
        .collect();

    if matches!(families.as_slice(), [one, other] if one == other) {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(
            at,
            internal::texts(Some(networks)),
            detail,
        ));
    }
}

fn print_row(range: &ServiceCIDR, now: Timestamp) -> Row {
    let cidrs = range
        .spec
        .as_ref()
        .and_then(|spec| spec.cidrs.as_deref())
        .unwrap_or_default();
    row![
        cells::name(&range.metadata),
        cidrs.join(","),
        cells::age(&range.metadata, now)
    ]
}
