//! All roles and bindings, indexed by subject and namespace.

use std::fmt;
use std::sync::Arc;

use coracle_api::go_text::Quoted;
use coracle_api::{Text, typed};
use coracle_kinds::rbac::{Rule, Unresolved};
use imbl::{HashMap, OrdMap};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};

use crate::authn::User;
use crate::cache::{Derive, Entry};
use crate::storage_version::StorageVersion;

/// Derived from the caches of [`SOURCES`].
#[derive(Clone, Default)]
pub struct Policy {
    /// By name.
    cluster_roles: HashMap<Text, Arc<[Rule]>>,
    /// By `namespace/name`.
    roles: HashMap<Text, Arc<[Rule]>>,
    cluster: Bindings,
    /// By namespace.
    namespaces: HashMap<Text, Bindings>,
}

/// The resources that a policy is derived from, by their storage prefixes.
pub(super) const SOURCES: [&str; 4] = [
    "clusterroles",
    "roles",
    "clusterrolebindings",
    "rolebindings",
];

/// Bindings by those they name, each by its own name.
#[derive(Clone, Default)]
struct Bindings {
    users: HashMap<Text, OrdMap<Text, Arc<Binding>>>,
    groups: HashMap<Text, OrdMap<Text, Arc<Binding>>>,
}

/// Gives the rules of a role to some subjects.
#[derive(Debug, PartialEq, Eq)]
pub struct Binding {
    pub name: Text,
    /// Empty: everywhere.
    pub namespace: Text,
    pub role_kind: Text,
    pub role: Text,
    /// The key of a namespaced role.
    role_key: Text,
    subjects: Box<[Named]>,
}

/// A subject that a binding names.
#[derive(Debug, PartialEq, Eq)]
enum Named {
    User(Text),
    Group(Text),
    /// The name of its user, and how a binding names it: `name/namespace`.
    ServiceAccount(Text, Text),
}

impl Policy {
    /// Visits every binding that names the user, with the rules of its role; stops when `visit`
    /// returns so.
    pub fn visit<'p>(
        &'p self,
        user: &User,
        namespace: &str,
        mut visit: impl FnMut(&'p Arc<Binding>, Result<&'p Arc<[Rule]>, Unresolved>) -> bool,
    ) {
        let local = if namespace.is_empty() {
            None
        } else {
            self.namespaces.get(namespace)
        };

        for bindings in [Some(&self.cluster), local].into_iter().flatten() {
            for binding in bindings.of(user) {
                if !visit(binding, self.rules(binding)) {
                    return;
                }
            }
        }
    }

    fn rules(&self, binding: &Binding) -> Result<&Arc<[Rule]>, Unresolved> {
        match binding.role_kind.as_str() {
            "ClusterRole" => self.cluster_role(&binding.role),
            "Role" => self
                .roles
                .get(&binding.role_key)
                .ok_or_else(|| Unresolved::Role(binding.role.clone())),
            _ => Err(Unresolved::Kind(binding.role_kind.clone())),
        }
    }

    fn cluster_role(&self, name: &Text) -> Result<&Arc<[Rule]>, Unresolved> {
        self.cluster_roles
            .get(name)
            .ok_or_else(|| Unresolved::ClusterRole(name.clone()))
    }

    /// The rules of the role that a binding in that namespace refers to.
    pub fn referred(&self, role: &RoleRef, namespace: &str) -> Result<&Arc<[Rule]>, Unresolved> {
        let name = Text::new(&role.name);
        match role.kind.as_str() {
            "ClusterRole" => self.cluster_role(&name),
            "Role" => {
                let key = Text::new(format!("{namespace}/{name}"));
                self.roles.get(&key).ok_or(Unresolved::Role(name))
            }
            kind => Err(Unresolved::Kind(Text::new(kind))),
        }
    }
}

impl Bindings {
    /// Those that name the user or one of its groups. One that does so twice is returned twice,
    /// which does no harm.
    fn of<'p>(&'p self, user: &User) -> impl Iterator<Item = &'p Arc<Binding>> {
        let groups = user
            .groups
            .iter()
            .filter_map(|group| self.groups.get(group.as_str()));
        self.users
            .get(user.name.as_str())
            .into_iter()
            .chain(groups)
            .flat_map(OrdMap::values)
    }

    fn add(&mut self, binding: &Arc<Binding>) {
        for subject in &binding.subjects {
            let (map, key) = self.place(subject);
            map.entry(key.clone())
                .or_default()
                .insert(binding.name.clone(), binding.clone());
        }
    }

    fn remove(&mut self, binding: &Binding) {
        for subject in &binding.subjects {
            let (map, key) = self.place(subject);
            if let Some(named) = map.get_mut(key) {
                named.remove(&binding.name);
                if named.is_empty() {
                    map.remove(key);
                }
            }
        }
    }

    fn place<'n>(
        &mut self,
        subject: &'n Named,
    ) -> (&mut HashMap<Text, OrdMap<Text, Arc<Binding>>>, &'n Text) {
        match subject {
            Named::User(name) | Named::ServiceAccount(name, _) => (&mut self.users, name),
            Named::Group(name) => (&mut self.groups, name),
        }
    }
}

