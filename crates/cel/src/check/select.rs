//! Fields.

use std::sync::Arc;

use super::names::qualified_name;
use super::{Checker, well_known};
use crate::ast::{Expr, ExprId, Literal, NodeId, operators};
use crate::env::Reference;
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn check_select(&mut self, node: NodeId) {
        if let Some(found) = qualified_name(&self.ast, node).and_then(|name| self.find(&name)) {
            return self.resolve(node, found);
        }
        let Expr::Select {
            operand,
            field,
            test_only,
        } = self.ast.expr(node)
        else {
            return;
        };
        let (operand, field, test_only) = (*operand, Arc::clone(field), *test_only);

        let selected = self.check_field(node, operand, &field, false);
        let result = if test_only { Type::Bool } else { selected };
        let result = self.unifier.substitute(&result);
        self.set_type(node, result);
    }

    /// `a.?b`, which the parser makes with the name as a literal.
    pub(super) fn check_optional_select(&mut self, node: NodeId, args: &[NodeId]) {
        let [operand, field] = args else { return };
        let Expr::Literal(Literal::String(name)) = self.ast.expr(*field) else {
            return;
        };
        let name = Arc::clone(name);
        let selected = self.check_field(node, *operand, &name, true);
        let result = self.unifier.substitute(&selected);
        self.set_type(node, result);
        let overloads = self.env.overloads(operators::OPTIONAL_SELECT).collect();
        self.set_reference(node, Reference::Overloads(overloads));
    }

    fn check_field(&mut self, node: NodeId, operand: NodeId, field: &str, optional: bool) -> Type {
        self.check(operand);
        let of = self.unifier.substitute(&self.type_of(operand));
        let (target, was_optional) = match &of {
            Type::Optional(value) => (Type::clone(value), true),
            _ => (of, false),
        };

        let result = match &target {
            Type::Map(_, value) => Type::clone(value),
            Type::Object(name) => self.field_type(self.ast.id(node), name, field),
            Type::Param(_) | Type::Variable(_) => {
                self.unifier.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            _ => {
                let message = format!(
                    "type '{}' does not support field selection",
                    target.message()
                );
                self.report(node, message);
                Type::Dyn
            }
        };
        if was_optional || optional {
            Type::optional(result)
        } else {
            result
        }
    }

    /// The type of a field of `object`; an error is reported for `id`.
    pub(super) fn field_type(&mut self, id: ExprId, object: &str, field: &str) -> Type {
        let found = match self.env.objects().get(object) {
            Some(object) => Some(object.field(field)),
            None => well_known::field(object, field),
        };
        let message = match found {
            Some(Some(of)) => return of,
            Some(None) => format!("undefined field '{field}'"),
            None => format!("unexpected failed resolution of '{object}'"),
        };
        self.report_at(id, message);
        Type::Error
    }
}
