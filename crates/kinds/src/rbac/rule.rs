//! Rules: which verbs on which resources or paths, and whether a rule allows a request.

use coracle_api::Text;
use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::access::{AccessTarget, Attributes, ResourceTarget};

/// A rule of a role, compact because it is matched against every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub verbs: Box<[Text]>,
    pub groups: Box<[Text]>,
    pub resources: Box<[Text]>,
    /// Empty: any.
    pub names: Box<[Text]>,
    pub urls: Box<[Text]>,
}

const ALL: &str = "*";

impl Rule {
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        has(&self.verbs, attributes.verb)
            && match attributes.target {
                AccessTarget::Resource(resource) => self.covers(&resource),
                AccessTarget::Path(path) => self.urls.iter().any(|url| url_matches(url, path)),
            }
    }

    fn covers(&self, resource: &ResourceTarget<'_>) -> bool {
        has(&self.groups, resource.group)
            && self
                .resources
                .iter()
                .any(|own| resource_matches(own, resource.resource, resource.subresource))
            && (self.names.is_empty() || self.names.iter().any(|own| own == resource.name))
    }
}

impl From<&PolicyRule> for Rule {
    fn from(rule: &PolicyRule) -> Rule {
        let texts = |texts: &Option<Vec<String>>| texts.iter().flatten().map(Text::new).collect();
        Rule {
            verbs: rule.verbs.iter().map(Text::new).collect(),
            groups: texts(&rule.api_groups),
            resources: texts(&rule.resources),
            names: texts(&rule.resource_names),
            urls: texts(&rule.non_resource_urls),
        }
    }
}

impl From<&Rule> for PolicyRule {
    fn from(rule: &Rule) -> PolicyRule {
        let texts = |texts: &[Text]| {
            texts
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<String>>()
        };

        let some = |list: &[Text]| (!list.is_empty()).then(|| texts(list));
        PolicyRule {
            verbs: texts(&rule.verbs),
            api_groups: some(&rule.groups),
            resources: some(&rule.resources),
            resource_names: some(&rule.names),
            non_resource_urls: some(&rule.urls),
        }
    }
}

fn has(own: &[Text], wanted: &str) -> bool {
    own.iter().any(|own| own == ALL || own == wanted)
}

/// `*`, `pods`, `pods/log`, `*/scale`. A rule about a resource does not include its subresources.
fn resource_matches(own: &str, resource: &str, subresource: &str) -> bool {
    if own == ALL {
        return true;
    }
    if subresource.is_empty() {
        return own == resource;
    }
    let Some((parent, rest)) = own.split_once('/') else {
        return false;
    };
    rest == subresource && (parent == ALL || parent == resource)
}

pub(super) fn url_matches(own: &str, path: &str) -> bool {
    own == path || own.ends_with('*') && path.starts_with(own.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(own: &str, wanted: &str, expected: bool) {
        let (resource, subresource) = wanted.split_once('/').unwrap_or((wanted, ""));
        assert_eq!(
            resource_matches(own, resource, subresource),
            expected,
            "{own} {wanted}"
        );
    }

    #[test]
    fn resource_does_not_match_its_subresources() {
        check("pods", "pods", true);
        check("pods", "pods/log", false);
        check("pods/log", "pods/log", true);
        check("pods/log", "pods", false);
        check("*/log", "pods/log", true);
        check("*/log", "pods", false);
        check("*", "pods/log", true);
        check("pods/*", "pods/log", false);
    }

    #[test]
    fn path_may_end_with_a_wildcard() {
        for (own, path, expected) in [
            ("/api", "/api", true),
            ("/api", "/api/v1", false),
            ("/api/*", "/api/v1", true),
            ("/api/*", "/api", false),
            ("*", "/metrics", true),
            ("/me*", "/metrics", true),
        ] {
            assert_eq!(url_matches(own, path), expected, "{own} {path}");
        }
    }
}