impl Derive for Policy {
    fn take(
        &mut self,
        of: usize,
        storage_version: &StorageVersion<'_>,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) {
        match SOURCES[of] {
            "clusterroles" => keep(
                &mut self.cluster_roles,
                storage_version,
                old,
                new,
                |role: ClusterRole| role.rules,
            ),
            "roles" => keep(&mut self.roles, storage_version, old, new, |role: Role| {
                role.rules
            }),
            _ => {
                if let Some(old) = old.and_then(|entry| binding(of, storage_version, entry)) {
                    self.bindings(&old.namespace).remove(&old);
                }
                if let Some(new) = new.and_then(|entry| binding(of, storage_version, entry)) {
                    self.bindings(&new.namespace).add(&Arc::new(new));
                }
            }
        }
    }
}

impl Policy {
    fn bindings(&mut self, namespace: &Text) -> &mut Bindings {
        match namespace.as_str() {
            "" => &mut self.cluster,
            _ => self.namespaces.entry(namespace.clone()).or_default(),
        }
    }
}

fn keep<T: serde::de::DeserializeOwned>(
    roles: &mut HashMap<Text, Arc<[Rule]>>,
    storage_version: &StorageVersion<'_>,
    old: Option<&Entry>,
    new: Option<&Entry>,
    rules: impl Fn(T) -> Option<Vec<PolicyRule>>,
) {
    if let Some(old) = old.filter(|_| new.is_none()) {
        roles.remove(old.key());
    }
    if let Some(new) = new {
        let rules = decoded(storage_version, new)
            .and_then(rules)
            .unwrap_or_default();
        roles.insert(Text::new(new.key()), rules.iter().map(Rule::from).collect());
    }
}

fn binding(of: usize, storage_version: &StorageVersion<'_>, entry: &Entry) -> Option<Binding> {
    let (subjects, role) = match SOURCES[of] {
        "clusterrolebindings" => {
            let binding: ClusterRoleBinding = decoded(storage_version, entry)?;
            (binding.subjects, binding.role_ref)
        }
        _ => {
            let binding: RoleBinding = decoded(storage_version, entry)?;
            (binding.subjects, binding.role_ref)
        }
    };

    let namespace = Text::new(entry.namespace());
    let name = Text::new(entry.key().rsplit('/').next().unwrap_or_default());
    let subjects = subjects.unwrap_or_default();

    Some(Binding {
        role_key: Text::new(format!("{namespace}/{}", role.name)),
        subjects: subjects
            .iter()
            .filter_map(|subject| named(subject, &namespace))
            .collect(),
        role_kind: Text::new(&role.kind),
        role: Text::new(&role.name),
        namespace,
        name,
    })
}

/// The subject that a binding in that namespace means.
fn named(subject: &Subject, namespace: &str) -> Option<Named> {
    match subject.kind.as_str() {
        "User" => Some(Named::User(Text::new(&subject.name))),
        "Group" => Some(Named::Group(Text::new(&subject.name))),
        "ServiceAccount" => {
            let given = subject
                .namespace
                .as_deref()
                .filter(|given| !given.is_empty());
            let namespace = given.unwrap_or(namespace);
            let user = format!("system:serviceaccount:{namespace}:{}", subject.name);
            let shown = format!("{}/{namespace}", subject.name);

            (!namespace.is_empty())
                .then(|| Named::ServiceAccount(Text::new(user), Text::new(shown)))
        }
        _ => None,
    }
}

/// Cached objects were validated when they were written: what cannot be decoded grants nothing.
fn decoded<T: serde::de::DeserializeOwned>(
    storage_version: &StorageVersion<'_>,
    entry: &Entry,
) -> Option<T> {
    typed::from_tree(&entry.value(storage_version.of)).ok()
}

impl Binding {
    /// The reason why a binding grants something to a user, with upstream's text.
    pub fn described<'a>(&'a self, user: &'a User) -> impl fmt::Display + 'a {
        Described {
            binding: self,
            user,
        }
    }
}

struct Described<'a> {
    binding: &'a Binding,
    user: &'a User,
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Binding {
            name,
            namespace,
            role_kind,
            role,
            subjects,
            ..
        } = self.binding;

        match namespace.as_str() {
            "" => write!(f, "ClusterRoleBinding {}", Quoted(name))?,
            namespace => write!(f, "RoleBinding {}", Quoted(&format!("{name}/{namespace}")))?,
        }

        write!(f, " of {role_kind} {} to ", Quoted(role))?;

        match subjects.iter().find(|subject| subject.is(self.user)) {
            Some(Named::User(name)) => write!(f, "User {}", Quoted(name)),
            Some(Named::Group(name)) => write!(f, "Group {}", Quoted(name)),
            Some(Named::ServiceAccount(_, shown)) => write!(f, "ServiceAccount {}", Quoted(shown)),
            None => Ok(()),
        }
    }
}

impl Named {
    fn is(&self, user: &User) -> bool {
        match self {
            Named::User(name) | Named::ServiceAccount(name, _) => *name == user.name,
            Named::Group(name) => user.is_in(name),
        }
    }
}
