//! Names: of variables, types and constants, with or without dots.

use std::sync::Arc;

use super::{Checker, well_known};
use crate::ast::{Ast, Expr, Literal, NodeId};
use crate::env::Reference;
use crate::types::Type;

/// What a name stands for.
pub(super) struct ResolvedName {
    /// Without a leading dot.
    pub(super) name: Arc<str>,
    pub(super) of: Type,
    pub(super) value: Option<Literal>,
}

impl Checker<'_> {
    /// What `name` stands for: the innermost variable, else a type, else a constant.
    pub(super) fn find(&self, name: &str) -> Option<ResolvedName> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let local = self.scopes.iter().rev().find(|(known, _)| **known == *name);
        let variable = local.map(|(_, of)| of).or_else(|| self.env.variable(name));
        let (of, value) = match variable {
            Some(of) => (of.clone(), None),
            None if self.env.objects().get(name).is_some() => {
                (Type::of_type(Type::object(name)), None)
            }
            None => match well_known::named(name) {
                Some(of) => (Type::of_type(of), None),
                None => (Type::Int, Some(well_known::constant(name)?)),
            },
        };
        let name = name.into();
        Some(ResolvedName { name, of, value })
    }

    pub(super) fn check_ident(&mut self, node: NodeId, name: &str) {
        match self.find(name) {
            Some(found) => self.resolve(node, found),
            None => {
                self.set_type(node, Type::Error);
                self.report_undeclared(node, name);
            }
        }
    }

    /// Replaces `node` by the name it stands for.
    pub(super) fn resolve(&mut self, node: NodeId, found: ResolvedName) {
        let ResolvedName { name, of, value } = found;
        self.set_type(node, of);
        self.ast.replace(node, Expr::Ident(Arc::clone(&name)));
        self.set_reference(node, Reference::Ident { name, value });
    }
}

/// `a.b.c`, if `node` is only names and selections.
pub(super) fn qualified_name(ast: &Ast, node: NodeId) -> Option<String> {
    match ast.expr(node) {
        Expr::Ident(name) => Some(name.to_string()),
        Expr::Select {
            operand,
            field,
            test_only: false,
        } => Some(format!("{}.{field}", qualified_name(ast, *operand)?)),
        _ => None,
    }
}
