//! Comprehensions.

use std::sync::Arc;

use super::{EvalError, Evaluator, Outcome, Slot};
use crate::plan::{Fold, Node};
use crate::value::{List, Value, go_type};

/// Interruption is tested once in so many steps.
const CHECKED_EACH: u32 = 100;

impl<'a> Evaluator<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        let slot = fold.slot as usize;
        self.slots[slot] = Slot::Init(&fold.init);

        match (&range, fold.pairs) {
            (Value::List(list), pairs) => {
                for index in 0..list.len() {
                    let item = list.get(index);
                    if pairs {
                        let index = i64::try_from(index).unwrap_or(i64::MAX);
                        self.slots[slot + 1] = Slot::Ready(Ok(Value::Int(index)));
                        self.slots[slot + 2] = Slot::Ready(item);
                    } else {
                        self.slots[slot + 1] = Slot::Ready(item);
                    }
                    if !self.step(fold)? {
                        break;
                    }
                }
            }
            (Value::Map(map), pairs) => {
                for index in 0..map.len() {
                    let Some((key, value)) = map.entry(index) else {
                        continue;
                    };
                    self.slots[slot + 1] = Slot::Ready(Ok(key));
                    if pairs {
                        self.slots[slot + 2] = Slot::Ready(value);
                    }
                    if !self.step(fold)? {
                        break;
                    }
                }
            }
            (other, true) => {
                return Err(EvalError::failed(format!(
                    "unsupported comprehension range type: {}",
                    go_type(other)
                )));
            }
            (other, false) => {
                return Err(EvalError::failed(format!(
                    "got '{}', expected iterable type",
                    go_type(other)
                )));
            }
        }

        let result = self.eval(&fold.result);
        for slot in &mut self.slots[slot..slot + 3] {
            *slot = Slot::Empty;
        }
        result
    }

    /// One step; whether to go on.
    fn step(&mut self, fold: &'a Fold) -> Result<bool, EvalError> {
        self.context.work.spend(1)?;
        let condition = self.operand(&fold.condition)?;
        if matches!(condition, Ok(Value::Bool(false))) {
            return Ok(false);
        }

        let value = self.operand(&fold.step)?;
        self.slots[fold.slot as usize] = Slot::Ready(value);

        self.folded += 1;
        if self.folded >= CHECKED_EACH {
            self.folded = 0;
            if self.budget.is_interrupted() {
                return Err(EvalError::Interrupted);
            }
        }
        Ok(true)
    }

    /// The accumulator and more elements. It is taken out of its slot, so that it is not copied
    /// if nothing else has it: the step's value goes there again.
    pub(super) fn append(&mut self, slot: u32, more: &'a Node) -> Outcome<'a> {
        let accumulator = match self.local(slot) {
            Err(error) if error.is_final() => return Err(error),
            outcome => outcome,
        };
        self.charge(1)?;
        let more = self.operand(more)?;
        self.charge(1)?;
        let (accumulator, more) = (accumulator?, more?);

        let (Value::List(mut list), Value::List(more)) = (accumulator, more) else {
            return Err(EvalError::NoSuchOverload);
        };
        self.slots[slot as usize] = Slot::Empty;
        self.context.work.allocate_list(more.len())?;
        let is_only = matches!(&list, List::Shared(items) if Arc::strong_count(items) == 1);
        if !is_only {
            self.context.work.allocate_list(list.len())?;
            let items = list.iter().collect::<Result<Vec<_>, _>>()?;
            list = List::from(items);
        }
        if let List::Shared(items) = &mut list
            && let Some(items) = Arc::get_mut(items)
        {
            for item in more.iter() {
                items.push(item?);
            }
        }
        Ok(Value::List(list))
    }

    /// The accumulator and another entry, or the entries of another map.
    pub(super) fn insert(&mut self, slot: u32, more: &'a [Node]) -> Outcome<'a> {
        let map = match self.local(slot) {
            Err(error) if error.is_final() => return Err(error),
            outcome => outcome,
        };
        self.charge(1)?;
        // With a key and a value the first failure ends the evaluation; a map is always evaluated.
        let early = more.len() == 2;
        if early && map.is_err() {
            return map;
        }

        let mut values = Vec::with_capacity(more.len());
        for (index, node) in more.iter().enumerate() {
            let value = self.operand(node)?;
            if value.is_err() && index + 1 < more.len() {
                return value;
            }
            values.push(value);
        }
        self.charge(1)?;
        let map = map?;
        let values = values.into_iter().collect::<Result<Vec<_>, _>>()?;

        self.slots[slot as usize] = Slot::Empty;
        crate::library::insert(&mut self.context, map, &values)
    }
}
