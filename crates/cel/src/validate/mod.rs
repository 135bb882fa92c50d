//! What a checked tree must also fulfil: literals that are converted or matched must be right, and
//! lists and maps must be of one type even where `dyn` would let another through.

mod format;
mod literals;

use crate::ast::{Expr, ExprId, Literal, NodeId};
use crate::env::Checked;
use crate::source::{Issues, Location};
use crate::types::{Type, same};

/// Validates `checked`.
///
/// # Errors
/// Everything that is wrong, as cel-go's validators report it.
pub(crate) fn validate(checked: &Checked) -> Result<(), Issues> {
    let mut validator = Validator {
        checked,
        issues: Issues::new(checked.ast.source()),
    };
    let mut nodes = Vec::new();
    checked.ast.post_order(&mut |node, path| {
        let exempt = path.iter().any(|above| validator.calls(*above, "format"));
        nodes.push((node, exempt));
    });

    validator.literals(&nodes, "duration", literals::is_duration);
    validator.literals(&nodes, "timestamp", literals::is_timestamp);
    validator.literals(&nodes, "matches", literals::is_pattern);
    for (node, _) in nodes.iter().filter(|(_, exempt)| !exempt) {
        validator.list(*node);
    }
    for (node, _) in nodes.iter().filter(|(_, exempt)| !exempt) {
        validator.map(*node);
    }
    for (node, _) in &nodes {
        validator.format(*node);
    }

    if validator.issues.is_empty() {
        Ok(())
    } else {
        Err(validator.issues)
    }
}

struct Validator<'a> {
    checked: &'a Checked,
    issues: Issues,
}

impl<'a> Validator<'a> {
    fn expr(&self, node: NodeId) -> &'a Expr {
        self.checked.ast.expr(node)
    }

    fn id(&self, node: NodeId) -> ExprId {
        self.checked.ast.id(node)
    }

    fn calls(&self, node: NodeId, name: &str) -> bool {
        matches!(self.expr(node), Expr::Call { function, .. } if **function == *name)
    }

    fn report(&mut self, node: NodeId, message: impl Into<String>) {
        let ast = &self.checked.ast;
        let location = match ast.offset_of(self.id(node)) {
            Some(offset) => ast.source().location(offset),
            None => Location::NONE,
        };
        self.issues.report(location, message);
    }

    /// The first arguments of calls of `function` that are literals must be right.
    fn literals(
        &mut self,
        nodes: &[(NodeId, bool)],
        function: &str,
        is_right: fn(&Literal) -> bool,
    ) {
        for (node, _) in nodes {
            let Expr::Call { args, .. } = self.expr(*node) else {
                continue;
            };
            if !self.calls(*node, function) {
                continue;
            }
            let Some(first) = args.first() else { continue };
            if let Expr::Literal(literal) = self.expr(*first)
                && !is_right(literal)
            {
                self.report(*first, format!("invalid {function} argument"));
            }
        }
    }

    /// The type of an element, without what makes it optional.
    fn element_type(&self, node: NodeId, optional: bool) -> &'a Type {
        let of = self.checked.type_of(node);
        match of {
            Type::Optional(value) if optional => value,
            _ => of,
        }
    }

    fn list(&mut self, node: NodeId) {
        let Expr::List { elements, optional } = self.expr(node) else {
            return;
        };
        let mut first: Option<&Type> = None;
        for (index, element) in (0..).zip(elements) {
            let of = self.element_type(*element, optional.contains(&index));
            let expected = *first.get_or_insert(of);
            if !same(expected, of) {
                return self.report_mismatch(*element, expected, of);
            }
        }
    }

    fn map(&mut self, node: NodeId) {
        let Expr::Map { entries } = self.expr(node) else {
            return;
        };
        let mut first: Option<(&Type, &Type)> = None;
        for entry in entries {
            let key = self.element_type(entry.key, false);
            let value = self.element_type(entry.value, entry.optional);
            let expected = *first.get_or_insert((key, value));
            if !same(expected.0, key) {
                self.report_mismatch(entry.key, expected.0, key);
            }
            if !same(expected.1, value) {
                self.report_mismatch(entry.value, expected.1, value);
            }
        }
    }

    fn report_mismatch(&mut self, node: NodeId, expected: &Type, found: &Type) {
        let (expected, found) = (expected.message(), found.message());
        self.report(
            node,
            format!("expected type '{expected}' but found '{found}'"),
        );
    }
}
