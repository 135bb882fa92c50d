//! `InterPodAffinity`: pods that must or should be together, or apart.
//!
//! What counts is the topology domain (a value of a node label), not the node. For one pod three
//! tables are built from the cache's counters, each with a number per domain: pods that match all
//! its affinity terms, pods that match each anti-affinity term, and existing pods with an
//! anti-affinity term that matches it.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Text;

use super::{Args, Handle, args};
use crate::cache::{Cache, Column, Counts, ExistingTermKind, NodeInfo, PodClass, Slot};
use crate::events::Event;
use crate::framework::{
    Cycle, Extensions, Filter, MAX_SCORE, PreFilter, PreFilterResult, PreScore, QueueingHint,
    Refusal, Score, Verdict,
};
use crate::node::Node;
use crate::pod::{AffinityTerm, Pod};
use crate::related::RelatedObjects;

pub(super) fn create(_: &Handle, args: Args<'_>) -> Result<Extensions, String> {
    let plugin = Arc::new(args::inter_pod_affinity(args)?);
    Ok(Extensions {
        filter: Some(plugin.clone()),
        score: Some(plugin.clone()),
        queueing_hint: Some(plugin),
        ..Extensions::default()
    })
}

pub(super) struct InterPodAffinity {
    /// The weight in the score of an existing pod's required affinity to the incoming one.
    pub(super) hard_affinity_weight: i64,
    /// Preferred terms of existing pods count only if the incoming one has some.
    pub(super) ignore_preferred_terms_of_existing_pods: bool,
}

/// A number for each domain of one node label.
#[derive(Clone)]
struct DomainCounts {
    column: Arc<Column>,
    numbers: Vec<i64>,
}

impl DomainCounts {
    fn new(cache: &Cache, key: &str) -> DomainCounts {
        let column = cache.column(key);
        let numbers = vec![0; column.size()];
        DomainCounts { column, numbers }
    }

    /// The number of the node's domain; `None` if it lacks the label.
    fn at(&self, slot: Slot) -> Option<i64> {
        self.column
            .domain(slot)
            .map(|domain| self.numbers[domain.index()])
    }

    fn add(&mut self, slot: Slot, number: i64) {
        if let Some(domain) = self.column.domain(slot) {
            self.numbers[domain.index()] += number;
        }
    }

    fn add_all(&mut self, cache: &Cache, counts: &Counts, weight: i64) {
        for slot in cache.order() {
            self.add(*slot, counts.on(*slot) * weight);
        }
    }

    fn are_zero(&self) -> bool {
        self.numbers.iter().all(|number| *number == 0)
    }
}

/// Whether all affinity terms match the pod. Without any term, they do not.
fn all_include(terms: &[AffinityTerm], pod: &Pod, related: &RelatedObjects) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.peers.include(pod, related))
}

impl PreFilter for InterPodAffinity {
    fn pre_filter<'c>(&'c self, cycle: Cycle<'c>) -> Result<PreFilterResult<'c>, Refusal> {
        if let Some(error) = &cycle.pod.malformed {
            return Err(Refusal::never(error.clone()));
        }

        let (cache, pod) = (cycle.cache, &**cycle.pod);
        let state = AffinityFilter {
            pod,
            related: cache.related(),
            cache,
            near: affinity_counts(cache, &pod.affinity.required),
            far: pod
                .affinity
                .required_anti
                .iter()
                .map(|term| anti_affinity_counts(cache, term))
                .collect(),
            existing: existing_anti_affinity_counts(cache, pod),
        };
        let needs = !(state.near.is_empty() && state.far.is_empty() && state.existing.is_empty());

        Ok(if needs {
            PreFilterResult::All(Box::new(state))
        } else {
            PreFilterResult::Skip
        })
    }
}

fn affinity_counts(cache: &Cache, terms: &[AffinityTerm]) -> Vec<DomainCounts> {
    if terms.is_empty() {
        return Vec::new();
    }

    let counts = cache.counts(&PodClass::Peers(
        terms.iter().map(|term| term.peers.clone()).collect(),
    ));
    let places = terms.iter().map(|term| {
        let mut places = DomainCounts::new(cache, &term.topology_key);
        places.add_all(cache, &counts, 1);
        places
    });

    places.collect()
}

fn anti_affinity_counts(cache: &Cache, term: &AffinityTerm) -> DomainCounts {
    let mut places = DomainCounts::new(cache, &term.topology_key);
    places.add_all(
        cache,
        &cache.counts(&PodClass::Peers(vec![term.peers.clone()])),
        1,
    );
    places
}

