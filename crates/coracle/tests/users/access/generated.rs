//! Random policies: roles with every kind of rule, bindings of every kind, and requests of users.

use serde_json::{Value, json};

/// SplitMix64: the same seed, the same policy.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    /// At least one, at most `most` of them.
    fn some(&mut self, of: &[&'static str], most: usize) -> Vec<&'static str> {
        let mut chosen: Vec<&str> = (0..=self.below(most)).map(|_| self.word(of)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

/// A user.
pub(crate) struct User {
    pub(crate) name: &'static str,
    pub(crate) groups: &'static [&'static str],
    pub(crate) authentication: Authentication,
}

/// How the user authenticates in real requests.
pub(crate) enum Authentication {
    Anonymous,
    Certificate,
    Token { namespace: &'static str },
    Impersonated,
}

const fn user(
    name: &'static str,
    groups: &'static [&'static str],
    authentication: Authentication,
) -> User {
    User {
        name,
        groups,
        authentication,
    }
}

pub(crate) const USERS: &[User] = &[
    user(
        "jane",
        &["system:authenticated"],
        Authentication::Certificate,
    ),
    user(
        "joe",
        &["readers", "system:authenticated"],
        Authentication::Certificate,
    ),
    user(
        "ann",
        &["readers", "writers", "system:authenticated"],
        Authentication::Impersonated,
    ),
    // Called like a group, like an account, and like all users: names are only names.
    user(
        "readers",
        &["system:authenticated"],
        Authentication::Certificate,
    ),
    user(
        "robot",
        &["writers", "system:authenticated"],
        Authentication::Certificate,
    ),
    user("*", &["system:authenticated"], Authentication::Certificate),
    user(
        "system:serviceaccount:a:robot",
        &[
            "system:serviceaccounts",
            "system:serviceaccounts:a",
            "system:authenticated",
        ],
        Authentication::Token { namespace: "a" },
    ),
    user(
        "system:serviceaccount:b:robot",
        &[
            "system:serviceaccounts",
            "system:serviceaccounts:b",
            "system:authenticated",
        ],
        Authentication::Token { namespace: "b" },
    ),
    user(
        "system:anonymous",
        &["system:unauthenticated"],
        Authentication::Anonymous,
    ),
];

const VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];
const WRITTEN_VERBS: &[&str] = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "post",
    "*",
];
const WRITTEN_GROUPS: &[&str] = &["", "", "apps", "example.com", "*"];
const WRITTEN_RESOURCES: &[&str] = &[
    "configmaps",
    "secrets",
    "pods",
    "pods/log",
    "pods/status",
    "pods/*",
    "*/status",
    "*/scale",
    "deployments",
    "deployments/scale",
    "nodes",
    "widgets",
    "*",
];
const RESOURCES: &[(&str, &str)] = &[
    ("", "configmaps"),
    ("", "secrets"),
    ("", "pods"),
    ("", "nodes"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("example.com", "widgets"),
];
const SUBRESOURCES: &[&str] = &["", "", "", "status", "log", "scale"];
const WRITTEN_URLS: &[&str] = &["/metrics", "/debug/*", "/debug/x/*", "/deb*", "/debug", "*"];
const URLS: &[&str] = &[
    "/metrics",
    "/metrics/more",
    "/debug",
    "/debug/x",
    "/debug/x/y",
    "/logs",
];
const SHELVES: &[&str] = &["one", "two"];

pub(crate) struct Rule {
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) groups: Vec<&'static str>,
    pub(crate) resources: Vec<&'static str>,
    pub(crate) names: Vec<&'static str>,
    pub(crate) urls: Vec<&'static str>,
}

impl Rule {
    fn of_resources(rng: &mut Rng) -> Rule {
        let names = if rng.below(4) == 0 {
            rng.some(&["x", "y"], 2)
        } else {
            Vec::new()
        };

        Rule {
            verbs: rng.some(WRITTEN_VERBS, 4),
            groups: rng.some(WRITTEN_GROUPS, 2),
            resources: rng.some(WRITTEN_RESOURCES, 3),
            names,
            urls: Vec::new(),
        }
    }

    fn of_paths(rng: &mut Rng) -> Rule {
        let none = Vec::new;
        let verbs = rng.some(&["get", "post", "*"], 2);
        Rule {
            verbs,
            groups: none(),
            resources: none(),
            names: none(),
            urls: rng.some(WRITTEN_URLS, 2),
        }
    }

    pub(crate) fn object(&self) -> Value {
        let fields = [
            ("verbs", &self.verbs),
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ];
        let set = fields.into_iter().filter(|(_, list)| !list.is_empty());
        set.map(|(name, list)| (name.to_string(), json!(list)))
            .collect()
    }
}

pub(crate) struct Role {
    pub(crate) name: String,
    namespace: Option<&'static str>,
    pub(crate) rules: Vec<Rule>,
    /// The label by which aggregated roles select it.
    pub(crate) shelf: Option<&'static str>,
    pub(crate) gathers: Option<&'static str>,
}

pub(crate) enum Subject {
    User(&'static str),
    Group(&'static str),
    /// `robot` of that namespace.
    Account {
        namespace: &'static str,
    },
}

pub(crate) struct Binding {
    pub(crate) namespace: Option<&'static str>,
    /// Which of the roles.
    pub(crate) role: usize,
    pub(crate) subjects: Vec<Subject>,
}

pub(crate) struct Policy {
    pub(crate) roles: Vec<Role>,
    pub(crate) bindings: Vec<Binding>,
}

impl Policy {
    pub(crate) fn generate(rng: &mut Rng) -> Policy {
        let mut roles = Vec::new();
        for at in 0..10 {
            let mut rules: Vec<Rule> = (0..=rng.below(2))
                .map(|_| Rule::of_resources(rng))
                .collect();
            if rng.below(3) == 0 {
                rules.push(Rule::of_paths(rng));
            }

            let shelf = (rng.below(2) == 0).then(|| rng.word(SHELVES));
            roles.push(Role {
                name: format!("wide-{at}"),
                namespace: None,
                rules,
                shelf,
                gathers: None,
            });
        }

        // The first gathers what the second has gathered, too.
        for (name, shelf, gathers) in [
            ("all-of-one", None, "one"),
            ("all-of-two", Some("one"), "two"),
        ] {
            let (name, rules) = (name.to_string(), Vec::new());
            roles.push(Role {
                name,
                namespace: None,
                rules,
                shelf,
                gathers: Some(gathers),
            });
        }

        for at in 0..6 {
            let rules = (0..=rng.below(2))
                .map(|_| Rule::of_resources(rng))
                .collect();

            let namespace = Some(rng.word(&["a", "b"]));
            roles.push(Role {
                name: format!("narrow-{at}"),
                namespace,
                rules,
                shelf: None,
                gathers: None,
            });
        }

        let bindings = (0..28).map(|_| binding(rng, &roles)).collect();
        Policy { roles, bindings }
    }

    /// A List of everything.
    pub(crate) fn objects(&self) -> Value {
        let roles = self.roles.iter().map(role_object);
        let bindings = self
            .bindings
            .iter()
            .enumerate()
            .map(|(at, binding)| self.binding_object(at, binding));
        json!({"apiVersion": "v1", "kind": "List", "items": roles.chain(bindings).collect::<Vec<_>>()})
    }

    fn binding_object(&self, at: usize, binding: &Binding) -> Value {
        let role = &self.roles[binding.role];
        let kind = |namespace: Option<_>, kind: &str| match namespace {
            Some(_) => kind.to_string(),
            None => format!("Cluster{kind}"),
        };

        let api = "rbac.authorization.k8s.io";
        let subjects = binding.subjects.iter().map(|subject| match subject {
            Subject::User(name) => json!({"apiGroup": api, "kind": "User", "name": name}),
            Subject::Group(name) => json!({"apiGroup": api, "kind": "Group", "name": name}),
            Subject::Account { namespace } => {
                json!({"kind": "ServiceAccount", "name": "robot", "namespace": namespace})
            }
        });

        json!({
            "apiVersion": format!("{api}/v1"),
            "kind": kind(binding.namespace, "RoleBinding"),
            "metadata": {"name": format!("binding-{at}"), "namespace": binding.namespace},
            "roleRef": {"apiGroup": api, "kind": kind(role.namespace, "Role"), "name": role.name},
            "subjects": subjects.collect::<Vec<_>>(),
        })
    }
}

fn role_object(role: &Role) -> Value {
    let rules: Vec<Value> = role.rules.iter().map(Rule::object).collect();
    let mut object = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": if role.namespace.is_some() { "Role" } else { "ClusterRole" },
        "metadata": {"name": role.name, "namespace": role.namespace},
        "rules": rules,
    });

    if let Some(shelf) = role.shelf {
        object["metadata"]["labels"] = json!({"shelf": shelf});
    }

    if let Some(shelf) = role.gathers {
        object["aggregationRule"] =
            json!({"clusterRoleSelectors": [{"matchLabels": {"shelf": shelf}}]});
    }

    object
}

fn binding(rng: &mut Rng, roles: &[Role]) -> Binding {
    let role = rng.below(roles.len());

    // A role of a namespace is bound there; another one everywhere, or in some namespace.
    let namespace = roles[role]
        .namespace
        .or_else(|| *rng.one(&[None, Some("a"), Some("b")]));
    let subjects = (0..=rng.below(2)).map(|_| match rng.below(4) {
        0 => Subject::User(rng.one(USERS).name),
        1 => Subject::Account {
            namespace: rng.word(&["a", "b"]),
        },
        // No group has this name, and it does not mean all of them.
        2 => Subject::Group("*"),
        _ => {
            let groups = rng.one(USERS).groups;
            Subject::Group(rng.word(groups))
        }
    });

    Binding {
        namespace,
        role,
        subjects: subjects.collect(),
    }
}

/// A request.
#[derive(Debug)]
pub(crate) enum Request {
    Resource {
        verb: &'static str,
        group: &'static str,
        resource: &'static str,
        subresource: &'static str,
        namespace: &'static str,
        name: &'static str,
    },
    Path {
        verb: &'static str,
        path: &'static str,
    },
}

impl Request {
    pub(crate) fn generate(rng: &mut Rng) -> Request {
        if rng.below(5) == 0 {
            return Request::Path {
                verb: rng.word(&["get", "post"]),
                path: rng.word(URLS),
            };
        }

        let (group, resource) = *rng.one(RESOURCES);
        Request::Resource {
            verb: rng.word(VERBS),
            group,
            resource,
            subresource: rng.word(SUBRESOURCES),
            namespace: rng.word(&["a", "b", ""]),
            name: rng.word(&["x", "z", ""]),
        }
    }

    /// The same over HTTP, where there is such a request.
    pub(crate) fn http(&self) -> Option<(&'static str, String)> {
        let (verb, group, resource, subresource, namespace, name) = match self {
            Request::Path { verb: "get", path } => return Some(("GET", (*path).to_string())),
            Request::Path { path, .. } => return Some(("POST", (*path).to_string())),
            Request::Resource {
                verb,
                group,
                resource,
                subresource,
                namespace,
                name,
            } => (*verb, *group, *resource, *subresource, *namespace, *name),
        };

        let api = if group.is_empty() {
            "/api/v1".to_string()
        } else {
            format!("/apis/{group}/v1")
        };

        let namespace = if namespace.is_empty() {
            String::new()
        } else {
            format!("/namespaces/{namespace}")
        };
        let all = format!("{api}{namespace}/{resource}");

        // Of a list, a selector of names says which one.
        let of_many = matches!(verb, "list" | "watch" | "deletecollection");
        let selected = if name.is_empty() {
            ""
        } else {
            &format!("&fieldSelector=metadata.name%3D{name}")
        };

        match (verb, subresource) {
            ("list", "") => Some(("GET", format!("{all}?limit=1{selected}"))),
            ("watch", "") => Some(("GET", format!("{all}?watch=1&timeoutSeconds=1{selected}"))),
            ("deletecollection", "") => name
                .is_empty()
                .then(|| ("DELETE", format!("{all}?dryRun=All"))),
            ("create", "") => name
                .is_empty()
                .then(|| ("POST", format!("{all}?dryRun=All"))),
            _ if of_many || name.is_empty() => None,
            _ => {
                let below = if subresource.is_empty() {
                    ""
                } else {
                    &format!("/{subresource}")
                };
                Some((method(verb), format!("{all}/{name}{below}?dryRun=All")))
            }
        }
    }
}

fn method(verb: &str) -> &'static str {
    match verb {
        "create" => "POST",
        "update" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        _ => "GET",
    }
}
