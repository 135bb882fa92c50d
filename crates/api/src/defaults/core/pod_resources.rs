//! Pod-level resources, completed from those of the containers.
//!
//! Only a pod that sets some of them gets more: huge page limits from its containers, then requests
//! from the sum of its containers' requests, then from its own limits.

use std::collections::{BTreeMap, HashSet};

use crate::quantity::Quantity;
use crate::{Map, Text, Value};

type Amounts = BTreeMap<Text, Quantity>;

pub(super) fn fill_in(spec: &mut Map) {
    let Some(resources) = spec.below("resources") else {
        return;
    };

    let has_any = |list: &str| resources.below(list).is_some_and(|list| !list.is_empty());
    if !has_any("limits") && !has_any("requests") {
        return;
    }

    let limits: Vec<(Text, Value)> = effective(spec, "limits")
        .into_iter()
        .filter(|(name, _)| is_huge_pages(name) && !has(resources, "limits", name))
        .filter(|(name, _)| !has(resources, "requests", name))
        .map(|(name, amount)| (name, Value::string(amount.to_string())))
        .collect();

    let requests = effective(spec, "requests");
    let resources = spec.object_mut("resources");
    insert(resources, "limits", limits);
    let Some(limits) = resources
        .below("limits")
        .filter(|limits| !limits.is_empty())
    else {
        return;
    };

    let from_containers = requests
        .into_iter()
        .filter(|(name, _)| is_settled_by_containers(name) && !has(resources, "requests", name))
        .map(|(name, amount)| (name, Value::string(amount.to_string())));
    let mut requests: Vec<(Text, Value)> = from_containers.collect();
    let taken: HashSet<Text> = requests.iter().map(|(name, _)| name.clone()).collect();

    let missing = |name: &str| !has(resources, "requests", name) && !taken.contains(name);
    let from_limits: Vec<(Text, Value)> = limits
        .iter()
        .filter(|(name, _)| is_of_pods(name) && missing(name))
        .map(|(name, amount)| (Text::new(name), amount.clone()))
        .collect();
    requests.extend(from_limits);

    insert(resources, "requests", requests);
}

fn has(resources: &Map, list: &str, name: &str) -> bool {
    resources
        .below(list)
        .is_some_and(|list| list.contains_key(name))
}

fn insert(resources: &mut Map, list: &str, amounts: Vec<(Text, Value)>) {
    if !amounts.is_empty() {
        let list = resources.object_mut(list);
        for (name, amount) in amounts {
            list.insert(name, amount);
        }
    }
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Whether a resource is allowed at pod level.
fn is_of_pods(name: &str) -> bool {
    is_settled_by_containers(name) || is_huge_pages(name)
}

/// Whether a resource can be overcommitted: the containers' sum is a request, not a limit.
fn is_settled_by_containers(name: &str) -> bool {
    matches!(name, "cpu" | "memory")
}

/// The effective sum over the containers: of all that run concurrently, or, if larger, of an init
/// container with the sidecars started before it.
fn effective(spec: &Map, list: &str) -> Amounts {
    let amounts = |container: &Value| -> Amounts {
        let list = container
            .at(&["resources", list])
            .and_then(Value::as_object);
        let read = |(name, value)| Some((Text::new(name), Quantity::from_value(value).ok()?));
        list.into_iter()
            .flat_map(Map::iter)
            .filter_map(read)
            .collect()
    };

    let mut running = Amounts::new();
    for container in spec.items("containers") {
        add(&mut running, &amounts(container));
    }

    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in spec.items("initContainers") {
        let mut needed = amounts(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut running, &needed);
            add(&mut sidecars, &needed);
            raise(&mut starting, sidecars.clone());
        } else {
            add(&mut needed, &sidecars);
            raise(&mut starting, needed);
        }
    }

    raise(&mut running, starting);

    running
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match to.get_mut(name) {
            Some(sum) => sum.add(amount),
            None => drop(to.insert(name.clone(), amount.clone())),
        }
    }
}

/// Raises amounts to the greater of both.
fn raise(to: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        if to.get(&name).is_none_or(|least| amount > *least) {
            to.insert(name, amount);
        }
    }
}
