//! The type checker: resolves names, finds the type of every node and the overloads of every call.
//!
//! All errors are found, not only the first: what is wrong has the type `!error!`, which fits
//! everything. Texts and places are cel-go's.

mod calls;
mod containers;
mod names;
mod select;
#[cfg(test)]
mod tests;
mod unify;
mod well_known;

use std::sync::Arc;

use crate::ast::{Ast, Comprehension, Expr, ExprId, Literal, NodeId};
use crate::env::{Checked, Env, Reference};
use crate::source::{Issues, Location};
use crate::types::Type;
use unify::Unifier;

/// Checks `ast` in `env`.
///
/// # Errors
/// Every name that is not declared, and every type that does not fit.
pub(crate) fn check(ast: Ast, env: &Env) -> Result<Checked, Issues> {
    let size = ast.len();
    let mut checker = Checker {
        env,
        issues: Issues::new(ast.source()),
        types: vec![None; size],
        references: vec![None; size],
        scopes: Vec::new(),
        unifier: Unifier::default(),
        ast,
    };
    checker.check(checker.ast.root());
    if checker.unifier.exhausted() {
        let mut issues = Issues::new(checker.ast.source());
        issues.report(Location::NONE, "types in the expression are too large");
        return Err(issues);
    }
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }

    let unifier = &checker.unifier;
    let finish = |of: Option<Type>| of.map(|of| unifier.finish(&of));
    Ok(Checked {
        types: checker.types.into_iter().map(finish).collect(),
        references: checker.references,
        ast: checker.ast,
    })
}

struct Checker<'a> {
    env: &'a Env,
    ast: Ast,
    issues: Issues,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    /// Variables of folds, the innermost last.
    scopes: Vec<(Arc<str>, Type)>,
    unifier: Unifier,
}

impl Checker<'_> {
    fn check(&mut self, node: NodeId) {
        if self.unifier.exhausted() {
            return;
        }
        match self.ast.expr(node) {
            Expr::Literal(literal) => {
                let of = type_of_literal(literal);
                self.set_type(node, of);
            }
            Expr::Ident(name) => {
                let name = Arc::clone(name);
                self.check_ident(node, &name);
            }
            Expr::Select { .. } => self.check_select(node),
            Expr::Call { .. } => self.check_call(node),
            Expr::List { .. } => self.check_list(node),
            Expr::Map { .. } => self.check_map(node),
            Expr::Struct { .. } => self.check_struct(node),
            Expr::Comprehension(fold) => {
                let fold = fold.clone();
                self.check_fold(node, &fold);
            }
            Expr::Unspecified => {}
        }
    }

    fn set_type(&mut self, node: NodeId, of: Type) {
        self.unifier.measure(&of);
        self.types[node.index()] = Some(of);
    }

    fn set_reference(&mut self, node: NodeId, reference: Reference) {
        self.references[node.index()] = Some(reference);
    }

    fn type_of(&self, node: NodeId) -> Type {
        self.types[node.index()].clone().unwrap_or(Type::Error)
    }

    fn report(&mut self, node: NodeId, message: impl Into<String>) {
        self.report_at(self.ast.id(node), message);
    }

    fn report_at(&mut self, id: ExprId, message: impl Into<String>) {
        let location = match self.ast.offset_of(id) {
            Some(offset) => self.ast.source().location(offset),
            None => Location::NONE,
        };
        self.issues.report(location, message);
    }

    fn report_undeclared(&mut self, node: NodeId, name: &str) {
        self.report(
            node,
            format!("undeclared reference to '{name}' (in container '')"),
        );
    }

    fn report_mismatch(&mut self, node: NodeId, expected: &Type, found: &Type) {
        let (expected, found) = (expected.message(), found.message());
        self.report(
            node,
            format!("expected type '{expected}' but found '{found}'"),
        );
    }

    /// The type of a list's elements, or of a map's keys or values, after one more. What does not
    /// fit makes it `dyn`; that literals are of one type is validated later.
    fn join(&mut self, joined: Option<Type>, of: Type) -> Type {
        match joined {
            None => of,
            Some(joined) if self.unifier.assign(&joined, &of) => unify::most_general(joined, of),
            Some(_) => Type::Dyn,
        }
    }

    /// What an optional element, entry or field contributes.
    fn unwrap_optional(&mut self, node: NodeId, of: Type) -> Type {
        match of {
            Type::Optional(value) => Type::clone(&value),
            Type::Dyn | Type::Any => of,
            _ => {
                self.report_mismatch(node, &Type::optional(of.clone()), &of);
                of
            }
        }
    }

    fn check_fold(&mut self, node: NodeId, fold: &Comprehension) {
        self.check(fold.iter_range);
        self.check(fold.accu_init);
        let range = self.unifier.substitute(&self.type_of(fold.iter_range));
        let accumulated = self.type_of(fold.accu_init);

        let scope = self.scopes.len();
        self.scopes
            .push((Arc::clone(&fold.accu_var), accumulated.clone()));
        let (first, second) = self.variable_types(fold, &range);
        let inner = self.scopes.len();
        self.scopes.push((Arc::clone(&fold.iter_var), first));
        if let Some(name) = &fold.iter_var2 {
            self.scopes.push((Arc::clone(name), second));
        }

        self.check(fold.loop_condition);
        self.expect_type(fold.loop_condition, &Type::Bool);
        self.check(fold.loop_step);
        self.expect_type(fold.loop_step, &accumulated);
        self.scopes.truncate(inner);
        self.check(fold.result);
        self.scopes.truncate(scope);

        let result = self.unifier.substitute(&self.type_of(fold.result));
        self.set_type(node, result);
    }

    /// The types of a fold's variables; of the second only if there are two.
    fn variable_types(&mut self, fold: &Comprehension, range: &Type) -> (Type, Type) {
        let two = fold.iter_var2.is_some();
        match range {
            Type::List(element) if two => (Type::Int, Type::clone(element)),
            Type::List(element) => (Type::clone(element), Type::Dyn),
            Type::Map(key, value) => (Type::clone(key), Type::clone(value)),
            Type::Dyn | Type::Error | Type::Param(_) | Type::Variable(_) => {
                self.unifier.assign(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    range.message()
                );
                self.report(fold.iter_range, message);
                (Type::Error, Type::Error)
            }
        }
    }

    fn expect_type(&mut self, node: NodeId, expected: &Type) {
        let found = self.type_of(node);
        if !self.unifier.assign(expected, &found) {
            self.report_mismatch(node, expected, &found);
        }
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
