//! Affinity and anti-affinity between pods, and topology spread constraints.

use coracle_api::selector::{LabelSelector, LabelSelectorError, Operator, Requirement};
use coracle_api::value::Path;
use coracle_api::{Map, Text, Value};

use crate::labels::Labels;
use crate::pod::Pod;
use crate::related::RelatedObjects;

/// The pods that an affinity term matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peers {
    /// Sorted.
    pub namespaces: Vec<Text>,
    pub namespace_selector: LabelSelector,
    pub selector: LabelSelector,
}

impl Peers {
    pub fn include(&self, pod: &Pod, related: &RelatedObjects) -> bool {
        self.selector.matches(&pod.labels) && self.includes_namespace(&pod.namespace, related)
    }

    fn includes_namespace(&self, namespace: &Text, related: &RelatedObjects) -> bool {
        self.namespaces.binary_search(namespace).is_ok()
            || self
                .namespace_selector
                .matches(related.namespace_labels(namespace))
    }
}

/// One term: the same topology domain as the matching pods, or another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AffinityTerm {
    pub peers: Peers,
    pub topology_key: Text,
}

/// A preferred term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedTerm {
    pub weight: i64,
    pub term: AffinityTerm,
}

/// All terms of one pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodAffinity {
    pub required: Vec<AffinityTerm>,
    pub required_anti: Vec<AffinityTerm>,
    pub preferred: Vec<WeightedTerm>,
    pub preferred_anti: Vec<WeightedTerm>,
}

impl PodAffinity {
    pub(super) fn of(spec: &Map, namespace: &str) -> Result<PodAffinity, LabelSelectorError> {
        let Some(affinity) = spec.below("affinity") else {
            return Ok(PodAffinity::default());
        };
        let (to, from) = (
            affinity.below("podAffinity"),
            affinity.below("podAntiAffinity"),
        );

        Ok(PodAffinity {
            required: required(to, namespace)?,
            required_anti: required(from, namespace)?,
            preferred: preferred(to, namespace)?,
            preferred_anti: preferred(from, namespace)?,
        })
    }
}

fn required(
    affinity: Option<&Map>,
    namespace: &str,
) -> Result<Vec<AffinityTerm>, LabelSelectorError> {
    let terms =
        affinity.map(|affinity| affinity.items("requiredDuringSchedulingIgnoredDuringExecution"));
    let terms = terms
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_object);
    terms
        .map(|term| AffinityTerm::of(term, namespace))
        .collect()
}

fn preferred(
    affinity: Option<&Map>,
    namespace: &str,
) -> Result<Vec<WeightedTerm>, LabelSelectorError> {
    let terms =
        affinity.map(|affinity| affinity.items("preferredDuringSchedulingIgnoredDuringExecution"));
    let terms = terms
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_object);

    let weighted = terms.filter_map(|preference| {
        Some((
            preference.int("weight"),
            preference.below("podAffinityTerm")?,
        ))
    });

    weighted
        .map(|(weight, term)| {
            Ok(WeightedTerm {
                weight,
                term: AffinityTerm::of(term, namespace)?,
            })
        })
        .collect()
}

impl AffinityTerm {
    fn of(term: &Map, namespace: &str) -> Result<AffinityTerm, LabelSelectorError> {
        let names = term.items("namespaces").iter().filter_map(Value::as_str);
        let mut namespaces: Vec<Text> = names.map(Text::new).collect();

        // Without namespaces and selector, the pod's own namespace is used.
        if namespaces.is_empty() && !term.is_set("namespaceSelector") {
            namespaces.push(Text::new(namespace));
        }

        namespaces.sort_unstable();
        namespaces.dedup();
        let peers = Peers {
            namespaces,
            namespace_selector: LabelSelector::from_value(term.get("namespaceSelector"))?,
            selector: LabelSelector::from_value(term.get("labelSelector"))?,
        };

        Ok(AffinityTerm {
            peers,
            topology_key: Text::new(term.text("topologyKey")),
        })
    }
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadConstraint {
    pub max_skew: i64,
    pub topology_key: Text,
    /// `DoNotSchedule`; otherwise `ScheduleAnyway`.
    pub hard: bool,
    /// Selects the counted pods, with the values of `matchLabelKeys`.
    pub selector: LabelSelector,
    pub min_domains: i64,
    /// Only nodes that match the pod's node affinity count.
    pub honors_affinity: bool,
    /// Only nodes whose taints the pod tolerates count.
    pub honors_taints: bool,
}

impl SpreadConstraint {
    pub(crate) fn of(
        constraint: &Map,
        labels: &Labels,
    ) -> Result<SpreadConstraint, LabelSelectorError> {
        let mut selector = LabelSelector::from_value(constraint.get("labelSelector"))?;
        let keys = constraint
            .items("matchLabelKeys")
            .iter()
            .filter_map(Value::as_str);

        let keys = keys.filter_map(|key| Some((key, labels.get(key)?)));
        if let LabelSelector::All(requirements) = &selector {
            let mut requirements = requirements.clone();
            for (key, value) in keys {
                let equal = vec![Text::new(value)];
                requirements.push(Requirement::new(
                    Text::new(key),
                    Operator::Equals,
                    equal,
                    &Path::Root,
                )?);
            }

            selector = LabelSelector::new(requirements);
        }

        let policy = |name: &str, default: bool| match constraint.text(name) {
            "" => default,
            policy => policy == "Honor",
        };

        Ok(SpreadConstraint {
            max_skew: constraint.int("maxSkew"),
            topology_key: Text::new(constraint.text("topologyKey")),
            hard: constraint.text("whenUnsatisfiable") == "DoNotSchedule",
            selector,
            min_domains: if constraint.is_set("minDomains") {
                constraint.int("minDomains")
            } else {
                1
            },
            honors_affinity: policy("nodeAffinityPolicy", true),
            honors_taints: policy("nodeTaintsPolicy", false),
        })
    }
}
