//! The row of an Ingress.

use std::collections::BTreeSet;

use coracle_api::time::Timestamp;
use k8s_openapi::api::networking::v1::{Ingress, IngressRule};

use crate::render::table::Row;
use crate::render::table::cells::{NONE, age, name, or};

/// So many hosts are shown.
const FEW: usize = 3;

pub(super) fn row(ingress: &Ingress, now: Timestamp) -> Row {
    let spec = ingress.spec.as_ref();
    let has_tls = spec.is_some_and(|spec| spec.tls.iter().flatten().count() > 0);
    row![
        name(&ingress.metadata),
        spec.and_then(|spec| spec.ingress_class_name.as_deref())
            .unwrap_or(NONE),
        hosts(
            spec.and_then(|spec| spec.rules.as_deref())
                .unwrap_or_default()
        ),
        address(ingress),
        if has_tls { "80, 443" } else { "80" },
        age(&ingress.metadata, now)
    ]
}

/// The first hosts. What comes behind them is counted in rules, whether these have a host or not.
fn hosts(rules: &[IngressRule]) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        if shown.len() == FEW {
            more = true;
            break;
        }
        shown.extend(rule.host.as_deref().filter(|host| !host.is_empty()));
    }

    let hosts = shown.join(",");
    match hosts.as_str() {
        "" => "*".to_string(),
        _ if more => format!("{hosts} + {} more...", rules.len() - FEW),
        _ => hosts,
    }
}

/// Addresses of load balancers, or their names where they have no address.
fn address(ingress: &Ingress) -> String {
    let balancer = ingress
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());

    let points = balancer
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default();
    let points: BTreeSet<&str> = points
        .iter()
        .map(|point| {
            or(
                point.ip.as_deref(),
                point.hostname.as_deref().unwrap_or_default(),
            )
        })
        .filter(|point| !point.is_empty())
        .collect();

    points.into_iter().collect::<Vec<_>>().join(",")
}
