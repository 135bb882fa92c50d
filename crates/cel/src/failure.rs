//! Where an expression failed, for people who write it.
//!
//! Errors of an evaluation have no place, as upstream's have none, and keeping one would cost every
//! evaluation. So parts of the expression are evaluated again, on demand: those of a part that
//! failed, until none of them fails in the same way.

use crate::ast::operators::CONDITIONAL;
use crate::ast::{Ast, Expr, NodeId};
use crate::env::Checked;
use crate::program::Program;
use crate::source::Location;

/// What evaluating a part came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    True,
    /// Any other value.
    Value,
    /// With this text.
    Error(String),
}

/// The place of the innermost part that fails as the whole does. What is inside of a comprehension
/// is not looked into, because its variables have no values outside of it.
#[must_use]
pub fn place(checked: &Checked, evaluate: &dyn Fn(Program) -> Part) -> Location {
    let mut whole = checked.clone();
    let mut evaluate = |part: NodeId| {
        whole.ast.set_root(part);
        match Program::new(&whole) {
            Ok(program) => evaluate(program),
            Err(error) => Part::Error(error.to_string()),
        }
    };

    let ast = &checked.ast;
    let mut at = ast.root();
    let failure = evaluate(at);
    while let Some(inner) = evaluated_parts(ast, at, &mut evaluate)
        .into_iter()
        .find(|part| evaluate(*part) == failure)
    {
        at = inner;
    }
    ast.source().location(ast.offset(at))
}

/// The parts of a node that are evaluated with it.
fn evaluated_parts(
    ast: &Ast,
    node: NodeId,
    evaluate: &mut impl FnMut(NodeId) -> Part,
) -> Vec<NodeId> {
    match ast.expr(node) {
        Expr::Comprehension(fold) => vec![fold.iter_range, fold.accu_init],
        Expr::Call { function, args, .. } if **function == *CONDITIONAL => {
            match evaluate(args[0]) {
                Part::True => vec![args[1]],
                Part::Value => vec![args[2]],
                Part::Error(_) => vec![args[0]],
            }
        }
        _ => ast.children(node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::eval::Budget;
    use crate::program::Activation;
    use crate::types::Type;
    use crate::value::Value;

    #[test]
    fn a_failure_is_placed_at_the_innermost_part_that_fails() {
        let check = |text: &str, line: i32, column: i32| {
            let env = Env::base().with_variable("x", Type::Dyn);
            let evaluate = |program: Program| {
                let variables = Activation::default().with("x", Value::list(vec![]));
                match program.eval(&variables, Budget::default()).result {
                    Ok(Value::Bool(true)) => Part::True,
                    Ok(_) => Part::Value,
                    Err(error) => Part::Error(error.to_string()),
                }
            };
            let found = place(&env.compile(text).unwrap(), &evaluate);
            assert_eq!(found, Location { line, column }, "{text}");
        };

        check("1 + 1 / 0 + 2", 1, 6);
        check("true &&\n 1 / 0 == 1", 2, 3);
        // The first operand is not what decides.
        check("1 / 0 == 1 || x[7] == 1", 1, 2);
        check("false && 1 / 0 == 1 || x[7] == 2", 1, 24);
        check("size(x) == 0 ? x[3] : x[3]", 1, 16);
        check("size(x) == 1 ? x[3] : x[3]", 1, 23);
        check("[1, 0].map(a, 1 / a).size() > 0", 1, 10);
        check("[1, 1 / 0].map(a, a).size() > 0", 1, 6);
        check("x.a.b", 1, 1);
    }
}
