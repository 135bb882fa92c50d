//! Compiles `JSONSchemaProps` to nodes, one for each schema.

use super::super::format::Format;
use super::super::node::{
    Additional, Bound, Checks, Node, NodeId, Property, Rule, Type, Types, Unset,
};
use super::super::props::{Props, SubSchema};
use super::super::{Pattern, Schema};
use super::BuildError;
use crate::catalog::{ListType, MapType};
use crate::{Text, Value};

/// What the schema validates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Purpose {
    Objects,
    /// The defaults within the schema itself. Upstream validates them with unknown formats kept,
    /// and int-or-string unchecked.
    Defaults,
}

pub(in super::super) fn build(props: Props<'_>, purpose: Purpose) -> Result<Schema, BuildError> {
    let mut builder = Builder {
        nodes: Vec::new(),
        purpose,
    };
    let root = builder.node(props)?;
    let mut schema = Schema {
        nodes: builder.nodes,
        root,
    };
    schema.compute_flags();
    Ok(schema)
}

struct Builder {
    nodes: Vec<Node>,
    purpose: Purpose,
}

impl Builder {
    fn node(&mut self, props: Props<'_>) -> Result<NodeId, BuildError> {
        let id = NodeId(
            u32::try_from(self.nodes.len()).expect("a schema has fewer nodes than bytes of memory"),
        );
        self.nodes.push(Node::default());
        let types = self.types(props);
        let checks = self.checks(props, &types)?;

        let mut properties = Vec::with_capacity(props.named("properties").len());
        for (name, below) in props.named("properties") {
            properties.push(Property {
                name: Text::new(name),
                node: self.node(below)?,
            });
        }

        let additional = match props.additional() {
            SubSchema::Absent | SubSchema::Many(_) => Additional::Unsaid,
            SubSchema::Bool(false) => Additional::Refused,
            SubSchema::Bool(true) => Additional::Any,
            SubSchema::One(below) => Additional::Node(self.node(below)?),
        };

        let items = match props.items() {
            SubSchema::One(below) => Some(self.node(below)?),
            _ => None,
        };

        self.nodes[id.index()] = Node {
            types,
            nullable: props.flag("nullable"),
            default: props.json("default").map(|value| value.into_owned()),
            unset: Unset::NullIfNotNullable,
            preserve: props.flag("x-kubernetes-preserve-unknown-fields"),
            embedded: props.flag("x-kubernetes-embedded-resource"),
            properties: properties.into(),
            additional,
            items,
            list: list_type(props),
            map: map_type(props),
            checks,
            rules: props
                .elements("x-kubernetes-validations")
                .iter()
                .map(rule)
                .collect(),
            ..Node::default()
        };

        Ok(id)
    }

    fn types(&self, props: Props<'_>) -> Types {
        match props.text("type") {
            _ if self.purpose == Purpose::Objects && props.flag("x-kubernetes-int-or-string") => {
                Types::IntOrString
            }
            "" => Types::Any,
            name => Type::named(name).map_or_else(|| Types::Unknown(Text::new(name)), Types::One),
        }
    }

    fn checks(
        &mut self,
        props: Props<'_>,
        types: &Types,
    ) -> Result<Option<Box<Checks>>, BuildError> {
        let format_name = match props.text("format") {
            name if self.purpose == Purpose::Objects && !Format::is_supported(name, types) => "",
            name => name,
        };

        let mut checks = Checks {
            format_name: Text::new(format_name),
            format: Format::named(format_name),
            min_length: props.int("minLength"),
            max_length: props.int("maxLength"),
            pattern: pattern(props)?,
            minimum: bound(props, "minimum", "exclusiveMinimum"),
            maximum: bound(props, "maximum", "exclusiveMaximum"),
            multiple_of: props.number("multipleOf"),
            min_items: props.int("minItems"),
            max_items: props.int("maxItems"),
            unique_items: props.flag("uniqueItems"),
            min_properties: props.int("minProperties"),
            max_properties: props.int("maxProperties"),
            required: props.texts("required"),
            enumeration: props.enumeration(),
            ..Checks::default()
        };
        checks.all_of = self.branches(props, "allOf")?;

        checks.any_of = self.branches(props, "anyOf")?;
        checks.one_of = self.branches(props, "oneOf")?;
        checks.not = props
            .schema("not")
            .map(|below| self.node(below))
            .transpose()?;

        Ok(checks.any().then(|| Box::new(checks)))
    }

    fn branches(&mut self, props: Props<'_>, name: &str) -> Result<Vec<NodeId>, BuildError> {
        props.schemas(name).map(|below| self.node(below)).collect()
    }
}

impl Checks {
    /// Whether there are any checks.
    pub(crate) fn any(&self) -> bool {
        let lengths = [
            self.min_length,
            self.max_length,
            self.min_items,
            self.max_items,
            self.min_properties,
            self.max_properties,
        ];

        let branches = [&self.all_of, &self.any_of, &self.one_of];
        !self.format_name.is_empty()
            || lengths.iter().any(Option::is_some)
            || self.pattern.is_some()
            || self.minimum.is_some()
            || self.maximum.is_some()
            || self.multiple_of.is_some()
            || self.unique_items
            || !self.required.is_empty()
            || !self.enumeration.is_empty()
            || branches.iter().any(|several| !several.is_empty())
            || self.not.is_some()
    }
}

fn pattern(props: Props<'_>) -> Result<Option<Pattern>, BuildError> {
    let text = props.text("pattern");
    if text.is_empty() {
        return Ok(None);
    }
    let compiled = Pattern::new(text);
    compiled.map(Some).map_err(|source| BuildError::Pattern {
        pattern: text.to_owned(),
        source,
    })
}

fn bound(props: Props<'_>, name: &str, exclusive: &str) -> Option<Bound> {
    props.number(name).map(|value| Bound {
        value,
        exclusive: props.flag(exclusive),
    })
}

fn list_type(props: Props<'_>) -> Option<ListType> {
    match props.text("x-kubernetes-list-type") {
        "atomic" => Some(ListType::Atomic),
        "set" => Some(ListType::Set),
        "map" => Some(ListType::Map(
            props.texts("x-kubernetes-list-map-keys").into(),
        )),
        _ => None,
    }
}

fn map_type(props: Props<'_>) -> Option<MapType> {
    match props.text("x-kubernetes-map-type") {
        "atomic" => Some(MapType::Atomic),
        "granular" => Some(MapType::Granular),
        _ => None,
    }
}

fn rule(tree: &Value) -> Rule {
    let props = Props::of(tree);
    let text = |name: &str| Text::new(props.text(name));
    Rule {
        rule: text("rule"),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: props.optional_text("reason").map(Text::new),
        field_path: text("fieldPath"),
        optional_old_self: props.get("optionalOldSelf").and_then(Value::as_bool),
    }
}
