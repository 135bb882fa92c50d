//! `dnsConfig`.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::ip;
use coracle_api::names::dns1123_subdomain_with_underscore;
use k8s_openapi::api::core::v1::PodDNSConfig;

use crate::strategy::Errors;
use crate::validate::internal::texts;
use crate::validate::{items, text};

/// Bounds that the resolver of the C library sets.
const NAMESERVERS: usize = 3;
const SEARCHES: usize = 32;
const SEARCH_CHARACTERS: usize = 2048;

pub(super) fn validate_dns_config(
    config: Option<&PodDNSConfig>,
    policy: &str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if policy == "None" {
        let Some(config) = config else {
            errors.push(FieldError::required(
                at,
                "must provide `dnsConfig` when `dnsPolicy` is None",
            ));
            return;
        };

        if items(&config.nameservers).is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(&at.field("nameservers"), detail));
            return;
        }
    }

    let Some(config) = config else { return };
    validate_nameservers(items(&config.nameservers), &at.field("nameservers"), errors);
    validate_searches(items(&config.searches), &at.field("searches"), errors);

    for (index, option) in items(&config.options).iter().enumerate() {
        if text(&option.name).is_empty() {
            errors.push(FieldError::required(
                &at.field("options").index(index),
                "must not be empty",
            ));
        }
    }
}

fn validate_nameservers(servers: &[String], at: &Path<'_>, errors: &mut Errors) {
    if servers.len() > NAMESERVERS {
        let detail = format!("must not have more than {NAMESERVERS} nameservers");
        errors.push(FieldError::invalid(at, texts(Some(servers)), detail));
    }
    for (index, server) in servers.iter().enumerate() {
        ip::check(server, &[], &at.index(index), errors);
    }
}

fn validate_searches(searches: &[String], at: &Path<'_>, errors: &mut Errors) {
    if searches.len() > SEARCHES {
        let detail = format!("must not have more than {SEARCHES} search paths");
        errors.push(FieldError::invalid(at, texts(Some(searches)), detail));
    }

    if searches.join(" ").len() > SEARCH_CHARACTERS {
        let detail = format!(
            "must not have more than {SEARCH_CHARACTERS} characters (including spaces) in the search list"
        );
        errors.push(FieldError::invalid(at, texts(Some(searches)), detail));
    }

    for (index, search) in searches
        .iter()
        .enumerate()
        .filter(|(_, search)| *search != ".")
    {
        let search = search.strip_suffix('.').unwrap_or(search);
        refuse(
            &at.index(index),
            search,
            dns1123_subdomain_with_underscore(search),
            errors,
        );
    }
}
