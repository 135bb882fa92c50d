//! Whether some rules cover others.

use std::collections::BTreeSet;
use std::fmt::Write;

use coracle_api::Text;
use coracle_api::go_text::Quoted;

use super::Rule;
use super::rule::url_matches;

/// One verb on one resource, of one name or of any; or one verb on one path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Permission<'r> {
    Resource {
        group: &'r Text,
        resource: &'r Text,
        verb: &'r Text,
        name: Option<&'r Text>,
    },
    Path {
        url: &'r Text,
        verb: &'r Text,
    },
}

/// The rules of `given` that `owned` does not cover, as upstream prints them.
pub fn missing(owned: &[Rule], given: &[Rule]) -> BTreeSet<String> {
    let rights = given.iter().flat_map(rights);
    compacted(rights.filter(|right| !owned.iter().any(|rule| covers(rule, right))))
}

/// The same, as rules of one verb on one thing each.
pub fn missing_rules(owned: &[Rule], given: &[Rule]) -> Vec<Rule> {
    let rights = given.iter().flat_map(rights);
    rights
        .filter(|right| !owned.iter().any(|rule| covers(rule, right)))
        .map(|right| right.rule())
        .collect()
}

impl Permission<'_> {
    fn rule(&self) -> Rule {
        let (mut groups, mut resources, mut names, mut urls) =
            <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        let verb = match *self {
            Permission::Resource {
                group,
                resource,
                verb,
                name,
            } => {
                groups.push(group.clone());
                resources.push(resource.clone());
                names.extend(name.cloned());
                verb
            }
            Permission::Path { url, verb } => {
                urls.push(url.clone());
                verb
            }
        };

        Rule {
            verbs: [verb.clone()].into(),
            groups: groups.into(),
            resources: resources.into(),
            names: names.into(),
            urls: urls.into(),
        }
    }
}

fn rights(rule: &Rule) -> Vec<Permission<'_>> {
    let mut all = Vec::new();
    for group in &rule.groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                if rule.names.is_empty() {
                    all.push(Permission::Resource {
                        group,
                        resource,
                        verb,
                        name: None,
                    });
                }

                all.extend(rule.names.iter().map(|name| Permission::Resource {
                    group,
                    resource,
                    verb,
                    name: Some(name),
                }));
            }
        }
    }

    for url in &rule.urls {
        all.extend(rule.verbs.iter().map(|verb| Permission::Path { url, verb }));
    }

    all
}

fn covers(rule: &Rule, right: &Permission<'_>) -> bool {
    let has = |own: &[Text], wanted: &Text| own.iter().any(|own| own == "*" || own == wanted);
    match right {
        Permission::Resource {
            group,
            resource,
            verb,
            name,
        } => {
            let resource_covered = has(&rule.resources, resource)
                || resource.split_once('/').is_some_and(|(_, subresource)| {
                    let is_any = |own: &Text| own.strip_prefix("*/") == Some(subresource);
                    rule.resources.iter().any(is_any)
                });
            let name_covered = rule.names.is_empty()
                || name.is_some_and(|name| rule.names.iter().any(|own| own == name));
            has(&rule.verbs, verb) && has(&rule.groups, group) && resource_covered && name_covered
        }
        Permission::Path { url, verb } => {
            // A rule with resource names grants no paths.
            rule.names.is_empty()
                && has(&rule.verbs, verb)
                && rule.urls.iter().any(|own| url_matches(own, url))
        }
    }
}

/// Merges rights that differ in their verb alone.
fn compacted<'r>(rights: impl Iterator<Item = Permission<'r>>) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    let mut together: Vec<(Permission<'r>, Vec<&Text>)> = Vec::new();
    for right in rights {
        match &right {
            Permission::Path { url, verb } => {
                texts.insert(format!(
                    "{{NonResourceURLs:{}, Verbs:{}}}",
                    list(&[url]),
                    list(&[verb])
                ));
            }
            Permission::Resource {
                group,
                resource,
                verb,
                name,
            } => {
                let known = together.iter_mut().find(|(known, _)| {
                    matches!(known, Permission::Resource { group: g, resource: r, name: n, .. }
                        if g == group && r == resource && n == name)
                });
                match known {
                    Some((_, verbs)) => verbs.push(verb),
                    None => together.push((right.clone(), vec![verb])),
                }
            }
        }
    }

    for (right, verbs) in together {
        let Permission::Resource {
            group,
            resource,
            name,
            ..
        } = right
        else {
            continue;
        };

        let mut text = format!(
            "{{APIGroups:{}, Resources:{}",
            list(&[group]),
            list(&[resource])
        );

        if let Some(name) = name {
            write!(text, ", ResourceNames:{}", list(&[name])).expect("strings take everything");
        }

        texts.insert(format!("{text}, Verbs:{}}}", list(&verbs)));
    }

    texts
}

fn list(texts: &[&Text]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| Quoted(text).to_string()).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `groups;resources;verbs;names;urls`, lists with commas.
    fn rule(text: &str) -> Rule {
        let mut parts = text.split(';').map(|part| {
            part.split(',')
                .filter(|word| !word.is_empty())
                .map(|word| Text::new(word.trim_matches('"')))
                .collect()
        });
        let mut next = || parts.next().unwrap_or_default();

        let (groups, resources, verbs, names, urls) = (next(), next(), next(), next(), next());
        Rule {
            verbs,
            groups,
            resources,
            names,
            urls,
        }
    }

    fn check(owned: &[&str], given: &str, expected: &[&str]) {
        let owned: Vec<Rule> = owned.iter().map(|text| rule(text)).collect();
        let missing: Vec<String> = missing(&owned, &[rule(given)]).into_iter().collect();
        assert_eq!(missing, expected, "{given}");
    }

    #[test]
    fn owned_rules_are_covered_and_missing_ones_listed() {
        check(&["\"\";pods;get,list"], "\"\";pods;get", &[]);
        check(&["*;*;*"], "apps;deployments/scale;update;a", &[]);
        check(&["apps;*/scale;*"], "apps;deployments/scale;update", &[]);
        check(
            &["\"\";pods;get"],
            "\"\";pods;*",
            &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#],
        );

        check(&["\"\";pods;get;a"], "\"\";pods;get;a", &[]);
        check(
            &["\"\";pods;get;a"],
            "\"\";pods;get;a,b",
            &[r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}"#],
        );

        // Read access to one object does not allow granting read access to all.
        check(
            &["\"\";pods;get;a"],
            "\"\";pods;get",
            &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#],
        );

        check(&[";;get;;/api*"], ";;get;;/api/v1", &[]);
        check(
            &[";;get;;/api"],
            ";;get,put;;/api",
            &[r#"{NonResourceURLs:["/api"], Verbs:["put"]}"#],
        );

        check(
            &["\"\";*;*"],
            ";;get;;/api",
            &[r#"{NonResourceURLs:["/api"], Verbs:["get"]}"#],
        );
    }
}
