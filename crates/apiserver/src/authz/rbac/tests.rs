//! Random roles and bindings are created, changed and deleted; after each step every decision of
//! the index is compared with an evaluation that reads all objects.

use coracle_api::catalog::BUILTIN;
use coracle_api::{Value, typed};
use coracle_store::Revision;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::policy::SOURCES;
use super::*;
use crate::authz::{AccessTarget, ResourceTarget};
use crate::cache::{Derive, Entry};
use crate::storage_version::StorageVersion;

const NAMESPACES: [&str; 2] = ["a", "b"];
const VERBS: [&str; 3] = ["get", "list", "create"];
const RESOURCES: [(&str, &str, &str); 4] = [
    ("", "pods", ""),
    ("", "pods", "log"),
    ("apps", "deployments", "scale"),
    ("apps", "deployments", ""),
];
const PATHS: [&str; 3] = ["/api", "/api/v1", "/metrics"];

/// Chance that a seed decides.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn some(&mut self, texts: &[&str]) -> Vec<String> {
        let count = 1 + self.below(2);
        (0..count).map(|_| self.of(texts).to_string()).collect()
    }

    fn rule(&mut self) -> PolicyRule {
        if self.below(5) == 0 {
            let urls = self.some(&["*", "/api", "/api/*", "/metrics"]);
            return PolicyRule {
                verbs: self.some(&["*", "get", "list"]),
                non_resource_urls: Some(urls),
                ..PolicyRule::default()
            };
        }

        PolicyRule {
            verbs: self.some(&["*", "get", "list", "create"]),
            api_groups: Some(self.some(&["", "apps", "*"])),
            resources: Some(self.some(&["pods", "pods/log", "*/scale", "deployments", "*"])),
            resource_names: (self.below(3) == 0).then(|| self.some(&["x", "y"])),
            ..PolicyRule::default()
        }
    }

    fn subject(&mut self) -> Subject {
        let kind = self.of(&["User", "Group", "ServiceAccount"]);
        Subject {
            kind: kind.to_string(),
            name: self.of(&["u", "v", "g", "bot"]).to_string(),
            namespace: (kind == "ServiceAccount" && self.below(2) == 0).then(|| "a".to_string()),
            ..Subject::default()
        }
    }

    fn role_ref(&mut self, kinds: &[&str]) -> RoleRef {
        let (kind, name) = (
            self.of(kinds).to_string(),
            self.of(&["r", "s", "missing"]).to_string(),
        );
        RoleRef {
            kind,
            name,
            ..RoleRef::default()
        }
    }
}

/// All objects, by the place of their cache and their key.
type World = std::collections::BTreeMap<(usize, String), Value>;

fn object(rng: &mut Rng, of: usize) -> (String, Value) {
    let namespace = (of % 2 == 1).then(|| rng.of(&NAMESPACES).to_string());
    let name = if of < 2 {
        rng.of(&["r", "s"])
    } else {
        rng.of(&["one", "two", "three"])
    };

    let key = namespace.as_ref().map_or_else(
        || name.to_string(),
        |namespace| format!("{namespace}/{name}"),
    );

    let uid = Some("4fd1c0de-0000-4000-8000-000000000000".to_string());
    let metadata = ObjectMeta {
        name: Some(name.to_string()),
        namespace,
        uid,
        ..ObjectMeta::default()
    };

    let rules = || Some((0..2).map(|_| rng.rule()).collect::<Vec<_>>());
    let tree = match SOURCES[of] {
        "clusterroles" => {
            let mut rules = rules;
            typed::to_tree(&ClusterRole {
                metadata,
                rules: rules(),
                ..ClusterRole::default()
            })
        }
        "roles" => {
            let mut rules = rules;
            typed::to_tree(&Role {
                metadata,
                rules: rules(),
            })
        }
        "clusterrolebindings" => {
            let subjects = Some(vec![rng.subject(), rng.subject()]);
            typed::to_tree(&ClusterRoleBinding {
                metadata,
                subjects,
                role_ref: rng.role_ref(&["ClusterRole"]),
            })
        }
        _ => {
            let subjects = Some(vec![rng.subject(), rng.subject()]);
            typed::to_tree(&RoleBinding {
                metadata,
                subjects,
                role_ref: rng.role_ref(&["ClusterRole", "Role"]),
            })
        }
    };

    (key, tree.unwrap())
}

/// What may be done, found by looking at everything.
fn obviously(world: &World, attributes: &Attributes<'_>) -> bool {
    let bindings = world.iter().filter(|((of, _), _)| *of >= 2);
    bindings.into_iter().any(|((of, key), binding)| {
        let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
        let (subjects, role): (Vec<Subject>, RoleRef) = (
            typed::from_tree(binding.get("subjects").unwrap()).unwrap(),
            typed::from_tree(binding.get("roleRef").unwrap()).unwrap(),
        );

        let here = *of == 2 || namespace == attributes.namespace();
        let named = subjects
            .iter()
            .any(|subject| names(subject, namespace, attributes.user));
        let role = match role.kind.as_str() {
            "ClusterRole" => world.get(&(0, role.name)),
            _ => world.get(&(1, format!("{namespace}/{}", role.name))),
        };

        let Some(rules) = role.and_then(|role| role.get("rules")) else {
            return false;
        };
        let rules: Vec<PolicyRule> = typed::from_tree(rules).unwrap();

        here && named && rules.iter().any(|rule| allows(rule, attributes))
    })
}