fn existing_anti_affinity_counts(cache: &Cache, pod: &Pod) -> BTreeMap<Text, DomainCounts> {
    let mut existing: BTreeMap<Text, DomainCounts> = BTreeMap::new();
    cache.for_each_existing_term(|carried, counts| {
        let about_it = || carried.term.peers.include(pod, cache.related());
        if carried.kind == ExistingTermKind::RequiredAntiAffinity && about_it() {
            let key = &carried.term.topology_key;
            let places = existing
                .entry(key.clone())
                .or_insert_with(|| DomainCounts::new(cache, key));
            places.add_all(cache, counts, 1);
        }
    });

    existing.retain(|_, places| !places.are_zero());

    existing
}

#[derive(Clone)]
struct AffinityFilter<'c> {
    pod: &'c Pod,
    cache: &'c Cache,
    related: &'c RelatedObjects,
    /// One per affinity term.
    near: Vec<DomainCounts>,
    /// One per anti-affinity term.
    far: Vec<DomainCounts>,
    /// By node label: existing pods with anti-affinity.
    existing: BTreeMap<Text, DomainCounts>,
}

impl AffinityFilter<'_> {
    fn is_near(&self, slot: Slot) -> bool {
        let places: Option<Vec<i64>> = self.near.iter().map(|places| places.at(slot)).collect();
        // A node without the label is in no domain.
        let Some(numbers) = places else { return false };
        numbers.iter().all(|number| *number > 0) || self.is_first()
    }

    /// The first pod of a group with affinity to itself finds no other: it may go anywhere.
    fn is_first(&self) -> bool {
        self.near.iter().all(DomainCounts::are_zero)
            && all_include(&self.pod.affinity.required, self.pod, self.related)
    }

    fn change(&mut self, other: &Pod, slot: Slot, by: i64) {
        let affinity = &self.pod.affinity;
        if all_include(&affinity.required, other, self.related) {
            self.near.iter_mut().for_each(|places| places.add(slot, by));
        }

        for (term, places) in affinity.required_anti.iter().zip(&mut self.far) {
            if term.peers.include(other, self.related) {
                places.add(slot, by);
            }
        }

        for term in &other.affinity.required_anti {
            if term.peers.include(self.pod, self.related) {
                let key = &term.topology_key;
                let places = self
                    .existing
                    .entry(key.clone())
                    .or_insert_with(|| DomainCounts::new(self.cache, key));
                places.add(slot, by);
            }
        }
    }
}

impl<'c> Filter<'c> for AffinityFilter<'c> {
    fn check(&self, node: &NodeInfo) -> Verdict {
        let slot = node.slot;
        if !self.near.is_empty() && !self.is_near(slot) {
            return Verdict::never("node(s) didn't match pod affinity rules");
        }

        let crowded = |places: &DomainCounts| places.at(slot).is_some_and(|number| number > 0);
        if self.far.iter().any(crowded) {
            return Verdict::not_now("node(s) didn't match pod anti-affinity rules");
        }
        if self.existing.values().any(crowded) {
            return Verdict::not_now("node(s) didn't satisfy existing pods anti-affinity rules");
        }

        Verdict::Fits
    }

    fn pod_added(&mut self, pod: &Pod, node: &NodeInfo) {
        self.change(pod, node.slot, 1);
    }

    fn pod_removed(&mut self, pod: &Pod, node: &NodeInfo) {
        self.change(pod, node.slot, -1);
    }

    fn fork(&self) -> Box<dyn Filter<'c> + 'c> {
        Box::new(self.clone())
    }
}

impl PreScore for InterPodAffinity {
    fn pre_score<'c>(
        &'c self,
        cycle: Cycle<'c>,
        _nodes: &[&'c NodeInfo],
    ) -> Result<Option<Box<dyn Score + 'c>>, Refusal> {
        let (cache, pod) = (cycle.cache, &**cycle.pod);
        let affinity = &pod.affinity;
        let has_wishes = !affinity.preferred.is_empty() || !affinity.preferred_anti.is_empty();
        if self.ignore_preferred_terms_of_existing_pods && !has_wishes {
            return Ok(None);
        }

        let mut scores = AffinityScore {
            cache,
            by_key: BTreeMap::new(),
        };

        let own = affinity.preferred.iter().map(|preference| (preference, 1));
        for (preference, sign) in own.chain(
            affinity
                .preferred_anti
                .iter()
                .map(|preference| (preference, -1)),
        ) {
            let counts = cache.counts(&PodClass::Peers(vec![preference.term.peers.clone()]));
            scores.add(&preference.term, &counts, preference.weight * sign);
        }

