//! One term: requirements on a node's labels and fields, all of which must hold.

use super::NodeView;
use crate::field_error::{FieldError, FieldErrors};
use crate::selector::{
    FieldSelector, FieldTerm, LabelSelector, Lookup, Operator, Requirement, shown,
};
use crate::value::{Path, Text, Value};

/// A term of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelectorTerm<'a> {
    pub match_expressions: Vec<NodeSelectorRequirement<'a>>,
    pub match_fields: Vec<NodeSelectorRequirement<'a>>,
}

/// One requirement of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSelectorRequirement<'a> {
    pub key: &'a str,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: &'a str,
    pub values: Vec<&'a str>,
}

impl<'a> NodeSelectorTerm<'a> {
    pub fn from_value(term: &'a Value) -> NodeSelectorTerm<'a> {
        NodeSelectorTerm {
            match_expressions: NodeSelectorRequirement::list(term.get("matchExpressions")),
            match_fields: NodeSelectorRequirement::list(term.get("matchFields")),
        }
    }

    pub(super) fn list(terms: Option<&'a Value>) -> Vec<NodeSelectorTerm<'a>> {
        terms
            .and_then(Value::as_array)
            .unwrap_or_default()
            .iter()
            .map(NodeSelectorTerm::from_value)
            .collect()
    }

    /// Whether it has no requirements, and so matches no node.
    pub fn is_empty(&self) -> bool {
        self.match_expressions.is_empty() && self.match_fields.is_empty()
    }
}

impl<'a> NodeSelectorRequirement<'a> {
    pub fn from_value(requirement: &'a Value) -> NodeSelectorRequirement<'a> {
        let text = |name| {
            requirement
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };

        let values = requirement
            .get("values")
            .and_then(Value::as_array)
            .unwrap_or_default();

        let values = values
            .iter()
            .map(|value| value.as_str().unwrap_or_default())
            .collect();

        NodeSelectorRequirement {
            key: text("key"),
            operator: text("operator"),
            values,
        }
    }

    fn list(requirements: Option<&'a Value>) -> Vec<NodeSelectorRequirement<'a>> {
        let requirements = requirements.and_then(Value::as_array).unwrap_or_default();
        requirements
            .iter()
            .map(NodeSelectorRequirement::from_value)
            .collect()
    }

    fn on_labels(&self, path: &Path<'_>) -> Result<Requirement, FieldErrors> {
        let operator = match self.operator {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::GreaterThan,
            "Lt" => Operator::LessThan,
            other => {
                return Err(FieldError::not_supported(
                    &path.field("operator"),
                    other,
                    &LABEL_OPERATORS,
                )
                .into());
            }
        };

        let values = self.values.iter().map(|value| Text::new(value)).collect();
        Requirement::new(Text::new(self.key), operator, values, path)
    }

    fn on_fields(&self, path: &Path<'_>) -> Result<FieldTerm, FieldErrors> {
        let negated = match self.operator {
            "In" => false,
            "NotIn" => true,
            other => {
                return Err(FieldError::not_supported(
                    &path.field("operator"),
                    other,
                    &FIELD_OPERATORS,
                )
                .into());
            }
        };

        match self.values.as_slice() {
            [value] => Ok(FieldTerm {
                field: Text::new(self.key),
                value: Text::new(value),
                negated,
            }),
            values => Err(FieldError::invalid(
                &path.field("values"),
                shown(values),
                "must have one element",
            )
            .into()),
        }
    }
}

/// A valid term, ready to be matched.
#[derive(Clone, Debug)]
pub(super) struct CompiledTerm {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl CompiledTerm {
    pub(super) fn new(
        term: &NodeSelectorTerm<'_>,
        path: &Path<'_>,
    ) -> Result<CompiledTerm, FieldErrors> {
        let mut errors = FieldErrors::default();
        let expressions = path.field("matchExpressions");
        let labels = compiled(
            &term.match_expressions,
            &expressions,
            &mut errors,
            NodeSelectorRequirement::on_labels,
        );

        let fields = path.field("matchFields");
        let fields = compiled(
            &term.match_fields,
            &fields,
            &mut errors,
            NodeSelectorRequirement::on_fields,
        );

        if errors.is_empty() {
            Ok(CompiledTerm {
                labels: LabelSelector::new(labels),
                fields: FieldSelector::new(fields),
            })
        } else {
            Err(errors)
        }
    }

    pub(super) fn matches(&self, node: &NodeView<'_, impl Lookup + ?Sized>) -> bool {
        // A node without a name has no fields, and then there are no requirements on fields.
        let fields = [("metadata.name", node.name)];
        self.labels.matches(node.labels)
            && (node.name.is_empty() || self.fields.matches(fields.as_slice()))
    }
}

fn compiled<'r, T>(
    requirements: &[NodeSelectorRequirement<'r>],
    path: &Path<'_>,
    errors: &mut FieldErrors,
    compile: impl Fn(&NodeSelectorRequirement<'r>, &Path<'_>) -> Result<T, FieldErrors>,
) -> Vec<T> {
    let mut all = Vec::with_capacity(requirements.len());
    for (index, requirement) in requirements.iter().enumerate() {
        match compile(requirement, &path.index(index)) {
            Ok(one) => all.push(one),
            Err(found) => errors.extend(found),
        }
    }
    all
}

const LABEL_OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const FIELD_OPERATORS: [&str; 2] = ["In", "NotIn"];
