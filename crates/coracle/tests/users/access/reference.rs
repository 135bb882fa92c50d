//! Reference evaluation of RBAC, without an index: checks every rule of every role of every
//! binding.

use crate::access::generated::{Policy, Request, Role, Rule, Subject, User};

pub(crate) fn allowed(policy: &Policy, user: &User, request: &Request) -> bool {
    policy.bindings.iter().any(|binding| {
        let speaks_of = match (binding.namespace, request) {
            (None, _) => true,
            (Some(here), Request::Resource { namespace, .. }) => here == *namespace,
            // A binding in a namespace gives nothing outside of resources.
            (Some(_), Request::Path { .. }) => false,
        };
        speaks_of
            && binding.subjects.iter().any(|subject| is(subject, user))
            && rules_of(policy, &policy.roles[binding.role]).any(|rule| covers(rule, request))
    })
}

/// An aggregated role has the rules of others and none of its own.
pub(crate) fn rules_of<'a>(
    policy: &'a Policy,
    role: &'a Role,
) -> Box<dyn Iterator<Item = &'a Rule> + 'a> {
    match role.gathers {
        None => Box::new(role.rules.iter()),
        Some(shelf) => {
            let gathered = policy
                .roles
                .iter()
                .filter(move |role| role.shelf == Some(shelf));
            Box::new(gathered.flat_map(|role| rules_of(policy, role)))
        }
    }
}

fn is(subject: &Subject, user: &User) -> bool {
    match subject {
        Subject::User(name) => user.name == *name,
        Subject::Group(name) => user.groups.contains(name),
        Subject::Account { namespace } => {
            user.name == format!("system:serviceaccount:{namespace}:robot")
        }
    }
}

fn covers(rule: &Rule, request: &Request) -> bool {
    let has = |list: &[&str], wanted: &str| list.contains(&"*") || list.contains(&wanted);
    match request {
        Request::Resource {
            verb,
            group,
            resource,
            subresource,
            name,
            ..
        } => {
            let resource_fits = rule.resources.iter().any(|written| match *subresource {
                "" => *written == "*" || written == resource,
                // `pods/*` is a name that nothing has; `*/scale` is the scale of everything.
                below => {
                    *written == "*"
                        || *written == format!("{resource}/{below}")
                        || *written == format!("*/{below}")
                }
            });

            has(&rule.verbs, verb)
                && has(&rule.groups, group)
                && resource_fits
                && (rule.names.is_empty() || rule.names.contains(name))
        }
        Request::Path { verb, path } => {
            has(&rule.verbs, verb)
                && rule
                    .urls
                    .iter()
                    .any(|written| match written.strip_suffix('*') {
                        Some(beginning) => path.starts_with(beginning),
                        None => written == path,
                    })
        }
    }
}
