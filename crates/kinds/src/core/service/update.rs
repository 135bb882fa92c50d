//! Validates a change of a Service: primary address and family never change, secondary ones may be
//! added and removed.

use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{Service, ServiceSpec};

use super::spec::SpecExt;
use super::validate::{list, validate_load_balancer_class};
use crate::strategy::{Errors, SPEC};

const UNCHANGEABLE: &str = "may not change once set";

pub(super) fn validate(new: &Service, old: &Service, errors: &mut Errors) {
    let nothing = ServiceSpec::default();
    let (new, old) = (
        new.spec.as_ref().unwrap_or(&nothing),
        old.spec.as_ref().unwrap_or(&nothing),
    );

    if new.needs_cluster_ip() && old.needs_cluster_ip() {
        validate_addresses(new, old, errors);
        validate_families(new, old, errors);
    }

    if new.is("LoadBalancer")
        && old.is("LoadBalancer")
        && new.load_balancer_class != old.load_balancer_class
    {
        let shown = new
            .load_balancer_class
            .as_ref()
            .map_or("null".into(), |class| Quoted(class).to_string());

        errors.push(FieldError::invalid(
            &SPEC.field("loadBalancerClass"),
            shown,
            UNCHANGEABLE,
        ));
    }

    validate_load_balancer_class(new, errors);

    if new.needs_health_check()
        && old.needs_health_check()
        && new.health_check_node_port != old.health_check_node_port
    {
        errors.push(FieldError::forbidden(
            &SPEC.field("healthCheckNodePort"),
            "field is immutable",
        ));
    }
}

fn validate_single(new: &ServiceSpec, what: &str, errors: &mut Errors) {
    if new.policy() != "SingleStack" {
        let shown = new
            .ip_family_policy
            .as_ref()
            .map_or("null".into(), |policy| Quoted(policy).to_string());

        let why = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        errors.push(FieldError::invalid(
            &SPEC.field("ipFamilyPolicy"),
            shown,
            why,
        ));
    }
}

fn validate_addresses(new: &ServiceSpec, old: &ServiceSpec, errors: &mut Errors) {
    if new.is_headless() && old.is_headless() {
        return;
    }

    let at = SPEC.field("clusterIPs");
    let (now, before) = (new.cluster_ips(), old.cluster_ips());

    let mut refuse =
        |place, why: &str| errors.push(FieldError::invalid(&at.index(place), list(now), why));
    if now.len() == before.len() {
        let changed = now
            .iter()
            .zip(before)
            .enumerate()
            .filter(|(_, (now, before))| now != before);
        changed.for_each(|(place, _)| refuse(place, UNCHANGEABLE));
        return;
    }

    if now.is_empty() {
        refuse(0, "primary clusterIP can not be unset");
    }

    if let (Some(now), Some(before)) = (now.first(), before.first())
        && now != before
    {
        refuse(0, UNCHANGEABLE);
    }

    if now.len() < before.len() && now.len() == 1 {
        validate_single(new, "clusterIP", errors);
    }
}

fn validate_families(new: &ServiceSpec, old: &ServiceSpec, errors: &mut Errors) {
    // Headless Services may change their families.
    if new.is_headless() || old.is_headless() {
        return;
    }

    let at = SPEC.field("ipFamilies");
    let (now, before) = (new.families(), old.families());

    // Upstream's error shows the addresses where families were added or removed.
    let mut refuse = |shown: &[String], why: &str| {
        errors.push(FieldError::invalid(&at.index(0), list(shown), why))
    };
    if now.len() == before.len() {
        let changed = now.iter().zip(before).filter(|(now, before)| now != before);
        changed.for_each(|_| refuse(now, UNCHANGEABLE));
        return;
    }

    if now.len() < before.len() && new.cluster_ips().is_empty() {
        refuse(now, "primary ipFamily can not be unset");
    }

    if let (Some(now), Some(before)) = (now.first(), before.first())
        && now != before
    {
        refuse(new.cluster_ips(), UNCHANGEABLE);
    }

    if now.len() < before.len() && now.len() == 1 {
        validate_single(new, "ipFamily", errors);
    }
}
