//! Which node is related to which objects, through the pods that are bound to it.

use std::sync::Arc;

use coracle_api::{Text, Value};
use imbl::{HashMap, OrdMap};

use super::references::{self, Needs};
use crate::cache::{Derive, Entry};
use crate::storage_version::StorageVersion;

/// Derived from the caches of [`SOURCES`].
#[derive(Clone, Default)]
pub(super) struct Graph {
    /// By node, then by `namespace/name`.
    pods: HashMap<Text, OrdMap<Text, Arc<Needs>>>,
    /// The secrets of volumes, by the claims they are bound to and by their names.
    volumes: HashMap<Text, OrdMap<Text, Arc<[Text]>>>,
}

/// The resources that the graph is derived from, by their storage prefixes.
pub(super) const SOURCES: [&str; 2] = ["pods", "persistentvolumes"];

impl Graph {
    pub(super) fn has_pod(&self, node: &str, key: &str) -> bool {
        self.pods
            .get(node)
            .is_some_and(|pods| pods.contains_key(key))
    }

    /// Whether a pod of that namespace on the node needs such a thing.
    pub(super) fn needs(
        &self,
        node: &str,
        namespace: &str,
        wanted: impl Fn(&Needs) -> bool,
    ) -> bool {
        self.on(node)
            .any(|(pod, needs)| is_in(pod, namespace) && wanted(needs))
    }

    /// Whether a volume that a pod on the node uses needs the secret.
    pub(super) fn volume_needs_secret(&self, node: &str, secret: &str) -> bool {
        self.on(node).any(|(pod, needs)| {
            let namespace = pod.split_once('/').map_or("", |(namespace, _)| namespace);
            needs.claims.iter().any(|claim| {
                let volumes = self.volumes.get(format!("{namespace}/{claim}").as_str());
                volumes.is_some_and(|volumes| {
                    volumes
                        .values()
                        .any(|secrets| secrets.iter().any(|own| own == secret))
                })
            })
        })
    }

    fn on(&self, node: &str) -> impl Iterator<Item = (&Text, &Arc<Needs>)> {
        self.pods.get(node).into_iter().flat_map(OrdMap::iter)
    }

    fn take_pod(&mut self, old: Option<&Value>, new: Option<&Value>, key: &Text) {
        let node_of = |pod: &Value| {
            let node = pod
                .at(&["spec", "nodeName"])
                .and_then(Value::as_str)
                .filter(|node| !node.is_empty());
            node.map(Text::new)
        };

        if let Some(node) = old.and_then(node_of) {
            remove(&mut self.pods, &node, key);
        }

        if let Some(pod) = new
            && let Some(node) = node_of(pod)
        {
            self.pods
                .entry(node)
                .or_default()
                .insert(key.clone(), Arc::new(Needs::of(pod)));
        }
    }

    fn take_volume(&mut self, old: Option<&Value>, new: Option<&Value>, key: &Text) {
        if let Some((claim, _)) = old.and_then(references::of_volume) {
            remove(&mut self.volumes, &claim, key);
        }
        if let Some((claim, secrets)) = new.and_then(references::of_volume) {
            self.volumes
                .entry(claim)
                .or_default()
                .insert(key.clone(), secrets.into());
        }
    }
}

fn is_in(key: &str, namespace: &str) -> bool {
    key.strip_prefix(namespace)
        .is_some_and(|rest| rest.starts_with('/'))
}

fn remove<T: Clone>(map: &mut HashMap<Text, OrdMap<Text, T>>, of: &Text, key: &Text) {
    if let Some(all) = map.get_mut(of) {
        all.remove(key);
        if all.is_empty() {
            map.remove(of);
        }
    }
}

impl Derive for Graph {
    fn take(
        &mut self,
        of: usize,
        storage_version: &StorageVersion<'_>,
        old: Option<&Entry>,
        new: Option<&Entry>,
    ) {
        let Some(key) = new.or(old).map(|entry| Text::new(entry.key())) else {
            return;
        };
        let value = |entry: &Entry| entry.value(storage_version.of);
        let (old, new) = (old.map(value), new.map(value));
        match SOURCES[of] {
            "pods" => self.take_pod(old.as_ref(), new.as_ref(), &key),
            _ => self.take_volume(old.as_ref(), new.as_ref(), &key),
        }
    }
}
