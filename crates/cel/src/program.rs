//! Programs: what is left of an expression to evaluate. Immutable, and shared between threads.

use crate::env::Checked;
use crate::eval::{Authorize, Budget, EvalError, Evaluator, Lazy};
use crate::large_stack;
pub use crate::plan::PlanError;
use crate::plan::{self, Plan};
use crate::value::Value;

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    plan: Plan,
    /// It needs the room of [`large_stack`].
    deep: bool,
}

/// The values of variables.
#[derive(Clone, Debug, Default)]
pub struct Activation<'a> {
    variables: Vec<(&'a str, Value<'a>)>,
}

/// What an evaluation came to.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    pub result: Result<Value<'a>, EvalError>,
    /// What it cost, whether it has a value or not.
    pub cost: u64,
}

impl<'a> Activation<'a> {
    #[must_use]
    pub fn with(mut self, name: &'a str, value: Value<'a>) -> Self {
        self.variables.push((name, value));
        self
    }

    fn get(&self, name: &str) -> Option<Value<'a>> {
        let found = self
            .variables
            .iter()
            .rev()
            .find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone())
    }
}

impl Program {
    /// Plans a checked expression.
    ///
    /// # Errors
    /// A constant cannot be converted, or is no regular expression.
    pub fn new(checked: &Checked) -> Result<Program, PlanError> {
        let deep = checked.ast.is_deep();
        let plan = if deep {
            let interrupted = |_| Err(PlanError::Constant(EvalError::Interrupted));
            large_stack::run(|| plan::plan(checked)).unwrap_or_else(interrupted)?
        } else {
            plan::plan(checked)?
        };
        Ok(Program { plan, deep })
    }

    /// Evaluates with these variables.
    #[must_use]
    pub fn eval<'a>(&'a self, variables: &Activation<'a>, budget: Budget<'_>) -> Outcome<'a> {
        self.run(variables, budget, None, None)
    }

    /// Evaluates an expression that may ask the authorizer. `authorize` answers at once, or says that
    /// the answer takes time; see [`EvalError::Pending`].
    #[must_use]
    pub fn eval_with_authorizer<'a>(
        &'a self,
        variables: &Activation<'a>,
        budget: Budget<'_>,
        authorize: &Authorize<'_>,
    ) -> Outcome<'a> {
        self.run(variables, budget, Some(authorize), None)
    }

    /// The same for an expression that may also select members of a lazy variable.
    #[must_use]
    pub fn eval_lazily<'a>(
        &'a self,
        variables: &Activation<'a>,
        budget: Budget<'_>,
        authorize: &Authorize<'_>,
        lazy: &Lazy<'a, '_>,
    ) -> Outcome<'a> {
        self.run(variables, budget, Some(authorize), Some(lazy))
    }

    fn run<'a>(
        &'a self,
        variables: &Activation<'a>,
        budget: Budget<'_>,
        authorize: Option<&Authorize<'_>>,
        lazy: Option<&Lazy<'a, '_>>,
    ) -> Outcome<'a> {
        let evaluate = || {
            let names = self.plan.variables.iter();
            let globals = names.map(|name| variables.get(name)).collect();
            let mut evaluator = Evaluator::new(&self.plan, globals, budget, authorize, lazy);
            let result = evaluator.eval(&self.plan.root);
            Outcome {
                result,
                cost: evaluator.cost,
            }
        };

        if !self.deep {
            return evaluate();
        }
        // Without a thread it cannot be evaluated: as if it had been stopped.
        large_stack::run(evaluate).unwrap_or(Outcome {
            result: Err(EvalError::Interrupted),
            cost: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;

    #[test]
    fn the_deepest_expression_is_evaluated_from_a_small_stack() {
        for text in [
            format!("1{}", "+1".repeat(250)),
            "[".repeat(249) + &"]".repeat(249),
            "[1].map(x, ".repeat(120) + "1" + &")".repeat(120),
        ] {
            let evaluate = move || {
                let checked = Env::base().compile(&text).unwrap();
                let program = Program::new(&checked).unwrap();
                let outcome = program.eval(&Activation::default(), Budget::default());
                outcome.result.is_ok()
            };
            let thread = std::thread::Builder::new()
                .stack_size(1 << 20)
                .spawn(evaluate);
            assert!(thread.unwrap().join().unwrap());
        }
    }
}
