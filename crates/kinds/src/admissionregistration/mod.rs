//! Kinds of `admissionregistration.k8s.io`: webhooks and policies that change or refuse writes.
//!
//! What they say is done by the admission plugins of their names. `rules` has the match rules that all
//! of them share.

pub(crate) mod binding;
mod expressions;
mod param_access;
mod params;
pub(crate) mod policy;
#[cfg(test)]
mod print_tests;
mod rules;
pub(crate) mod webhook;
mod webhook_url;

pub(super) use webhook_url::{validate_service, validate_url};

use coracle_api::{Value, names};

use crate::OwnMetadata;

/// Finalizers may have any name, and a change of metadata is validated for every kind.
const OWN: OwnMetadata = OwnMetadata {
    known_finalizers: false,
    on_update: false,
    ..OwnMetadata::named(names::dns1123_subdomain)
};

/// Warnings that all of these kinds return.
fn warnings(object: &Value) -> Vec<String> {
    if !object.meta().name().ends_with(STATIC_SUFFIX) {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: names ending with \"{STATIC_SUFFIX}\" are reserved for static manifest-based configurations and cannot be managed via the API"
    )]
}

const STATIC_SUFFIX: &str = ".static.k8s.io";
