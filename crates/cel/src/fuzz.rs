//! The property that holds for any text: it is refused or becomes a program, and the program ends
//! within its budget. `fuzz/` calls this with generated texts, the tests with stored ones.

use std::sync::LazyLock;

use coracle_api::Value as Tree;
use coracle_api::codec::json;

use crate::cost::{Range, estimate};
use crate::env::Env;
use crate::eval::{Budget, EvalError};
use crate::program::{Activation, Program};
use crate::types::Type;
use crate::value::Value;

/// What the variables of any type are.
const OBJECT: &str =
    r#"{"a": [1, 2, 3], "b": {"c": "text", "d": null}, "e": 1.5, "f": "2024-01-02T03:04:05Z"}"#;

/// # Panics
/// If the property does not hold.
pub fn expression(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    static ENV: LazyLock<Env> = LazyLock::new(|| {
        Env::base()
            .with_variable("x", Type::Dyn)
            .with_variable("i", Type::Int)
            .with_variable("s", Type::String)
            .with_variable("l", Type::list(Type::Int))
    });
    static TREE: LazyLock<Tree> =
        LazyLock::new(|| json::parse(OBJECT.as_bytes()).expect("the object is JSON"));

    let checked = match ENV.compile(text) {
        Ok(checked) => checked,
        Err(issues) => {
            assert!(!issues.to_string().is_empty());
            return;
        }
    };
    assert!(!checked.ast.debug_text().is_empty());
    let Range { min, max } = estimate(&checked, &|_| None);
    assert!(min <= max, "costs at least {min} and at most {max}");
    let Ok(program) = Program::new(&checked) else {
        return;
    };

    let activation = Activation::default()
        .with("x", Value::of(&TREE))
        .with("i", Value::Int(3))
        .with("s", Value::string("hello"))
        .with("l", Value::list(vec![Value::Int(2), Value::Int(1)]));
    // Small, so that many inputs are tried.
    let budget = Budget {
        cost: 10_000,
        ..Budget::default()
    };
    let limit = budget.cost;
    let outcome = program.eval(&activation, budget);
    assert!(
        outcome.cost <= limit || matches!(outcome.result, Err(EvalError::CostLimit)),
        "cost {} with a limit of {limit}",
        outcome.cost
    );
}
