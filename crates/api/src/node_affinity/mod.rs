//! Which nodes a pod wants: its `nodeSelector` and its node affinity, required and preferred.
//!
//! The terms of an object ([`NodeSelectorTerm`], small and borrowed) are compiled once into a
//! [`NodeSelector`] or [`PreferredTerms`] and then asked for every node. A term without any
//! requirement matches no node. A required term that makes no sense is an error only if no other
//! term matches, as upstream has it; a preferred one at once.

mod term;
#[cfg(test)]
mod tests;

use crate::field_error::FieldErrors;
use crate::selector::{LabelSelector, Lookup};
use crate::value::{Path, Value};
use term::CompiledTerm;
pub use term::{NodeSelectorRequirement, NodeSelectorTerm};

/// What a node is selected by.
#[derive(Debug)]
pub struct NodeView<'a, L: ?Sized> {
    pub name: &'a str,
    pub labels: &'a L,
}

/// Terms of which one has to match.
#[derive(Clone, Debug)]
pub struct NodeSelector {
    terms: Vec<Result<CompiledTerm, FieldErrors>>,
}

impl NodeSelector {
    /// Compiles terms; `path` is where the list of them stands, for the complaints.
    pub fn new(terms: &[NodeSelectorTerm<'_>], path: &Path<'_>) -> NodeSelector {
        let list = path.field("nodeSelectorTerms");
        let compiled = terms
            .iter()
            .enumerate()
            .filter(|(_, term)| !term.is_empty());
        NodeSelector {
            terms: compiled
                .map(|(index, term)| CompiledTerm::new(term, &list.index(index)))
                .collect(),
        }
    }

    /// Compiles the `NodeSelector` of an object.
    pub fn from_value(selector: &Value, path: &Path<'_>) -> NodeSelector {
        NodeSelector::new(
            &NodeSelectorTerm::list(selector.get("nodeSelectorTerms")),
            path,
        )
    }

    /// All that makes no sense in it: for those who do not want to wait until nothing matches.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let errors: Vec<_> = self
            .terms
            .iter()
            .filter_map(|term| term.as_ref().err())
            .collect();
        flattened(&errors)
    }

    /// Whether some term matches the node.
    ///
    /// # Errors
    /// If none does, and some make no sense.
    pub fn matches(&self, node: &NodeView<'_, impl Lookup + ?Sized>) -> Result<bool, FieldErrors> {
        let mut errors = Vec::new();
        for term in &self.terms {
            match term {
                Ok(term) if term.matches(node) => return Ok(true),
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        flattened(&errors).map(|()| false)
    }
}

fn flattened(errors: &[&FieldErrors]) -> Result<(), FieldErrors> {
    let errors: FieldErrors = errors
        .iter()
        .flat_map(|errors| errors.iter().cloned())
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// What a pod demands of its node.
#[derive(Clone, Debug)]
pub struct RequiredNodeAffinity {
    labels: Option<LabelSelector>,
    selector: Option<NodeSelector>,
}

impl RequiredNodeAffinity {
    /// Either may be absent.
    pub fn new(
        labels: Option<LabelSelector>,
        selector: Option<NodeSelector>,
    ) -> RequiredNodeAffinity {
        RequiredNodeAffinity { labels, selector }
    }

    /// The demands of a pod's spec.
    pub fn from_pod_spec(spec: &Value) -> RequiredNodeAffinity {
        let labels = spec
            .get("nodeSelector")
            .and_then(Value::as_object)
            .map(LabelSelector::from_labels);

        let required = spec.at(&[
            "affinity",
            "nodeAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
        ]);
        let required = required.filter(|selector| !selector.is_null());
        RequiredNodeAffinity::new(
            labels,
            required.map(|selector| NodeSelector::from_value(selector, &Path::Root)),
        )
    }

    /// Whether the node meets all demands; see [`NodeSelector::matches`] for the error.
    pub fn matches(&self, node: &NodeView<'_, impl Lookup + ?Sized>) -> Result<bool, FieldErrors> {
        if self
            .labels
            .as_ref()
            .is_some_and(|labels| !labels.matches(node.labels))
        {
            return Ok(false);
        }
        self.selector
            .as_ref()
            .map_or(Ok(true), |selector| selector.matches(node))
    }
}

/// What a pod would like of its node, each wish with a weight.
#[derive(Clone, Debug)]
pub struct PreferredTerms {
    terms: Vec<(i64, CompiledTerm)>,
}

impl PreferredTerms {
    /// Compiles weighted terms. Those of no weight, or empty, are not even looked at.
    pub fn new(
        terms: &[(i64, NodeSelectorTerm<'_>)],
        path: &Path<'_>,
    ) -> Result<PreferredTerms, FieldErrors> {
        let mut compiled = Vec::with_capacity(terms.len());
        let mut errors = Vec::new();
        for (index, (weight, term)) in terms.iter().enumerate() {
            if *weight == 0 || term.is_empty() {
                continue;
            }
            match CompiledTerm::new(term, &path.index(index)) {
                Ok(term) => compiled.push((*weight, term)),
                Err(error) => errors.push(error),
            }
        }

        flattened(&errors.iter().collect::<Vec<_>>())?;

        Ok(PreferredTerms { terms: compiled })
    }

    /// The wishes of a pod's spec.
    pub fn from_pod_spec(spec: &Value) -> Result<PreferredTerms, FieldErrors> {
        let preferred = spec.at(&[
            "affinity",
            "nodeAffinity",
            "preferredDuringSchedulingIgnoredDuringExecution",
        ]);

        let preferred = preferred
            .and_then(Value::as_array)
            .unwrap_or_default()
            .iter();

        let terms = preferred.map(|preferred| {
            let weight = preferred
                .get("weight")
                .and_then(Value::as_int)
                .unwrap_or_default();

            (
                weight,
                preferred
                    .get("preference")
                    .map(NodeSelectorTerm::from_value)
                    .unwrap_or_default(),
            )
        });

        PreferredTerms::new(&terms.collect::<Vec<_>>(), &Path::Root)
    }

    /// The weights of the wishes that the node fulfils.
    pub fn score(&self, node: &NodeView<'_, impl Lookup + ?Sized>) -> i64 {
        self.terms
            .iter()
            .filter(|(_, term)| term.matches(node))
            .map(|(weight, _)| weight)
            .sum()
    }
}
