//! The status of a Service: where its load balancer is.

use coracle_api::field_error::FieldError;
use coracle_api::{Path, ip, names};
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};

use super::spec::SpecExt;
use crate::strategy::Errors;

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");
const LOAD_BALANCER: Path<'static> = Path::Field(&STATUS, "loadBalancer");
const INGRESS: Path<'static> = Path::Field(&LOAD_BALANCER, "ingress");

fn ingress(service: &Service) -> &[LoadBalancerIngress] {
    let status = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    status
        .and_then(|status| status.ingress.as_deref())
        .unwrap_or_default()
}

pub(super) fn validate(new: &Service, old: &Service, errors: &mut Errors) {
    let balanced = new
        .spec
        .as_ref()
        .is_some_and(|spec| spec.is("LoadBalancer"));

    if !balanced && !ingress(new).is_empty() {
        errors.push(FieldError::forbidden(
            &INGRESS,
            "may only be used when `spec.type` is 'LoadBalancer'",
        ));
        return;
    }

    let known: Vec<String> = ingress(old)
        .iter()
        .filter_map(|point| point.ip.clone())
        .collect();

    for (place, point) in ingress(new).iter().enumerate() {
        let at = INGRESS.index(place);
        let address = point.ip.as_deref().unwrap_or_default();
        if !address.is_empty() {
            ip::check(address, &known, &at.field("ip"), errors);
        }

        match (&point.ip_mode, address.is_empty()) {
            (None, false) => {
                errors.push(FieldError::required(
                    &at.field("ipMode"),
                    "must be specified when `ip` is set",
                ));
            }
            (Some(_), true) => {
                let why = "may not be specified when `ip` is not set";
                errors.push(FieldError::forbidden(&at.field("ipMode"), why));
            }
            (Some(mode), false) if mode != "Proxy" && mode != "VIP" => {
                errors.push(FieldError::not_supported(
                    &at.field("ipMode"),
                    mode,
                    &["Proxy", "VIP"],
                ));
            }
            _ => {}
        }

        let host = point.hostname.as_deref().unwrap_or_default();
        if !host.is_empty() {
            let at = at.field("hostname");
            let wrong = names::dns1123_subdomain(host).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid_str(&at, host, why)));

            if ip::parse(host).is_some() {
                errors.push(FieldError::invalid_str(
                    &at,
                    host,
                    "must be a DNS name, not an IP address",
                ));
            }
        }
    }
}

pub(super) fn warnings(new: &Service) -> Vec<String> {
    let points = ingress(new).iter().enumerate();
    points
        .filter_map(|(place, point)| ip::warning(point.ip.as_deref()?, &INGRESS.index(place)))
        .collect()
}
