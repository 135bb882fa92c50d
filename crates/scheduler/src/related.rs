//! Related objects: namespaces, the controllers and Services that group pods, and disruption
//! budgets. Updated by the event loop; plugins only read.

use std::collections::HashMap;

use coracle_api::selector::{LabelSelector, Requirement};
use coracle_api::{Map, Text, Value};

use crate::labels::Labels;
use crate::pod::Pod;

/// A namespace and a name in it.
pub type Key = (Text, Text);

/// All related objects, by kind.
#[derive(Debug, Default)]
pub struct RelatedObjects {
    namespaces: HashMap<Text, Labels>,
    /// By namespace, because they are searched for every pod.
    services: HashMap<Text, HashMap<Text, LabelSelector>>,
    groups: HashMap<(Group, Text, Text), LabelSelector>,
    budgets: HashMap<Key, Budget>,
    empty: Labels,
}

/// A kind of controller that groups pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    ReplicationController,
    ReplicaSet,
    StatefulSet,
}

/// A PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub namespace: Text,
    pub selector: LabelSelector,
    pub allowed: i64,
    /// Pods whose eviction is already counted in `allowed`.
    pub disrupted: Vec<Text>,
}

impl RelatedObjects {
    /// The labels of a namespace; empty if it is unknown.
    pub fn namespace_labels(&self, name: &str) -> &Labels {
        self.namespaces.get(name).unwrap_or(&self.empty)
    }

    /// Updates a namespace, or removes it if `object` is `None`. Returns whether its labels
    /// changed.
    pub fn set_namespace(&mut self, name: &str, object: Option<&Value>) -> bool {
        match object {
            None => self
                .namespaces
                .remove(name)
                .is_some_and(|labels| !labels.is_empty()),
            Some(object) => {
                let labels = Labels::from_map(object.meta().labels());
                self.namespaces
                    .insert(Text::new(name), labels.clone())
                    .unwrap_or_default()
                    != labels
            }
        }
    }

    pub fn set_service(&mut self, namespace: &str, name: &str, object: Option<&Value>) {
        // A Service without a selector groups nothing.
        let selector = object
            .and_then(|service| service.at(&["spec", "selector"]))
            .and_then(Value::as_object);
        let services = self.services.entry(Text::new(namespace)).or_default();
        match selector {
            Some(labels) => services.insert(Text::new(name), LabelSelector::from_labels(labels)),
            None => services.remove(name),
        };
    }

    pub fn set_group(&mut self, group: Group, namespace: &str, name: &str, object: Option<&Value>) {
        let key = (group, Text::new(namespace), Text::new(name));
        let selector = object.and_then(|object| object.at(&["spec", "selector"]));
        let selector = match group {
            Group::ReplicationController => selector
                .and_then(Value::as_object)
                .map(LabelSelector::from_labels),
            // An invalid selector groups nothing.
            _ => selector.and_then(|selector| LabelSelector::from_value(Some(selector)).ok()),
        };

        match selector {
            Some(selector) => self.groups.insert(key, selector),
            None => self.groups.remove(&key),
        };
    }

    pub fn set_budget(&mut self, namespace: &str, name: &str, object: Option<&Value>) {
        let key = (Text::new(namespace), Text::new(name));
        match object.and_then(|object| Budget::of(namespace, object)) {
            Some(budget) => self.budgets.insert(key, budget),
            None => self.budgets.remove(&key),
        };
    }

    pub fn budgets(&self) -> impl Iterator<Item = &Budget> {
        self.budgets.values()
    }

    /// The selector of the pods that belong together with this one: those selected by its Services
    /// and its controller. Empty if there are none.
    pub fn default_selector(&self, pod: &Pod) -> LabelSelector {
        let services = self
            .services
            .get(&pod.namespace)
            .into_iter()
            .flat_map(HashMap::values);
        let services = services.filter(|selector| selector.matches(&pod.labels));
        let mut all: Vec<Requirement> = services
            .flat_map(|selector| selector.requirements())
            .cloned()
            .collect();

        all.extend(
            self.owner_selector(pod)
                .map(LabelSelector::requirements)
                .unwrap_or_default()
                .iter()
                .cloned(),
        );

        let mut distinct: Vec<Requirement> = Vec::with_capacity(all.len());
        for requirement in all {
            if !distinct.contains(&requirement) {
                distinct.push(requirement);
            }
        }

        LabelSelector::new(distinct)
    }

    fn owner_selector(&self, pod: &Pod) -> Option<&LabelSelector> {
        let owner = pod.owner.as_ref()?;
        let group = match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1", "ReplicationController") => Group::ReplicationController,
            ("apps/v1", "ReplicaSet") => Group::ReplicaSet,
            ("apps/v1", "StatefulSet") => Group::StatefulSet,
            _ => return None,
        };
        self.groups
            .get(&(group, pod.namespace.clone(), owner.name.clone()))
    }
}

impl Budget {
    fn of(namespace: &str, object: &Value) -> Option<Budget> {
        let selector = LabelSelector::from_value(object.at(&["spec", "selector"])).ok()?;
        let status = object.get("status").and_then(Value::as_object);
        let disrupted = status
            .and_then(|status| status.below("disruptedPods"))
            .into_iter()
            .flat_map(Map::keys);

        Some(Budget {
            namespace: Text::new(namespace),
            selector,
            allowed: status.map_or(0, |status| status.int("disruptionsAllowed")),
            disrupted: disrupted.map(Text::new).collect(),
        })
    }

    /// Whether the pod's eviction counts against the budget.
    pub fn protects(&self, pod: &Pod) -> bool {
        self.namespace == pod.namespace
            && !pod.labels.is_empty()
            && !self.selector.is_everything()
            && self.selector.matches(&pod.labels)
            && !self.disrupted.contains(&pod.name)
    }
}
