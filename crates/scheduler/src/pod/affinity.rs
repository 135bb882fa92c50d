//! What a pod wants of the pods around it: affinity and anti-affinity between pods, and even
//! spreading.

use coracle_api::selector::{LabelSelector, LabelSelectorError, Operator, Requirement};
use coracle_api::value::Path;
use coracle_api::{Map, Text, Value};

use crate::labels::Labels;
use crate::pod::Pod;
use crate::surroundings::Surroundings;

/// Which pods a term of affinity is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peers {
    /// In order.
    pub namespaces: Vec<Text>,
    pub namespace_selector: LabelSelector,
    pub selector: LabelSelector,
}

impl Peers {
    pub fn include(&self, pod: &Pod, surroundings: &Surroundings) -> bool {
        self.selector.matches(&pod.labels) && self.includes_namespace(&pod.namespace, surroundings)
    }

    fn includes_namespace(&self, namespace: &Text, surroundings: &Surroundings) -> bool {
        self.namespaces.binary_search(namespace).is_ok()
            || self
                .namespace_selector
                .matches(surroundings.namespace_labels(namespace))
    }
}

/// One term: to be (or not to be) in the same place as those pods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AffinityTerm {
    pub peers: Peers,
    pub topology_key: Text,
}

/// A term that is only a wish.
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

    let weighted =
        terms.filter_map(|wish| Some((wish.int("weight"), wish.below("podAffinityTerm")?)));

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

        // Neither names nor a selector: the pod's own namespace is meant.
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

/// How evenly pods are to be spread over the values of a node label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadConstraint {
    pub max_skew: i64,
    pub topology_key: Text,
    /// `DoNotSchedule`: it must hold; otherwise it is a wish.
    pub hard: bool,
    /// Which pods are counted, the values of `matchLabelKeys` included.
    pub selector: LabelSelector,
    pub min_domains: i64,
    /// Only nodes that the pod's node affinity allows are counted.
    pub honors_affinity: bool,
    /// Only nodes whose taints the pod tolerates are counted.
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
