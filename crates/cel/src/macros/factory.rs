//! Makes the nodes of one expansion, all at the place of the call.

use std::sync::Arc;

use super::{ACCUMULATOR, Expanded, Stop, UNUSED};
use crate::ast::{Comprehension, Expr, ExprId, Literal, NodeId};
use crate::parse::build::Builder;

pub(super) struct Factory<'a, 'b> {
    pub(super) builder: &'a mut Builder<'b>,
    offset: i32,
}

/// A fold but for its result.
pub(super) struct Fold<'a> {
    pub(super) range: NodeId,
    pub(super) variables: (&'a str, Option<&'a str>),
    pub(super) init: NodeId,
    pub(super) condition: NodeId,
    pub(super) step: NodeId,
}

impl<'a, 'b> Factory<'a, 'b> {
    pub(super) fn new(builder: &'a mut Builder<'b>, id: ExprId) -> Self {
        let offset = builder.offset(id).unwrap_or(-1);
        Self { builder, offset }
    }

    pub(super) fn expr(&self, node: NodeId) -> &Expr {
        self.builder.expr(node)
    }

    pub(super) fn refuse(&self, at: NodeId, message: impl Into<String>) -> Stop {
        Stop::Refused {
            at: self.builder.id(at),
            message: message.into(),
        }
    }

    pub(super) fn next_id(&mut self) -> ExprId {
        self.builder.new_id(self.offset)
    }

    fn add(&mut self, expr: Expr) -> Expanded {
        let id = self.next_id();
        Ok(self.builder.add(id, expr)?)
    }

    pub(super) fn bool(&mut self, value: bool) -> Expanded {
        self.add(Expr::Literal(Literal::Bool(value)))
    }

    pub(super) fn int(&mut self, value: i64) -> Expanded {
        self.add(Expr::Literal(Literal::Int(value)))
    }

    pub(super) fn ident(&mut self, name: &str) -> Expanded {
        self.add(Expr::Ident(name.into()))
    }

    pub(super) fn accumulator(&mut self) -> Expanded {
        self.ident(ACCUMULATOR)
    }

    pub(super) fn list(&mut self, elements: Vec<NodeId>) -> Expanded {
        let optional = Vec::new();
        self.add(Expr::List { elements, optional })
    }

    pub(super) fn empty_map(&mut self) -> Expanded {
        let entries = Vec::new();
        self.add(Expr::Map { entries })
    }

    pub(super) fn call(&mut self, function: &str, args: Vec<NodeId>) -> Expanded {
        let function = function.into();
        let target = None;
        self.add(Expr::Call {
            function,
            target,
            args,
        })
    }

    pub(super) fn member_call(
        &mut self,
        function: &str,
        target: NodeId,
        args: Vec<NodeId>,
    ) -> Expanded {
        let function = function.into();
        let target = Some(target);
        self.add(Expr::Call {
            function,
            target,
            args,
        })
    }

    pub(super) fn presence_test(&mut self, operand: NodeId, field: Arc<str>) -> Expanded {
        let test_only = true;
        self.add(Expr::Select {
            operand,
            field,
            test_only,
        })
    }

    /// A fold over nothing: `name` is `value` in `result`.
    pub(super) fn bind(
        &mut self,
        range: NodeId,
        name: &str,
        value: NodeId,
        condition: NodeId,
        step: NodeId,
        result: NodeId,
    ) -> Expanded {
        self.add(Expr::Comprehension(Box::new(Comprehension {
            iter_range: range,
            iter_var: UNUSED.into(),
            iter_var2: None,
            accu_var: name.into(),
            accu_init: value,
            loop_condition: condition,
            loop_step: step,
            result,
        })))
    }

    pub(super) fn fold(&mut self, fold: &Fold<'_>, result: NodeId) -> Expanded {
        self.add(Expr::Comprehension(Box::new(Comprehension {
            iter_range: fold.range,
            iter_var: fold.variables.0.into(),
            iter_var2: fold.variables.1.map(Into::into),
            accu_var: ACCUMULATOR.into(),
            accu_init: fold.init,
            loop_condition: fold.condition,
            loop_step: fold.step,
            result,
        })))
    }
}