fn names(subject: &Subject, namespace: &str, user: &User) -> bool {
    match subject.kind.as_str() {
        "User" => subject.name == user.name,
        "Group" => user.groups.contains(&subject.name),
        _ => {
            let namespace = subject.namespace.as_deref().unwrap_or(namespace);
            !namespace.is_empty()
                && user.name == format!("system:serviceaccount:{namespace}:{}", subject.name)
        }
    }
}

fn allows(rule: &PolicyRule, attributes: &Attributes<'_>) -> bool {
    let has = |list: &[String], wanted: &str| list.iter().any(|own| own == "*" || own == wanted);
    let list = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();

    let verb = has(&rule.verbs, attributes.verb);
    match attributes.target {
        AccessTarget::Path(path) => {
            let matches = |url: &String| match url.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => url == path,
            };
            verb && list(&rule.non_resource_urls).iter().any(matches)
        }
        AccessTarget::Resource(about) => {
            let wanted = match about.subresource {
                "" => vec![about.resource.to_string()],
                sub => vec![format!("{}/{sub}", about.resource), format!("*/{sub}")],
            };

            let resources = list(&rule.resources);
            let resource = wanted.iter().any(|wanted| resources.contains(wanted))
                || resources.contains(&"*".to_string());
            let names = list(&rule.resource_names);

            verb && has(&list(&rule.api_groups), about.group)
                && resource
                && (names.is_empty() || names.contains(&about.name.to_string()))
        }
    }
}

fn users() -> Vec<User> {
    let user = |name: &str, groups: &[&str]| User {
        name: name.to_string(),
        groups: groups.iter().map(ToString::to_string).collect(),
        ..User::default()
    };

    vec![
        user("u", &[]),
        user("v", &["g"]),
        user("nobody", &["u"]),
        user("system:serviceaccount:a:bot", &["g"]),
        user("system:serviceaccount:b:u", &[]),
    ]
}

/// Compares all decisions, and returns how many allow.
fn compare(seed: u64, policy: &Policy, world: &World) -> usize {
    let mut allowed = 0;
    let mut check = |attributes: &Attributes<'_>| {
        let found = matches!(policy.decide(attributes), Decision::Allow(_));
        assert_eq!(
            found,
            obviously(world, attributes),
            "seed {seed}: {attributes:?}"
        );
        allowed += usize::from(found);
    };

    for user in &users() {
        for verb in VERBS {
            for path in PATHS {
                check(&Attributes {
                    user,
                    verb,
                    target: AccessTarget::Path(path),
                });
            }

            for (group, resource, subresource) in RESOURCES {
                for namespace in ["", "a", "b", "c"] {
                    for name in ["", "x", "z"] {
                        let about = ResourceTarget {
                            group,
                            resource,
                            subresource,
                            namespace,
                            name,
                            ..ResourceTarget::default()
                        };
                        check(&Attributes::on(user, verb, about));
                    }
                }
            }
        }
    }

    allowed
}

#[test]
fn the_index_decides_as_an_evaluation_of_all_objects() {
    let hubs = [
        "clusterroles",
        "roles",
        "clusterrolebindings",
        "rolebindings",
    ]
    .map(|plural| {
        StorageVersion::of(
            BUILTIN
                .resource("rbac.authorization.k8s.io", "v1", plural)
                .unwrap(),
        )
    });

    let mut allowed = 0;
    for seed in 0..12 {
        let mut rng = Rng(seed);
        let (mut policy, mut world) = (Policy::default(), World::new());
        for step in 1..=24 {
            let of = rng.below(4);
            let (key, tree) = object(&mut rng, of);

            let storage_version = &hubs[of];
            let entry = |tree: &Value| {
                Entry::of(
                    &key,
                    tree,
                    Entry::encode(tree, storage_version.of),
                    Revision::FIRST,
                    storage_version.resource,
                )
            };
            let old = world.get(&(of, key.clone())).map(&entry);

            // Sometimes an object is deleted.
            let new = (rng.below(4) > 0 || old.is_none()).then_some(tree);
            policy.take(
                of,
                storage_version,
                old.as_ref(),
                new.as_ref().map(&entry).as_ref(),
            );

            match new {
                Some(tree) => world.insert((of, key), tree),
                None => world.remove(&(of, key)),
            };

            if step % 6 == 0 {
                allowed += compare(seed, &policy, &world);
            }
        }
    }

    assert!(
        allowed > 1_000,
        "a matrix of refusals proves little: {allowed}"
    );
}
