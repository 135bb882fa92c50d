//! Which address families a Service has: the requested ones, as far as the cluster has them.

use coracle_api::go_text::Quoted;
use coracle_api::{Path, field_error::FieldError, ip};
use k8s_openapi::api::core::v1::ServiceSpec;

use super::addresses::Ranges;
use super::spec::{NONE, SpecExt};
use super::validate::{list, validate_cluster_ips};
use crate::strategy::{Errors, SPEC};

pub(super) const V4: &str = "IPv4";
pub(super) const V6: &str = "IPv6";
const SINGLE: &str = "SingleStack";
const PREFER_DUAL: &str = "PreferDualStack";
const REQUIRE_DUAL: &str = "RequireDualStack";

pub(super) fn family_of(address: &str) -> &'static str {
    if ip::is_v6(address) { V6 } else { V4 }
}

fn other(family: &str) -> &'static str {
    if family == V4 { V6 } else { V4 }
}

/// A Service that prefers two families and changes none of this is left as it is, regardless of the
/// cluster's current families.
pub(super) fn is_settled(new: &ServiceSpec, old: Option<&ServiceSpec>) -> bool {
    let Some(old) = old else { return false };
    let prefers = |spec: &ServiceSpec| spec.policy() == PREFER_DUAL;
    new.ip_family_policy.is_some()
        && old.type_ == new.type_
        && new.needs_cluster_ip()
        && prefers(new)
        && (prefers(old) || old.ip_family_policy.is_none())
        && old.cluster_ips() == new.cluster_ips()
        && old.families() == new.families()
}

/// Fills in policy and families.
///
/// # Errors
/// The request contradicts itself or the cluster.
pub(super) fn settle(
    new: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
    ranges: &Ranges,
) -> Result<(), Errors> {
    if !new.needs_cluster_ip() || is_settled(new, old) {
        return Ok(());
    }

    let free_standing = new.cluster_ip() == NONE && !new.has_selector();
    if new.ip_family_policy.is_none() {
        new.ip_family_policy = match old.and_then(|old| old.ip_family_policy.clone()) {
            Some(policy) => Some(policy),
            None => Some(if free_standing { REQUIRE_DUAL } else { SINGLE }.to_string()),
        };
    }

    let mut errors = Errors::new();
    validate_cluster_ips(new, old, &mut errors);

    if !errors.is_empty() {
        return Err(errors);
    }

    check_policy(new, old, &mut errors);
    follow_addresses(new, ranges, &mut errors);

    if !errors.is_empty() {
        return Err(errors);
    }

    if free_standing {
        let families = new.ip_families.get_or_insert_default();
        if families.is_empty() {
            families.push(ranges.primary().to_string());
        }
        add_second(new);
        return Ok(());
    }

    check_cluster(new, ranges, &mut errors);

    if !errors.is_empty() {
        return Err(errors);
    }

    let families = new.ip_families.get_or_insert_default();
    if families.is_empty() {
        families.push(ranges.primary().to_string());
    }

    if ranges.families().count() == 2 {
        add_second(new);
    }

    Ok(())
}

fn add_second(new: &mut ServiceSpec) {
    if new.policy() != SINGLE
        && let Some([first]) = new.ip_families.as_deref()
    {
        let second = other(first).to_string();
        new.ip_families.get_or_insert_default().push(second);
    }
}

/// Validates the policy against the other fields and the old Service.
fn check_policy(new: &mut ServiceSpec, old: Option<&ServiceSpec>, errors: &mut Errors) {
    let policy = Quoted(new.policy()).to_string();
    let at = SPEC.field("ipFamilyPolicy");

    let mut refuse = |why: &str| errors.push(FieldError::invalid(&at, policy.clone(), why));
    if let Some(old) = old {
        if new.policy() == SINGLE {
            // Nothing else was changed: the client releases the second of each.
            if old.cluster_ips() == new.cluster_ips() {
                new.cluster_ips.iter_mut().for_each(|list| list.truncate(1));
            }
            if old.families() == new.families() {
                new.ip_families.iter_mut().for_each(|list| list.truncate(1));
            }
        } else {
            let reduced = |new: &[String], old: &[String]| !new.is_empty() && new.len() < old.len();
            if reduced(new.cluster_ips(), old.cluster_ips()) {
                refuse("must be 'SingleStack' to release the secondary cluster IP");
            }
            if reduced(new.families(), old.families()) {
                refuse("must be 'SingleStack' to release the secondary IP family");
            }
        }
    }

    if new.policy() == SINGLE {
        if new.cluster_ips().len() == 2 {
            refuse(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified",
            );
        }

        if new.families().len() == 2 {
            refuse(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
            );
        }
    }
}

/// Sets the families from the given addresses.
fn follow_addresses(new: &mut ServiceSpec, ranges: &Ranges, errors: &mut Errors) {
    let addresses = new.cluster_ips().to_vec();
    for (place, address) in addresses
        .iter()
        .enumerate()
        .take_while(|(_, address)| *address != NONE)
    {
        if place < new.families().len() {
            continue;
        }

        let family = family_of(address);
        if ranges.families().any(|known| known == family) {
            new.ip_families
                .get_or_insert_default()
                .push(family.to_string());
        } else {
            let at = SPEC.field("clusterIPs");
            let why = format!("{family} is not configured on this cluster");
            errors.push(FieldError::invalid(&at.index(place), list(&addresses), why));
        }
    }
}

fn check_cluster(new: &ServiceSpec, ranges: &Ranges, errors: &mut Errors) {
    if new.policy() == REQUIRE_DUAL && ranges.families().count() < 2 {
        let shown = Quoted(new.policy()).to_string();
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(
            &SPEC.field("ipFamilyPolicy"),
            shown,
            why,
        ));
    }

    let at: Path<'_> = SPEC.field("ipFamilies");
    for (place, family) in new.families().iter().enumerate() {
        if !ranges.families().any(|known| known == family) {
            errors.push(FieldError::invalid_str(
                &at.index(place),
                family,
                "not configured on this cluster",
            ));
        }
    }
}
