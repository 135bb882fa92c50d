//! Whether a rule of a flow schema matches a request.

use k8s_openapi::api::flowcontrol::v1::{
    NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject,
};

use crate::authn::User;
use crate::request::{RequestInfo, Target};

pub(super) fn covers(rule: &PolicyRulesWithSubjects, user: &User, request: &RequestInfo) -> bool {
    rule.subjects.iter().any(|subject| names(subject, user))
        && match &request.target {
            Some(target) => rule
                .resource_rules
                .iter()
                .flatten()
                .any(|rule| covers_resource(rule, request.verb.as_str(), target)),
            None => rule
                .non_resource_rules
                .iter()
                .flatten()
                .any(|rule| covers_path(rule, request)),
        }
}

fn names(subject: &Subject, user: &User) -> bool {
    match (
        subject.kind.as_str(),
        &subject.user,
        &subject.group,
        &subject.service_account,
    ) {
        ("User", Some(wanted), ..) => wanted.name == "*" || wanted.name == user.name,
        ("Group", _, Some(wanted), _) => wanted.name == "*" || user.is_in(&wanted.name),
        ("ServiceAccount", .., Some(wanted)) => {
            let account = user
                .name
                .strip_prefix("system:serviceaccount:")
                .and_then(|rest| rest.split_once(':'));
            account.is_some_and(|(namespace, name)| {
                namespace == wanted.namespace && (wanted.name == "*" || name == wanted.name)
            })
        }
        _ => false,
    }
}

fn covers_resource(rule: &ResourcePolicyRule, verb: &str, target: &Target) -> bool {
    let resource = |wanted: &String| match target.subresource.as_str() {
        "" => *wanted == target.resource.as_str(),
        subresource => wanted.split_once('/') == Some((&target.resource, subresource)),
    };

    let in_scope = match target.namespace.as_str() {
        "" => rule.cluster_scope.unwrap_or_default(),
        namespace => contains(rule.namespaces.as_deref().unwrap_or_default(), namespace),
    };

    in_scope
        && contains(&rule.verbs, verb)
        && contains(&rule.api_groups, &target.group)
        && (is_wildcard(&rule.resources) || rule.resources.iter().any(resource))
}

/// `/a/*` and `/a` both cover what is below `/a`.
fn covers_path(rule: &NonResourcePolicyRule, request: &RequestInfo) -> bool {
    contains(&rule.verbs, request.verb.as_str())
        && rule.non_resource_urls.iter().any(|wanted| {
            wanted == "*" || *wanted == request.path || {
                let prefix = wanted.strip_suffix('*').unwrap_or(wanted);
                let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
                request
                    .path
                    .strip_prefix(prefix)
                    .is_some_and(|rest| rest.starts_with('/'))
            }
        })
}

fn contains(list: &[String], wanted: &str) -> bool {
    is_wildcard(list) || list.iter().any(|one| one == wanted)
}

fn is_wildcard(list: &[String]) -> bool {
    matches!(list, [only] if only == "*")
}
