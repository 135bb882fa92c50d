//! One rule: which operations on which resources.

use coracle_api::catalog::Resource;
use coracle_api::{Map, Value};

use crate::admission::Operation;

/// A rule of a policy or of a webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    groups: Names,
    versions: Names,
    /// Each with its subresource, empty for the resource itself.
    resources: Vec<(Name, Name)>,
    operations: Names,
    scope: Scope,
    /// Of objects; empty: all.
    names: Vec<String>,
}

/// Which resources a rule is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    All,
    Namespaced,
    Cluster,
}

/// `*`, or one name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Any,
    One(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Names(Vec<Name>);

impl Name {
    fn new(text: &str) -> Name {
        match text {
            "*" => Name::Any,
            text => Name::One(text.to_owned()),
        }
    }

    fn is(&self, name: &str) -> bool {
        match self {
            Name::Any => true,
            Name::One(one) => one == name,
        }
    }
}

impl Names {
    fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|known| known.is(name))
    }
}

impl Rule {
    /// A `RuleWithOperations`, with or without `resourceNames`.
    pub fn read(rule: &Map) -> Rule {
        let names = |field: &str| Names(texts(rule, field).map(Name::new).collect());
        let resources = texts(rule, "resources").map(|resource| {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            (Name::new(resource), Name::new(subresource))
        });

        Rule {
            groups: names("apiGroups"),
            versions: names("apiVersions"),
            resources: resources.collect(),
            operations: names("operations"),
            scope: match rule.str("scope").unwrap_or("*") {
                "Namespaced" => Scope::Namespaced,
                "Cluster" => Scope::Cluster,
                _ => Scope::All,
            },
            names: texts(rule, "resourceNames").map(str::to_owned).collect(),
        }
    }

    /// All rules of a list.
    pub fn read_all(rules: Option<&Value>) -> Vec<Rule> {
        let rules = rules.and_then(Value::as_array).unwrap_or_default();
        let rules = rules.iter().filter_map(Value::as_object);
        rules.map(Rule::read).collect()
    }

    /// Whether it is for an operation on a resource. `namespace` is empty for cluster-wide objects,
    /// and that of a namespace is its name.
    pub(super) fn includes(
        &self,
        resource: &Resource,
        subresource: &str,
        operation: Operation,
        namespace: &str,
    ) -> bool {
        self.includes_scope(resource, namespace)
            && self.operations.contains(operation.as_str())
            && self.groups.contains(&resource.group)
            && self.versions.contains(&resource.version)
            && self
                .resources
                .iter()
                .any(|(name, sub)| name.is(&resource.plural) && sub.is(subresource))
    }

    pub(super) fn includes_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|known| known == name)
    }

    fn includes_scope(&self, resource: &Resource, namespace: &str) -> bool {
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        match self.scope {
            Scope::All => true,
            Scope::Namespaced => !is_namespace && !namespace.is_empty(),
            Scope::Cluster => is_namespace || namespace.is_empty(),
        }
    }
}

fn texts<'a>(of: &'a Map, field: &str) -> impl Iterator<Item = &'a str> {
    let texts = of.get(field).and_then(Value::as_array).unwrap_or_default();
    texts.iter().filter_map(Value::as_str)
}
