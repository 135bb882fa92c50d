//! The operations of a path, independent of the version of the document: both versions are made
//! from these.

use std::borrow::Cow;

use coracle_api::Text;
use coracle_api::catalog::{Shape, Struct};

/// One method on one path.
pub(super) struct Operation<'c> {
    /// As documents write it: `get`.
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: Cow<'static, str>,
    /// What the server calls it (`list`, `watchlist`) and the kind it is about. Absent for paths
    /// without resources.
    pub(super) action: Option<(&'static str, KindName<'c>)>,
    /// In order of their names.
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body<'c>>,
    pub(super) consumes: &'static [&'static str],
    pub(super) produces: &'static [&'static str],
    /// Codes of success, all with the same content.
    pub(super) codes: &'static [u16],
    pub(super) answer: Model<'c>,
}

/// What is sent or answered.
#[derive(Clone, Copy)]
pub(super) enum Model<'c> {
    Type(Struct<'c>),
    /// A stream or a text without a schema.
    Text,
}

#[derive(Clone, Copy)]
pub(super) struct Body<'c> {
    pub(super) of: Struct<'c>,
    pub(super) required: bool,
}

#[derive(Clone, Copy)]
pub(super) struct KindName<'c> {
    pub(super) group: &'c str,
    pub(super) version: &'c str,
    pub(super) kind: &'c str,
}

/// A part of the path or of the query.
#[derive(Clone)]
pub(super) struct Parameter {
    pub(super) name: Text,
    pub(super) location: ParameterLocation,
    /// `string`, `integer` or `boolean`.
    pub(super) kind: &'static str,
    pub(super) description: Cow<'static, str>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ParameterLocation {
    Path,
    Query,
}

impl ParameterLocation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            ParameterLocation::Path => "path",
            ParameterLocation::Query => "query",
        }
    }
}

impl Parameter {
    pub(super) fn path(name: &'static str, description: impl Into<Cow<'static, str>>) -> Parameter {
        let name = Text::const_new(name);
        Parameter {
            name,
            location: ParameterLocation::Path,
            kind: "string",
            description: description.into(),
        }
    }

    pub(super) fn query(name: &'static str, description: &'static str) -> Parameter {
        let name = Text::const_new(name);
        Parameter {
            name,
            location: ParameterLocation::Query,
            kind: "string",
            description: description.into(),
        }
    }

    fn key(&self) -> (&str, ParameterLocation) {
        (&self.name, self.location)
    }
}

/// The query parameters for the fields of an options kind. Only texts, numbers and booleans can be
/// query parameters.
pub(super) fn query_of(options: Struct<'_>) -> impl Iterator<Item = Parameter> {
    options
        .iter()
        .filter(|field| !matches!(field.name(), "apiVersion" | "kind"))
        .filter_map(move |field| {
            let node = field.node();
            let kind = match node.item().map_or(node.shape, |item| item.shape) {
                Shape::String => "string",
                Shape::Bool => "boolean",
                Shape::Int32 | Shape::Int64 => "integer",
                _ => return None,
            };

            let description = options.field_description(field).into();
            Some(Parameter {
                name: field.field.name.clone(),
                location: ParameterLocation::Query,
                kind,
                description,
            })
        })
}

/// In order of their names, each once.
pub(super) fn sorted(mut parameters: Vec<Parameter>) -> Vec<Parameter> {
    parameters.sort_by(|a, b| a.key().cmp(&b.key()));
    parameters.dedup_by(|a, b| a.key() == b.key());
    parameters
}

/// The parameters that every operation of a path has: documents write them once, for the path.
pub(super) fn common<'o>(operations: &'o [Operation<'_>]) -> Vec<&'o Parameter> {
    let Some((first, others)) = operations.split_first() else {
        return Vec::new();
    };
    let has = |operation: &Operation<'_>, wanted: &Parameter| {
        operation
            .parameters
            .iter()
            .any(|parameter| parameter.key() == wanted.key())
    };

    first
        .parameters
        .iter()
        .filter(|wanted| others.iter().all(|other| has(other, wanted)))
        .collect()
}

impl<'c> Operation<'c> {
    /// Its parameters without those of the path.
    pub(super) fn own_parameters(&self, common: &[&Parameter]) -> impl Iterator<Item = &Parameter> {
        let is_common =
            |parameter: &&Parameter| common.iter().any(|other| other.key() == parameter.key());
        let own: Vec<&Parameter> = self
            .parameters
            .iter()
            .filter(|parameter| !is_common(parameter))
            .collect();
        own.into_iter()
    }

    /// The types whose definitions it needs.
    pub(super) fn types(&self) -> impl Iterator<Item = Struct<'c>> {
        let answer = match self.answer {
            Model::Type(of) => Some(of),
            Model::Text => None,
        };
        answer.into_iter().chain(self.body.map(|body| body.of))
    }
}

/// What a code of success is called.
pub(super) fn reason(code: u16) -> &'static str {
    match code {
        201 => "Created",
        202 => "Accepted",
        _ => "OK",
    }
}
