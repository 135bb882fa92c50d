//! How many pods of a class each node has, updated as pods are added and removed.
//!
//! Spreading and affinity need the same counts for every pod of a Deployment: how many pods like
//! this are on each node? The first time they are computed by scanning, afterwards each added or
//! removed pod changes one number. Classes that have not been used for a while are dropped.

use std::collections::HashMap;
use std::sync::Arc;

use coracle_api::Text;
use coracle_api::selector::LabelSelector;

use super::node_info::{NodeInfo, Slot};
use crate::pod::{AffinityTerm, Peers, Pod};
use crate::related::RelatedObjects;

/// Pods by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    by_slot: Vec<u32>,
    total: u64,
}

impl Counts {
    pub fn on(&self, slot: Slot) -> i64 {
        self.by_slot
            .get(slot.index())
            .copied()
            .unwrap_or_default()
            .into()
    }

    pub fn is_zero(&self) -> bool {
        self.total == 0
    }

    fn add(&mut self, slot: Slot) {
        if self.by_slot.len() <= slot.index() {
            self.by_slot.resize(slot.index() + 1, 0);
        }
        self.by_slot[slot.index()] += 1;
        self.total += 1;
    }

    fn remove(&mut self, slot: Slot) {
        self.by_slot[slot.index()] -= 1;
        self.total -= 1;
    }
}

/// A class of pods to count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PodClass {
    /// Pods of a namespace that match a selector and are not being deleted.
    Selected {
        namespace: Text,
        selector: LabelSelector,
    },
    /// Pods that match all these affinity terms.
    Peers(Vec<Peers>),
}

impl PodClass {
    fn has(&self, pod: &Pod, related: &RelatedObjects) -> bool {
        match self {
            PodClass::Selected {
                namespace,
                selector,
            } => !pod.deleting && pod.namespace == *namespace && spread_counts(selector, pod),
            PodClass::Peers(all) => all.iter().all(|peers| peers.include(pod, related)),
        }
    }
}

/// Whether a spread constraint with this selector counts the pod. An empty selector counts nothing.
pub fn spread_counts(selector: &LabelSelector, pod: &Pod) -> bool {
    !selector.is_everything() && selector.matches(&pod.labels)
}

/// An affinity term of existing pods that concerns incoming pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExistingTerm {
    pub kind: ExistingTermKind,
    /// 0 for required terms.
    pub weight: i64,
    pub term: AffinityTerm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExistingTermKind {
    RequiredAffinity,
    RequiredAntiAffinity,
    PreferredAffinity,
    PreferredAntiAffinity,
}

/// All counters of the cache.
#[derive(Debug, Default)]
pub(super) struct Counters {
    classes: HashMap<PodClass, Counter>,
    carried: HashMap<ExistingTerm, Counts>,
    clock: u64,
}

#[derive(Debug)]
struct Counter {
    counts: Arc<Counts>,
    last_use: u64,
}

impl Counters {
    pub(super) fn pod_added(&mut self, slot: Slot, pod: &Pod, related: &RelatedObjects) {
        for (class, counter) in &mut self.classes {
            if class.has(pod, related) {
                Arc::make_mut(&mut counter.counts).add(slot);
            }
        }
        for carried in carried(pod) {
            self.carried.entry(carried).or_default().add(slot);
        }
    }

    pub(super) fn pod_removed(&mut self, slot: Slot, pod: &Pod, related: &RelatedObjects) {
        for (class, counter) in &mut self.classes {
            if class.has(pod, related) {
                Arc::make_mut(&mut counter.counts).remove(slot);
            }
        }

        for carried in carried(pod) {
            if let Some(counts) = self.carried.get_mut(&carried) {
                counts.remove(slot);
                if counts.is_zero() {
                    self.carried.remove(&carried);
                }
            }
        }
    }

    /// Labels of namespaces changed: classes that depend on them are counted again on the next use.
    pub(super) fn namespaces_changed(&mut self) {
        self.classes
            .retain(|class, _| matches!(class, PodClass::Selected { .. }));
    }

    pub(super) fn carried(&self) -> impl Iterator<Item = (&ExistingTerm, &Counts)> {
        self.carried.iter()
    }

    /// The counts of a class; computed from `nodes` on first use.
    pub(super) fn counts<'n>(
        &mut self,
        class: &PodClass,
        nodes: impl Iterator<Item = &'n NodeInfo>,
        related: &RelatedObjects,
    ) -> Arc<Counts> {
        self.clock += 1;

        if let Some(counter) = self.classes.get_mut(class) {
            counter.last_use = self.clock;
            return Arc::clone(&counter.counts);
        }

        let mut counts = Counts::default();
        for info in nodes {
            for _ in info.pods.iter().filter(|pod| class.has(pod, related)) {
                counts.add(info.slot);
            }
        }

        self.forget_old();
        let counts = Arc::new(counts);
        self.classes.insert(
            class.clone(),
            Counter {
                counts: Arc::clone(&counts),
                last_use: self.clock,
            },
        );

        counts
    }

    fn forget_old(&mut self) {
        if self.classes.len() >= MAX_CLASSES {
            let mut uses: Vec<u64> = self
                .classes
                .values()
                .map(|counter| counter.last_use)
                .collect();
            uses.sort_unstable();
            let median = uses[uses.len() / 2];
            self.classes.retain(|_, counter| counter.last_use > median);
        }
    }
}

fn carried(pod: &Pod) -> impl Iterator<Item = ExistingTerm> {
    let affinity = &pod.affinity;
    let demands = [
        (ExistingTermKind::RequiredAffinity, &affinity.required),
        (
            ExistingTermKind::RequiredAntiAffinity,
            &affinity.required_anti,
        ),
    ];

    let preferences = [
        (ExistingTermKind::PreferredAffinity, &affinity.preferred),
        (
            ExistingTermKind::PreferredAntiAffinity,
            &affinity.preferred_anti,
        ),
    ];

    let demands = demands.into_iter().flat_map(|(kind, terms)| {
        terms.iter().map(move |term| ExistingTerm {
            kind,
            weight: 0,
            term: term.clone(),
        })
    });

    demands.chain(preferences.into_iter().flat_map(|(kind, terms)| {
        terms.iter().map(move |preference| ExistingTerm {
            kind,
            weight: preference.weight,
            term: preference.term.clone(),
        })
    }))
}

/// The most classes kept: each costs a comparison for every pod that is added or removed.
const MAX_CLASSES: usize = 512;
