//! Lists, maps and structs.

use std::sync::Arc;

use super::{Checker, well_known};
use crate::ast::{Expr, Field, NodeId};
use crate::env::Reference;
use crate::types::Type;

impl Checker<'_> {
    pub(super) fn check_list(&mut self, node: NodeId) {
        let Expr::List { elements, optional } = self.ast.expr(node).clone() else {
            return;
        };
        let mut joined = None;
        for (index, element) in (0..).zip(elements) {
            self.check(element);
            let mut of = self.type_of(element);
            if optional.contains(&index) {
                of = self.unwrap_optional(element, of);
            }
            joined = Some(self.join(joined, of));
        }
        let element = joined.unwrap_or_else(|| self.unifier.new_variable());
        self.set_type(node, Type::list(element));
    }

    pub(super) fn check_map(&mut self, node: NodeId) {
        let Expr::Map { entries } = self.ast.expr(node).clone() else {
            return;
        };
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(entry.key);
            let of = self.type_of(entry.key);
            keys = Some(self.join(keys, of));

            self.check(entry.value);
            let mut of = self.type_of(entry.value);
            if entry.optional {
                of = self.unwrap_optional(entry.value, of);
            }
            values = Some(self.join(values, of));
        }
        let key = keys.unwrap_or_else(|| self.unifier.new_variable());
        let value = values.unwrap_or_else(|| self.unifier.new_variable());
        self.set_type(node, Type::map(key, value));
    }

    pub(super) fn check_struct(&mut self, node: NodeId) {
        let Expr::Struct { name, fields } = self.ast.expr(node).clone() else {
            return;
        };
        let Some(found) = self.find(&name) else {
            self.report_undeclared(node, &name);
            return self.set_type(node, Type::Error);
        };

        let name = found.name;
        let kept = Expr::Struct {
            name: Arc::clone(&name),
            fields: fields.clone(),
        };
        self.ast.replace(node, kept);
        let reference = Reference::Ident {
            name: Arc::clone(&name),
            value: None,
        };
        self.set_reference(node, reference);

        let (of, message) = self.constructed(node, &name, &found.of);
        self.set_type(node, of);
        for field in fields {
            self.check_assignment(&field, &message);
        }
    }

    /// The type that a struct of the type named `name` has, and the message whose fields it has.
    fn constructed(&mut self, node: NodeId, name: &str, of: &Type) -> (Type, String) {
        let Type::Type(named) = of else {
            if *of != Type::Error {
                self.report(
                    node,
                    format!("'{of}' is not a type", of = of.declared_name()),
                );
            }
            return (Type::Error, name.into());
        };
        let named = named.as_deref().unwrap_or(&Type::Dyn);
        match well_known::constructed(named) {
            Some(message) => (named.clone(), message.into()),
            None => {
                self.report(
                    node,
                    format!("'{}' is not a message type", named.declared_name()),
                );
                (Type::Error, name.into())
            }
        }
    }

    fn check_assignment(&mut self, field: &Field, message: &str) {
        self.check(field.value);
        let object = self.env.objects().get(message);
        let declared = match object.is_some_and(|object| object.is_untyped(&field.name)) {
            true => None,
            false => Some(self.field_type(field.id, message, &field.name)),
        };
        let mut of = self.type_of(field.value);
        if field.optional {
            of = self.unwrap_optional(field.value, of);
        }
        let fits = |declared: &Type| self.unifier.assign(declared, &of);
        if !declared.as_ref().is_some_and(fits) {
            let declared = declared.map_or_else(String::new, |declared| declared.message());
            let of = of.message();
            let name = &field.name;
            let message = format!(
                "expected type of field '{name}' is '{declared}' but provided type is '{of}'"
            );
            self.report_at(field.id, message);
        }
    }
}
