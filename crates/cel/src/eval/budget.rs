//! What an evaluation may use.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coracle_api::schema::{Pattern, PatternError};

use super::EvalError;
use crate::value::{Check, Value, Verdict};

/// The default limit of the cost of one evaluation.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// Steps of comparing, searching and copying. Upstream charges some of them nothing at all; an
/// evaluation that needs more than this takes seconds there.
const MOST_STEPS: u64 = 20_000_000;

/// Bytes that strings, lists and maps of one evaluation may take, all together.
const MOST_BYTES: u64 = 64 << 20;

/// What one evaluation may cost, and who can stop it.
#[derive(Clone, Copy, Debug)]
pub struct Budget<'e> {
    pub cost: u64,
    /// Set from outside to stop the evaluation.
    pub interrupt: Option<&'e AtomicBool>,
}

impl Default for Budget<'_> {
    fn default() -> Self {
        Budget {
            cost: PER_CALL_LIMIT,
            interrupt: None,
        }
    }
}

impl Budget<'_> {
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupt
            .is_some_and(|interrupt| interrupt.load(Ordering::Relaxed))
    }
}

/// What costs do not count: work that upstream does for nothing, and memory. Exceeding it ends the
/// evaluation as if it were too expensive.
#[derive(Debug)]
pub struct Work {
    steps: u64,
    bytes: u64,
}

impl Default for Work {
    fn default() -> Self {
        Work {
            steps: MOST_STEPS,
            bytes: MOST_BYTES,
        }
    }
}

impl Work {
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        match self.steps.checked_sub(steps as u64) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(EvalError::CostLimit),
        }
    }

    /// Reads bytes, which is fast.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.spend(bytes / 16)
    }

    /// Takes memory, before it is allocated.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), EvalError> {
        match self.bytes.checked_sub(bytes as u64) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => Err(EvalError::CostLimit),
        }
    }

    /// Takes memory for a list of this many elements.
    pub(crate) fn allocate_list(&mut self, len: usize) -> Result<(), EvalError> {
        self.spend(len)?;
        self.allocate(len.saturating_mul(size_of::<Value<'_>>()))
    }
}

/// What the authorizer says to a check.
#[derive(Clone, Debug)]
pub enum Answer {
    Decided(Verdict),
    /// It asks somewhere else: the evaluation ends with [`EvalError::Pending`].
    Later,
}

/// Answers what an expression asks the authorizer.
pub type Authorize<'e> = dyn Fn(&Check) -> Answer + Sync + 'e;

/// A variable whose members are evaluated when an expression selects them. `None`: it has no such
/// member.
pub struct Lazy<'a, 'e> {
    pub variable: &'e str,
    /// Of the object type that it is.
    pub type_name: &'e str,
    pub member: &'e (dyn Fn(&str) -> Option<Result<Value<'a>, EvalError>> + Sync + 'e),
}

/// What functions use of their evaluation.
pub struct Context<'e> {
    pub(crate) work: Work,
    pub(crate) authorize: Option<&'e Authorize<'e>>,
    /// Expressions that were computed, in order of use; few, because each is compiled.
    patterns: HashMap<Arc<str>, Result<Arc<Pattern>, PatternError>>,
}

/// How many computed regular expressions an evaluation keeps.
const MOST_PATTERNS: usize = 64;

/// Steps of work for compiling a unit of a regular expression's weight.
const COMPILE_STEPS: usize = 10;

impl<'e> Context<'e> {
    pub(crate) fn new(authorize: Option<&'e Authorize<'e>>) -> Self {
        Context {
            work: Work::default(),
            authorize,
            patterns: HashMap::new(),
        }
    }

    /// A compiled regular expression; `refused` makes the error where it is none.
    pub(crate) fn pattern(
        &mut self,
        text: &str,
        refused: fn(PatternError) -> EvalError,
    ) -> Result<Arc<Pattern>, EvalError> {
        if let Some(known) = self.patterns.get(text) {
            return known.clone().map_err(refused);
        }
        if self.patterns.len() >= MOST_PATTERNS {
            self.patterns.clear();
        }

        self.work.spend(text.len())?;
        let pattern = Pattern::new(text).map(Arc::new);
        if let Ok(pattern) = &pattern {
            let weight = pattern.weight();
            self.work.spend(weight.saturating_mul(COMPILE_STEPS))?;
        }
        self.patterns.insert(text.into(), pattern.clone());
        pattern.map_err(refused)
    }
}
