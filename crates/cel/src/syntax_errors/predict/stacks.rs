//! Stacks of callers, many at once: what a configuration returns to.
//!
//! Stacks that share an end share it in memory, and equal ones are the same; so is what ANTLR
//! merges and compares.

use std::collections::HashMap;

use super::super::automaton::StateId;

/// A set of stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StackId(u32);

impl StackId {
    /// The empty stack. Where the caller is not looked at, it stands for any.
    pub(super) const EMPTY: Self = Self(0);
}

/// Returns to nothing: the end of a stack among others.
pub(super) const NO_RETURN: StateId = StateId::MAX;

/// A top of stacks, and what is below.
type Top = (StateId, StackId);

#[derive(Debug)]
pub(super) struct Stacks {
    /// By return state. The empty stack is [`NO_RETURN`] over itself.
    tops: Vec<Vec<Top>>,
    known: HashMap<Vec<Top>, StackId>,
    merged: HashMap<(StackId, StackId, bool), StackId>,
}

impl Default for Stacks {
    fn default() -> Self {
        let empty = vec![(NO_RETURN, StackId::EMPTY)];
        Self {
            known: HashMap::from([(empty.clone(), StackId::EMPTY)]),
            tops: vec![empty],
            merged: HashMap::new(),
        }
    }
}

impl Stacks {
    pub(super) fn tops(&self, stack: StackId) -> &[Top] {
        &self.tops[stack.0 as usize]
    }

    pub(super) fn push(&mut self, stack: StackId, follow: StateId) -> StackId {
        self.intern(vec![(follow, stack)])
    }

    /// Whether one of the stacks is empty.
    pub(super) fn has_empty(&self, stack: StackId) -> bool {
        self.tops(stack)
            .last()
            .is_some_and(|(state, _)| *state == NO_RETURN)
    }

    fn intern(&mut self, tops: Vec<Top>) -> StackId {
        if let Some(known) = self.known.get(&tops) {
            return *known;
        }
        let id = StackId(u32::try_from(self.tops.len()).expect("steps are limited"));
        self.tops.push(tops.clone());
        self.known.insert(tops, id);
        id
    }

    /// The stacks of both. If `any`, the empty one stands for all others.
    pub(super) fn merge(&mut self, one: StackId, other: StackId, any: bool) -> StackId {
        if one == other {
            return one;
        }
        if any && (one == StackId::EMPTY || other == StackId::EMPTY) {
            return StackId::EMPTY;
        }
        if let Some(merged) = self.merged.get(&(one, other, any)) {
            return *merged;
        }

        let (left, right) = (self.part(one), self.part(other));
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        loop {
            let next = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(a), Some(b)) if a.0 == b.0 => {
                    let (state, below, other) = (a.0, a.1, b.1);
                    left.next();
                    right.next();
                    (state, self.merge(below, other, any))
                }
                (Some(a), Some(b)) if a.0 > b.0 => take(&mut right),
                (None, Some(_)) => take(&mut right),
                (Some(_), _) => take(&mut left),
            };
            merged.push(next);
        }

        let result = self.intern(merged);
        self.merged.insert((one, other, any), result);
        result
    }

    /// What is merged of a set of stacks: of the empty stack alone, nothing (a slip of ANTLR's Go
    /// runtime).
    fn part(&self, stack: StackId) -> Vec<Top> {
        match stack {
            StackId::EMPTY => Vec::new(),
            _ => self.tops(stack).to_vec(),
        }
    }
}

fn take(tops: &mut impl Iterator<Item = Top>) -> Top {
    tops.next().expect("it was just seen")
}
