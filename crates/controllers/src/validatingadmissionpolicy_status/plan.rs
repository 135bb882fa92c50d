//! What of a validating policy is checked. Pure.

use std::collections::BTreeSet;

use coracle_api::Value;
use coracle_client::discovery::{Served, ServedResource};
use coracle_expressions::admission::type_check::Kind;

/// No more kinds of one rule than these are looked for.
const MOST_KINDS: usize = 10;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing: this generation was checked.
    Keep,
    /// Check the expressions, and write the result for this generation.
    Check(i64),
}

/// Decides whether a policy must be checked.
pub fn plan(policy: &Value) -> Plan {
    let number = |path: &[&str]| policy.at(path).and_then(Value::as_int).unwrap_or_default();
    let generation = number(&["metadata", "generation"]);
    if generation <= number(&["status", "observedGeneration"]) {
        Plan::Keep
    } else {
        Plan::Check(generation)
    }
}

/// The kinds that a policy is about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// In the order in which warnings list them.
    pub found: BTreeSet<Kind>,
    /// Some resource is not served.
    pub is_incomplete: bool,
}

/// The kinds of the resources that the rules of a policy name. Rules with `*` and subresources
/// count for nothing.
pub fn kinds(policy: &Value, served: &Served) -> Kinds {
    let mut kinds = Kinds::default();
    let rules = policy.at(&["spec", "matchConstraints", "resourceRules"]);
    for rule in rules.and_then(Value::as_array).unwrap_or_default() {
        if !kinds.add_rule(rule, served) {
            break;
        }
    }
    kinds
}

impl Kinds {
    /// Adds the kinds of a rule; whether those of others are looked for, too.
    fn add_rule(&mut self, rule: &Value, served: &Served) -> bool {
        let (Some(groups), Some(versions)) = (exact(rule, "apiGroups"), exact(rule, "apiVersions"))
        else {
            return true;
        };
        let mut resources = texts(rule, "resources");
        resources.retain(|resource| !resource.contains(['*', '/']));
        resources.sort_unstable();

        let mut count = 0;
        for group in &groups {
            for version in &versions {
                for resource in &resources {
                    let found = named(served, group, version, resource);
                    self.is_incomplete |= found.is_empty();
                    for kind in found {
                        self.found.insert(kind);
                        count += 1;
                        if count == MOST_KINDS {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }
}

/// The kinds of a resource. Without a group, those of all groups that have such a resource, as
/// upstream's mapper finds them.
fn named(served: &Served, group: &str, version: &str, resource: &str) -> Vec<Kind> {
    let is_named = |found: &&ServedResource| {
        found.resource.version == version
            && (group.is_empty() || found.resource.group == group)
            && (found.resource.plural == resource || found.singular == resource)
    };

    let all = served.groups.iter().flat_map(|group| &group.versions);
    all.flat_map(|version| &version.resources)
        .filter(is_named)
        .map(|found| Kind {
            group: found.resource.group.to_string(),
            version: found.resource.version.to_string(),
            kind: found.resource.kind.to_string(),
        })
        .collect()
}

/// The texts of a list, sorted. `None`: one of them has a `*`.
fn exact<'v>(rule: &'v Value, name: &str) -> Option<Vec<&'v str>> {
    let mut found = texts(rule, name);
    found.sort_unstable();
    (!found.iter().any(|text| text.contains('*'))).then_some(found)
}

fn texts<'v>(rule: &'v Value, name: &str) -> Vec<&'v str> {
    let found = rule.get(name).and_then(Value::as_array).unwrap_or_default();
    found.iter().filter_map(Value::as_str).collect()
}

/// The kind of the parameters of a policy.
pub fn params(policy: &Value) -> Option<Kind> {
    let text = |name| {
        let found = policy.at(&["spec", "paramKind", name]);
        found.and_then(Value::as_str).unwrap_or_default()
    };
    let (group, version) = match text("apiVersion").split_once('/') {
        None => ("", text("apiVersion")),
        Some((_, version)) if version.contains('/') => return None,
        Some(split) => split,
    };

    let kind = Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text("kind").to_owned(),
    };
    let is_empty = kind.group.is_empty() && kind.version.is_empty() && kind.kind.is_empty();
    (!is_empty).then_some(kind)
}

#[cfg(test)]
mod tests {
    use coracle_api::Text;
    use coracle_api::codec::yaml;
    use coracle_client::Resource;
    use coracle_client::discovery::{Group, Version};

    use super::*;

    fn object(text: &str) -> Value {
        yaml::decode(text.as_bytes()).unwrap()
    }

