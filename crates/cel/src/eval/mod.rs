//! Evaluation of plans, with upstream's costs.
//!
//! Costs are charged by the step, and the limit is tested at each. Upstream keeps the values of
//! steps on a stack, and charges a call only if the values of all its arguments are there; they
//! are if all arguments were evaluated, which is what is tested here.
//!
//! An evaluation never waits. If the authorizer must ask somewhere else, the evaluation ends with
//! [`EvalError::Pending`]; its caller gets the answer, remembers it, and evaluates again. An
//! expression can pay for two checks at most, so it is evaluated three times at most, and no thread
//! is blocked meanwhile.
//!
//! One variable may be [`Lazy`]: its caller evaluates a member when an expression first selects it.

mod attribute;
mod budget;
mod call;
mod construct;
mod cost;
mod error;
mod fold;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use budget::{Answer, Authorize, Budget, Context, Lazy, PER_CALL_LIMIT, Work};
pub(crate) use call::dispatch;
pub use error::EvalError;

use crate::plan::{Node, Plan};
use crate::value::{List, Map, Text, Value, equal};

pub(crate) type Outcome<'a> = Result<Value<'a>, EvalError>;

/// The value of a fold's variable.
enum Slot<'a> {
    Empty,
    /// The accumulator's first value, which is evaluated when it is needed.
    Init(&'a Node),
    Ready(Outcome<'a>),
}

pub(crate) struct Evaluator<'a, 'e> {
    globals: Vec<Option<Value<'a>>>,
    /// The place of a lazy variable among them.
    lazy: Option<(usize, &'e Lazy<'a, 'e>)>,
    names: &'a [Arc<str>],
    slots: Vec<Slot<'a>>,
    pub(crate) cost: u64,
    budget: Budget<'e>,
    /// Steps of folds, for the test whether to stop.
    folded: u32,
    context: Context<'e>,
}

impl<'a, 'e> Evaluator<'a, 'e> {
    pub(crate) fn new(
        plan: &'a Plan,
        globals: Vec<Option<Value<'a>>>,
        budget: Budget<'e>,
        authorize: Option<&'e Authorize<'e>>,
        lazy: Option<&'e Lazy<'a, 'e>>,
    ) -> Self {
        let slots = (0..plan.slots).map(|_| Slot::Empty).collect();
        let lazy = lazy.and_then(|lazy| {
            let mut names = plan.variables.iter();
            Some((names.position(|name| **name == *lazy.variable)?, lazy))
        });
        Evaluator {
            globals,
            lazy,
            names: &plan.variables,
            slots,
            cost: 0,
            budget,
            folded: 0,
            context: Context::new(authorize),
        }
    }

    pub(crate) fn eval(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Const(value) => Ok(borrow(value)),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equal(both, wanted) => self.equality(both, *wanted),
            Node::InSet(search) => {
                let value = self.eval(&search.0)?;
                search.1.contains(&value).map(Value::Bool)
            }
            Node::NotStrictlyFalse(arg) => self.not_strictly_false(arg),
            Node::OptionalOr(both) => self.optional_or(both, false),
            Node::OptionalOrValue(both) => self.optional_or(both, true),
            Node::Call(call) => self.call(call),
            Node::Append(slot, more) => self.append(*slot, more),
            Node::Insert(slot, more) => self.insert(*slot, more),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Object(object) => self.object(object),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// Adds to the cost.
    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.wrapping_add(cost);
        if self.cost > self.budget.cost {
            return Err(EvalError::CostLimit);
        }
        Ok(())
    }

    /// `&&` and `||`: `decisive` in one operand decides, whatever the others are.
    fn logical(&mut self, terms: &'a [Node], decisive: bool) -> Outcome<'a> {
        let mut failure = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(flag)) if flag == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(EvalError::NoSuchOverload)),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(Value::Bool(!decisive)),
        }
    }

    fn equality(&mut self, both: &'a [Node; 2], wanted: bool) -> Outcome<'a> {
        let a = self.operand(&both[0])?;
        let b = self.operand(&both[1])?;
        self.charge(cost::equality(&a, &b, wanted))?;

        match (a, b) {
            (Ok(a), Ok(b)) => match equal(&a, &b, &mut self.context.work) {
                Ok(same) => Ok(Value::Bool(same == wanted)),
                // What cannot be compared is not equal.
                Err(error) if !wanted && !error.is_final() => Ok(Value::Bool(true)),
                Err(error) => Err(error),
            },
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    /// A value or an error that other operands may make irrelevant; final errors are the result.
    fn operand(&mut self, node: &'a Node) -> Result<Outcome<'a>, EvalError> {
        match self.eval(node) {
            Err(error) if error.is_final() => Err(error),
            outcome => Ok(outcome),
        }
    }

    fn not_strictly_false(&mut self, arg: &'a Node) -> Outcome<'a> {
        let value = self.operand(arg)?;
        self.charge(1)?;
        Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false)))))
    }

    fn optional_or(&mut self, both: &'a [Node; 2], unwraps: bool) -> Outcome<'a> {
        match self.eval(&both[0])? {
            Value::Optional(None) => self.eval(&both[1]),
            Value::Optional(Some(value)) if unwraps => value.taken(),
            other => Ok(other),
        }
    }
}

/// A constant of the program: only what is small is copied.
fn borrow<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(Text::Shared(text)) => Value::String(Text::Borrowed(text)),
        Value::List(List::Shared(items)) => Value::List(List::Slice(items)),
        Value::Map(Map::Shared(entries)) => Value::Map(Map::Entries(entries)),
        other => other.clone(),
    }
}
