//! Which requests concern a policy or a webhook.
//!
//! Both are configured in the same way: rules name resources and operations, selectors look at the
//! labels of the object and of its namespace. [`Criteria`] is such a configuration, read once when
//! it changes. A request is a [`Question`]; the answer is the resource and the kind whose objects the
//! policy or webhook wants to see: those of the request, or with `matchPolicy: Equivalent` those of
//! another version or group that shows the same objects ([`equivalent`]). Pure, but for the
//! namespace, which is looked up when a selector needs it.

mod criteria;
pub mod equivalent;
mod question;
mod rule;

pub use criteria::Criteria;
pub use question::{Match, Question};
pub use rule::{Rule, Scope};

use super::Attributes;

/// The kinds that configure admission.
const CONFIGURATION: [&str; 6] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];

/// Whether webhooks are never asked about the object: it configures admission.
pub fn is_exempt_from_webhooks(attributes: &Attributes<'_>) -> bool {
    let resource = attributes.cx.resource;
    resource.group == "admissionregistration.k8s.io"
        && CONFIGURATION.contains(&resource.plural.as_str())
}

/// Whether policies never apply to the object: it is one, or a review.
pub fn is_exempt_from_policies(attributes: &Attributes<'_>) -> bool {
    let resource = attributes.cx.resource;
    match resource.group.as_str() {
        "admissionregistration.k8s.io" => {
            CONFIGURATION.contains(&resource.plural.as_str())
                && !resource.plural.ends_with("webhookconfigurations")
        }
        "authentication.k8s.io" => {
            matches!(
                resource.plural.as_str(),
                "selfsubjectreviews" | "tokenreviews"
            )
        }
        "authorization.k8s.io" => matches!(
            resource.plural.as_str(),
            "localsubjectaccessreviews"
                | "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
        ),
        _ => false,
    }
}
