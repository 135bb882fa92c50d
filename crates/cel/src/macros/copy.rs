//! A copy of a tree with ids of its own, at the places of the original.

use super::Expanded;
use super::factory::Factory;
use crate::ast::{Comprehension, Entry, Expr, Field, NodeId};

impl Factory<'_, '_> {
    pub(super) fn copy(&mut self, node: NodeId) -> Expanded {
        let offset = self.builder.offset(self.builder.id(node)).unwrap_or(0);
        let id = self.builder.new_id(offset);
        let expr = match self.expr(node).clone() {
            expr @ (Expr::Literal(_) | Expr::Ident(_) | Expr::Unspecified) => expr,
            Expr::Select {
                operand,
                field,
                test_only,
            } => Expr::Select {
                operand: self.copy(operand)?,
                field,
                test_only,
            },
            Expr::Call {
                function,
                target,
                args,
            } => {
                let args = self.copy_all(&args)?;
                let target = target.map(|target| self.copy(target)).transpose()?;
                Expr::Call {
                    function,
                    target,
                    args,
                }
            }
            Expr::List { elements, optional } => Expr::List {
                elements: self.copy_all(&elements)?,
                optional,
            },
            Expr::Map { entries } => self.copy_map(&entries)?,
            Expr::Struct { name, fields } => Expr::Struct {
                name,
                fields: self.copy_fields(&fields)?,
            },
            Expr::Comprehension(fold) => self.copy_fold(&fold)?,
        };
        Ok(self.builder.add(id, expr)?)
    }

    fn copy_all(&mut self, nodes: &[NodeId]) -> Expanded<Vec<NodeId>> {
        nodes.iter().map(|node| self.copy(*node)).collect()
    }

    fn copy_map(&mut self, entries: &[Entry]) -> Expanded<Expr> {
        let mut copied = Vec::with_capacity(entries.len());
        for entry in entries {
            copied.push(Entry {
                id: self.next_id(),
                key: self.copy(entry.key)?,
                value: self.copy(entry.value)?,
                optional: entry.optional,
            });
        }
        Ok(Expr::Map { entries: copied })
    }

    fn copy_fields(&mut self, fields: &[Field]) -> Expanded<Vec<Field>> {
        let mut copied = Vec::with_capacity(fields.len());
        for field in fields {
            copied.push(Field {
                id: self.next_id(),
                name: field.name.clone(),
                value: self.copy(field.value)?,
                optional: field.optional,
            });
        }
        Ok(copied)
    }

    fn copy_fold(&mut self, fold: &Comprehension) -> Expanded<Expr> {
        Ok(Expr::Comprehension(Box::new(Comprehension {
            iter_range: self.copy(fold.iter_range)?,
            iter_var: fold.iter_var.clone(),
            iter_var2: fold.iter_var2.clone(),
            accu_var: fold.accu_var.clone(),
            accu_init: self.copy(fold.accu_init)?,
            loop_condition: self.copy(fold.loop_condition)?,
            loop_step: self.copy(fold.loop_step)?,
            result: self.copy(fold.result)?,
        })))
    }
}
