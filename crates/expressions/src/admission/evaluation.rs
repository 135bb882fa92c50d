//! Evaluation of the expressions of one policy or webhook for one request.
//!
//! Expressions share a budget and the values of variables: a variable is evaluated when an
//! expression first selects it, and that expression pays for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use coracle_base::sync::Mutex;
use coracle_cel::eval::{Budget, EvalError, Lazy};
use coracle_cel::large_stack;
use coracle_cel::program::Activation;
use coracle_cel::value::{Check, Value};

use super::{CompileError, Expression, Inputs, VARIABLES, Variables};

/// What all expressions of a policy may cost for one binding and parameter.
pub const POLICY_BUDGET: u64 = 10_000_000;

/// What all match conditions of a policy or webhook may cost.
pub const CONDITIONS_BUDGET: u64 = 2_500_000;

/// An expression of a stored object. It was valid when it was written, but may have become invalid.
#[derive(Debug)]
pub struct Compiled {
    pub text: String,
    pub expression: Result<Expression, CompileError>,
}

/// Why an expression has no value. The texts are upstream's.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    #[error("compilation error: {0}")]
    Compilation(String),
    #[error("expression '{expression}' resulted in error: {error}")]
    Evaluation {
        expression: String,
        error: EvalError,
    },
}

/// Why evaluation stops.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Stopped {
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )]
    OutOfBudget,
    /// The authorizer must be asked; with its answer, everything is evaluated again.
    #[error("authorization check is not answered yet")]
    Pending(Arc<Check>),
}

/// The evaluation of some expressions that share their variables' values.
pub struct Evaluation<'a> {
    inputs: Inputs<'a>,
    activation: Activation<'a>,
    variables: &'a Variables,
    /// The values of variables that were selected.
    values: Mutex<Vec<Option<Result<Value<'a>, EvalError>>>>,
    /// What evaluating them cost since an expression last paid for it.
    unpaid: AtomicU64,
    /// How many variables are being evaluated, each because the one before selects it.
    depth: AtomicU32,
    budget: u64,
}

/// So many variables that select one another are evaluated on the stack of the caller …
const ON_THIS_STACK: u32 = 4;

/// … and so many on each stack of a thread: an expression of the usual height takes a few hundred
/// kilobytes at most.
const ON_LARGE_STACK: u32 = 128;

impl<'a> Evaluation<'a> {
    pub fn new(inputs: Inputs<'a>, variables: &'a Variables, budget: u64) -> Evaluation<'a> {
        Evaluation {
            inputs,
            activation: inputs.activation(),
            variables,
            values: Mutex::new(vec![None; variables.len()]),
            unpaid: AtomicU64::new(0),
            depth: AtomicU32::new(0),
            budget,
        }
    }

    /// What is left of the budget.
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// # Errors
    /// Nothing more is evaluated. That an expression fails is no error: others are evaluated still.
    pub fn evaluate(
        &mut self,
        compiled: &'a Compiled,
    ) -> Result<Result<Value<'a>, Failure>, Stopped> {
        let expression = match &compiled.expression {
            Ok(expression) => expression,
            Err(error) => return Ok(Err(Failure::Compilation(error.to_string()))),
        };

        let (result, cost) = self.run(expression);
        if let Err(EvalError::Pending(check)) = result {
            return Err(Stopped::Pending(check));
        }

        let unpaid = self.unpaid.swap(0, Ordering::Relaxed);
        self.pay(unpaid)?;
        self.pay(cost)?;
        Ok(result.map_err(|error| Failure::Evaluation {
            expression: compiled.text.clone(),
            error,
        }))
    }

    fn pay(&mut self, cost: u64) -> Result<(), Stopped> {
        let left = self.budget.checked_sub(cost);
        self.budget = left.ok_or(Stopped::OutOfBudget)?;
        Ok(())
    }

    fn run(&self, expression: &'a Expression) -> (Result<Value<'a>, EvalError>, u64) {
        let member = |name: &str| self.variable(name);
        let lazy = Lazy {
            variable: "variables",
            type_name: VARIABLES,
            member: &member,
        };
        let outcome = expression.program.eval_lazily(
            &self.activation,
            Budget::default(),
            self.inputs.authorize,
            &lazy,
        );
        (outcome.result, outcome.cost)
    }

    /// The same one level deeper, with room for it.
    fn run_deeper(&self, expression: &'a Expression) -> (Result<Value<'a>, EvalError>, u64) {
        let depth = self.depth.fetch_add(1, Ordering::Relaxed);
        let is_full = depth == ON_THIS_STACK || depth > 0 && depth.is_multiple_of(ON_LARGE_STACK);
        let outcome = match is_full {
            false => self.run(expression),
            true => large_stack::run(|| self.run(expression))
                .unwrap_or((Err(EvalError::Interrupted), 0)),
        };
        self.depth.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    fn variable(&self, name: &str) -> Option<Result<Value<'a>, EvalError>> {
        let place = self.variables.position(name)?;
        let known = || self.values.lock();
        if let Some(value) = &known()[place] {
            return Some(value.clone());
        }

        let fails = |what: &str, why: &dyn std::fmt::Display| {
            EvalError::Failed(format!("composited variable {name:?} fails to {what}: {why}").into())
        };
        let value = match &self.variables.at(place).compiled {
            Err(error) => Err(fails("compile", error)),
            Ok(expression) => {
                let (result, cost) = self.run_deeper(expression);
                if let Err(EvalError::Pending(_)) = result {
                    return Some(result);
                }
                self.unpaid.fetch_add(cost, Ordering::Relaxed);
                result.map_err(|error| fails("evaluate", &error))
            }
        };

        known()[place] = Some(value.clone());
        Some(value)
    }
}
