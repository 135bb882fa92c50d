//! What an expression may use, and the way from its text to a checked tree.

mod functions;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::ast::{Ast, Literal, NodeId};
use crate::check;
use crate::declare::{Library, Macro, Overload};
use crate::large_stack;
use crate::library::LIBRARIES;
use crate::parse;
use crate::source::{Issues, Location, Source};
use crate::types::{ObjectTypes, Type};
use crate::validate;
pub(crate) use functions::{Functions, Signature};

/// The minor version of Kubernetes whose expressions are compatible with both this one and the one
/// before: what upstream's environments are made for by default.
const COMPATIBLE_WITH: u32 = 35;

/// Libraries, variables and object types of a place where expressions are written. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    functions: Arc<Functions>,
    macros: Arc<[Macro]>,
    variables: Arc<BTreeMap<Arc<str>, Type>>,
    objects: Arc<ObjectTypes>,
}

impl Env {
    /// Upstream's base environment of v1.36 with default feature gates: all its libraries, no
    /// variables.
    #[must_use]
    pub fn base() -> Self {
        static BASE: LazyLock<Env> = LazyLock::new(|| Env::of_version(COMPATIBLE_WITH));
        BASE.clone()
    }

    /// The base environment that is compatible with Kubernetes 1.`minor`.
    #[must_use]
    pub fn of_version(minor: u32) -> Self {
        let libraries = || LIBRARIES.iter().filter(|library| library.since <= minor);
        Self {
            functions: Arc::new(Functions::new(
                libraries().flat_map(|library| library.functions),
            )),
            macros: libraries()
                .flat_map(|library| library.macros.iter().copied())
                .collect(),
            variables: Arc::default(),
            objects: Arc::default(),
        }
    }

    #[must_use]
    pub fn with_library(mut self, library: &Library) -> Self {
        Arc::make_mut(&mut self.functions).extend(library.functions);
        self.macros = self.macros.iter().chain(library.macros).copied().collect();
        self
    }

    /// Adds a variable; its name may have dots (`authorizer.requestResource`).
    #[must_use]
    pub fn with_variable(mut self, name: &str, of: Type) -> Self {
        Arc::make_mut(&mut self.variables).insert(name.into(), of);
        self
    }

    /// Adds object types.
    #[must_use]
    pub fn with_objects(mut self, objects: ObjectTypes) -> Self {
        Arc::make_mut(&mut self.objects).extend(objects);
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

    /// The overloads of a function, in the order of their declaration.
    pub fn overloads(&self, function: &str) -> impl Iterator<Item = &'static Overload> {
        let signatures = self.functions.get(function).unwrap_or_default();
        signatures.iter().map(|signature| signature.overload)
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Parses `text`, without looking at names and types.
    ///
    /// # Errors
    /// Everything that is wrong with the syntax.
    pub fn parse(&self, text: &str) -> Result<Ast, Issues> {
        let source = Arc::new(Source::new(text));
        with_room(&source, || parse::parse(&source, &self.macros))
    }

    /// Parses `text`, resolves names, finds all types and validates literals.
    ///
    /// # Errors
    /// Everything that the first of these steps finds wrong.
    pub fn compile(&self, text: &str) -> Result<Checked, Issues> {
        let source = Arc::new(Source::new(text));
        with_room(&source, || {
            let checked = check::check(parse::parse(&source, &self.macros)?, self)?;
            validate::validate(&checked)?;
            Ok(checked)
        })
    }
}

/// Runs `work` where there is room for the depth that the expression may have.
fn with_room<T: Send>(
    source: &Arc<Source>,
    work: impl FnOnce() -> Result<T, Issues> + Send,
) -> Result<T, Issues> {
    if !parse::may_be_deep(source) {
        return work();
    }
    large_stack::run(work).unwrap_or_else(|error| {
        let mut issues = Issues::new(source);
        issues.report(
            Location::NONE,
            format!("cannot start a thread for a deeply nested expression: {error}"),
        );
        Err(issues)
    })
}

/// An expression that checked: names are resolved, every node has a type.
#[derive(Clone, Debug)]
pub struct Checked {
    pub ast: Ast,
    /// By [`NodeId::index`]; `None` for nodes that are not evaluated.
    pub(crate) types: Vec<Option<Type>>,
    pub(crate) references: Vec<Option<Reference>>,
}

/// What a name or a call refers to.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable, a type by its name, or a constant.
    Ident {
        name: Arc<str>,
        value: Option<Literal>,
    },
    /// The overloads that fit, in the order of their declaration.
    Overloads(Vec<&'static Overload>),
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

    /// Whether the expression uses a variable.
    #[must_use]
    pub fn refers_to(&self, variable: &str) -> bool {
        self.references.iter().flatten().any(
            |reference| matches!(reference, Reference::Ident { name, .. } if &**name == variable),
        )
    }

    /// The overloads that a call may mean; none for what is no call.
    #[must_use]
    pub fn overloads(&self, node: NodeId) -> &[&'static Overload] {
        match self.reference(node) {
            Some(Reference::Overloads(overloads)) => overloads,
            _ => &[],
        }
    }

    /// The type of the result.
    #[must_use]
    pub fn output(&self) -> &Type {
        self.type_of(self.ast.root())
    }
}
