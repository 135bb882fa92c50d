//! Programs: what is left of an expression to evaluate. Immutable, and shared between threads.

use crate::env::Checked;
use crate::eval::{Answer, Budget, EvalError, Evaluator};
pub use crate::plan::PlanError;
use crate::plan::{self, Plan};
use crate::value::{Check, Value};

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    plan: Plan,
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
        plan::plan(checked).map(|plan| Program { plan })
    }

    /// Evaluates with these variables.
    #[must_use]
    pub fn eval<'a>(&'a self, variables: &Activation<'a>, budget: Budget<'_>) -> Outcome<'a> {
        self.run(variables, budget, None)
    }

    /// Evaluates an expression that may ask the authorizer. `authorize` answers at once, or says that
    /// the answer takes time; see [`EvalError::Pending`].
    #[must_use]
    pub fn eval_with_authorizer<'a>(
        &'a self,
        variables: &Activation<'a>,
        budget: Budget<'_>,
        authorize: &dyn Fn(&Check) -> Answer,
    ) -> Outcome<'a> {
        self.run(variables, budget, Some(authorize))
    }

    fn run<'a>(
        &'a self,
        variables: &Activation<'a>,
        budget: Budget<'_>,
        authorize: Option<&dyn Fn(&Check) -> Answer>,
    ) -> Outcome<'a> {
        let names = self.plan.variables.iter();
        let globals = names.map(|name| variables.get(name)).collect();
        let mut evaluator = Evaluator::new(&self.plan, globals, budget, authorize);
        let result = evaluator.eval(&self.plan.root);
        Outcome {
            result,
            cost: evaluator.cost,
        }
    }
}
