//! Node selection of a pod: its `nodeSelector` and its node affinity, required and preferred.
//!
//! The terms of an object ([`NodeSelectorTerm`], small and borrowed) are compiled once into a
//! [`NodeSelector`] or [`PreferredTerms`] and then matched against every node. A term without any
//! requirement matches no node. An invalid required term is an error only if no other term matches,
//! as in upstream; an invalid preferred one always.

mod term;
#[cfg(test)]
mod tests;

use crate::field_error::FieldErrors;
use crate::selector::{LabelSelector, Lookup};
use crate::value::{Path, Value};
use term::CompiledTerm;
pub use term::{NodeSelectorRequirement, NodeSelectorTerm};

/// The properties of a node that selectors match.
#[derive(Debug)]
pub struct NodeView<'a, L: ?Sized> {
    pub name: &'a str,
    pub labels: &'a L,
}

/// Terms of which one must match.
#[derive(Clone, Debug)]
pub struct NodeSelector {
    terms: Vec<Result<CompiledTerm, FieldErrors>>,
}

impl NodeSelector {
    /// Compiles terms; `path` is the path of the list, for error messages.
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

    /// All errors of the terms, without matching a node.
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
    /// None matches, and some are invalid.
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

/// The required node selection of a pod.
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

    /// The required node selection of a pod's spec.
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

    /// Whether the node satisfies all requirements; see [`NodeSelector::matches`] for the error.
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

/// The preferred node selection of a pod: weighted terms.
#[derive(Clone, Debug)]
pub struct PreferredTerms {
    terms: Vec<(i64, CompiledTerm)>,
}

impl PreferredTerms {
    /// Compiles weighted terms. Terms that are empty or have no weight are skipped without
    /// validation.
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

    /// The preferred node selection of a pod's spec.
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

    /// The sum of the weights of the terms that match the node.
    pub fn score(&self, node: &NodeView<'_, impl Lookup + ?Sized>) -> i64 {
        self.terms
            .iter()
            .filter(|(_, term)| term.matches(node))
            .map(|(weight, _)| weight)
            .sum()
    }
}