    /// A resource per word: `group/version/plural/kind`.
    fn served(words: &str) -> Served {
        let group = |word: &str| {
            let parts: Vec<&str> = word.split('/').collect();
            let [group, version, plural, kind] = parts[..] else {
                panic!("{word}");
            };
            Group {
                name: Text::new(group),
                versions: vec![Version {
                    name: Text::new(version),
                    resources: vec![ServedResource {
                        resource: Resource::new(group, version, plural, kind, true),
                        singular: Text::new(kind.to_lowercase()),
                        short_names: Vec::new(),
                        categories: Vec::new(),
                        verbs: Vec::new(),
                        subresources: Vec::new(),
                    }],
                }],
            }
        };
        Served {
            groups: words.split_whitespace().map(group).collect(),
            failed: Vec::new(),
        }
    }

    #[test]
    fn a_generation_is_checked_once() {
        let check =
            |policy: &str, expected| assert_eq!(plan(&object(policy)), expected, "{policy}");
        check("{metadata: {generation: 1}}", Plan::Check(1));
        check(
            "{metadata: {generation: 2}, status: {observedGeneration: 1}}",
            Plan::Check(2),
        );
        check(
            "{metadata: {generation: 2}, status: {observedGeneration: 2}}",
            Plan::Keep,
        );
    }

    #[test]
    fn rules_name_the_kinds() {
        let check = |rules: &str, expected: &str, is_incomplete| {
            let policy = object(&format!(
                "{{spec: {{matchConstraints: {{resourceRules: [{rules}]}}}}}}"
            ));
            let served = served(
                "/v1/pods/Pod /v1/events/Event apps/v1/deployments/Deployment \
                 apps/v1beta1/deployments/Deployment events.k8s.io/v1/events/Event",
            );
            let found = kinds(&policy, &served);
            let names: Vec<String> = found.found.iter().map(ToString::to_string).collect();
            assert_eq!(names.join("; "), expected, "{rules}");
            assert_eq!(found.is_incomplete, is_incomplete, "{rules}");
        };

        let pods = "{apiGroups: [''], apiVersions: [v1], resources: [pods]}";
        let deployments =
            "{apiGroups: [apps], apiVersions: [v1beta1, v1], resources: [deployments]}";
        check(pods, "/v1, Kind=Pod", false);
        check(
            &format!("{deployments}, {pods}"),
            "/v1, Kind=Pod; apps/v1, Kind=Deployment; apps/v1beta1, Kind=Deployment",
            false,
        );

        // Without a group, as upstream's mapper.
        check(
            "{apiGroups: [''], apiVersions: [v1], resources: [events]}",
            "/v1, Kind=Event; events.k8s.io/v1, Kind=Event",
            false,
        );

        check(
            "{apiGroups: ['*'], apiVersions: [v1], resources: [pods]}",
            "",
            false,
        );
        check(
            "{apiGroups: [''], apiVersions: ['*'], resources: [pods]}",
            "",
            false,
        );
        check(
            "{apiGroups: [''], apiVersions: [v1], resources: ['*', pods/status, pods]}",
            "/v1, Kind=Pod",
            false,
        );
        check(
            "{apiGroups: ['', g.io], apiVersions: [v1], resources: [pods]}",
            "/v1, Kind=Pod",
            true,
        );
    }

    #[test]
    fn there_are_never_more_than_ten_kinds() {
        let words: Vec<String> = (0..20)
            .map(|n| format!("g.io/v1/r{n:02}/K{n:02}"))
            .collect();
        let names: Vec<String> = (0..20).map(|n| format!("r{n:02}")).collect();
        let policy = object(&format!(
            "{{spec: {{matchConstraints: {{resourceRules: [{{apiGroups: [g.io], apiVersions: [v1], resources: [{}]}}]}}}}}}",
            names.join(", ")
        ));
        let found = kinds(&policy, &served(&words.join(" ")));
        assert_eq!(found.found.len(), 10);
        assert_eq!(found.found.last().unwrap().kind, "K09");
    }

    #[test]
    fn parameters_have_a_kind() {
        let check = |spec: &str, expected: Option<&str>| {
            let found = params(&object(&format!("{{spec: {spec}}}")));
            assert_eq!(found.map(|kind| kind.to_string()).as_deref(), expected);
        };
        check("{}", None);
        check(
            "{paramKind: {apiVersion: v1, kind: ConfigMap}}",
            Some("/v1, Kind=ConfigMap"),
        );
        check(
            "{paramKind: {apiVersion: g.io/v1, kind: Limit}}",
            Some("g.io/v1, Kind=Limit"),
        );
    }
}
