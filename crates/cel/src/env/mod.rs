//! What an expression may use, and the way from its text to a checked tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::{Ast, Literal, NodeId};
use crate::types::{ObjectTypes, Type};

/// Libraries, variables, object types and limits of a place where expressions are written.
#[derive(Clone, Debug, Default)]
pub struct Env {
    variables: BTreeMap<Arc<str>, Type>,
    objects: ObjectTypes,
}

impl Env {
    /// Adds a variable; its name may have dots (`authorizer.requestResource`).
    #[must_use]
    pub fn with_variable(mut self, name: &str, of: Type) -> Self {
        self.variables.insert(name.into(), of);
        self
    }

    #[must_use]
    pub fn with_objects(mut self, objects: ObjectTypes) -> Self {
        self.objects = objects;
        self
    }

    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }

    #[must_use]
    pub fn objects(&self) -> &ObjectTypes {
        &self.objects
    }
}

/// An expression that checked: names are resolved, every node has a type.
#[derive(Clone, Debug)]
pub struct Checked {
    pub ast: Ast,
    /// By [`NodeId::index`]; `None` for nodes that macros replaced.
    pub(crate) types: Vec<Option<Type>>,
    pub(crate) references: Vec<Option<Reference>>,
}

/// What a name or a call refers to.
#[derive(Clone, Debug, PartialEq)]
pub enum Reference {
    /// A variable, or a type by its name.
    Ident {
        name: Arc<str>,
        value: Option<Literal>,
    },
    /// The overloads that fit, in the order of their declaration.
    Overloads(Vec<&'static str>),
}

impl Checked {
    /// The type of a node: `dyn` where the checker says nothing.
    #[must_use]
    pub fn type_of(&self, node: NodeId) -> &Type {
        self.types[node.index()].as_ref().unwrap_or(&Type::Dyn)
    }

    #[must_use]
    pub fn reference(&self, node: NodeId) -> Option<&Reference> {
        self.references[node.index()].as_ref()
    }

    /// The type of the result.
    #[must_use]
    pub fn output(&self) -> &Type {
        self.type_of(self.ast.root())
    }
}