        cache.for_each_existing_term(|carried, counts| {
            let weight = match carried.kind {
                ExistingTermKind::RequiredAffinity => self.hard_affinity_weight,
                ExistingTermKind::PreferredAffinity => carried.weight,
                ExistingTermKind::PreferredAntiAffinity => -carried.weight,
                ExistingTermKind::RequiredAntiAffinity => 0,
            };

            if weight != 0 && carried.term.peers.include(pod, cache.related()) {
                scores.add(&carried.term, counts, weight);
            }
        });

        Ok((!scores.by_key.is_empty()).then(|| Box::new(scores) as Box<dyn Score + 'c>))
    }
}

/// The score of each domain for the pod.
struct AffinityScore<'c> {
    cache: &'c Cache,
    by_key: BTreeMap<Text, DomainCounts>,
}

impl AffinityScore<'_> {
    fn add(&mut self, term: &AffinityTerm, counts: &Counts, weight: i64) {
        let key = &term.topology_key;
        let places = self
            .by_key
            .entry(key.clone())
            .or_insert_with(|| DomainCounts::new(self.cache, key));
        places.add_all(self.cache, counts, weight);
    }
}

impl Score for AffinityScore<'_> {
    fn score(&self, node: &NodeInfo) -> i64 {
        self.by_key
            .values()
            .filter_map(|places| places.at(node.slot))
            .sum()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "upstream computes it in floats"
    )]
    fn normalize(&self, scores: &mut [i64]) {
        let least = scores.iter().copied().min().unwrap_or_default();
        let range = scores.iter().copied().max().unwrap_or_default() - least;
        for score in scores {
            *score = if range == 0 {
                0
            } else {
                (MAX_SCORE as f64 * ((*score - least) as f64 / range as f64)) as i64
            };
        }
    }
}

impl QueueingHint for InterPodAffinity {
    fn may_help(&self, pod: &Pod, event: &Event) -> bool {
        match event {
            Event::PodChanged { old, new } if new.uid == pod.uid => old.labels != new.labels,
            Event::PodChanged { old, new } => {
                new.is_placed() && old.labels != new.labels && matters(pod, Some(old), Some(new))
            }
            Event::PodAdded(new) => matters(pod, None, Some(new)),
            Event::PodRemoved(old) => old.is_placed() && matters(pod, Some(old), None),
            Event::NodeAdded(node) => domain_matters(pod, None, node),
            Event::NodeChanged { old, new } => {
                old.labels != new.labels && domain_matters(pod, Some(old), new)
            }
            _ => false,
        }
    }
}

/// Whether an added, changed or removed pod could let this one fit. Namespaces are not available
/// here: a term with a namespace selector may match any.
fn matters(pod: &Pod, old: Option<&Pod>, new: Option<&Pod>) -> bool {
    let about = |term: &AffinityTerm, other: &Pod| {
        let peers = &term.peers;
        let everywhere = !matches!(
            peers.namespace_selector,
            coracle_api::selector::LabelSelector::Nothing
        );
        peers.selector.matches(&other.labels)
            && (everywhere || peers.namespaces.contains(&other.namespace))
    };

    let any = |terms: &[AffinityTerm], other: Option<&Pod>| {
        other.is_some_and(|other| terms.iter().any(|term| about(term, other)))
    };
    let all = |terms: &[AffinityTerm], other: Option<&Pod>| {
        !terms.is_empty() && other.is_some_and(|other| terms.iter().all(|term| about(term, other)))
    };

    let (near, far) = (&pod.affinity.required, &pod.affinity.required_anti);
    let comes_near = all(near, new) && !all(near, old);
    let goes_away = any(far, old) && !any(far, new);
    let frees =
        new.is_none() && old.is_some_and(|gone| any(&gone.affinity.required_anti, Some(pod)));

    comes_near || goes_away || frees
}

fn domain_matters(pod: &Pod, old: Option<&Node>, new: &Node) -> bool {
    let place =
        |node: &Node, term: &AffinityTerm| node.labels.get(&term.topology_key).map(Text::new);
    let near = pod.affinity.required.iter().any(|term| {
        let now = place(new, term);
        now.is_some() && old.is_none_or(|old| place(old, term) != now)
    });

    // A node without the label is away from all pods.
    let far = pod.affinity.required_anti.iter().any(|term| {
        old.is_none_or(|old| {
            let before = place(old, term);
            before.is_some() && before != place(new, term)
        })
    });

    near || far
}
