//! The variables of folds, and where their values are.

use std::sync::Arc;

/// The variables of one fold.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) accumulator: Arc<str>,
    pub(super) variable: Option<Arc<str>>,
    pub(super) second: Option<Arc<str>>,
}

/// The folds around an expression. Each has three slots.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    open: Vec<Scope>,
    most: usize,
}

const SLOTS: usize = 3;

impl Scopes {
    /// Opens a fold and returns its first slot.
    pub(super) fn enter(&mut self, scope: Scope) -> u32 {
        let slot = self.open.len() * SLOTS;
        self.open.push(scope);
        self.most = self.most.max(self.open.len());
        number(slot)
    }

    /// In the result only the accumulator is visible.
    pub(super) fn hide_variables(&mut self) {
        if let Some(scope) = self.open.last_mut() {
            scope.variable = None;
            scope.second = None;
        }
    }

    pub(super) fn leave(&mut self) {
        self.open.pop();
    }

    /// The slot of a variable; the innermost fold that has it counts.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let found = self
            .open
            .iter()
            .enumerate()
            .rev()
            .find_map(|(level, scope)| {
                let is = |variable: &Option<Arc<str>>| variable.as_deref() == Some(name);
                let place = if &*scope.accumulator == name {
                    0
                } else if is(&scope.variable) {
                    1
                } else if is(&scope.second) {
                    2
                } else {
                    return None;
                };
                Some(level * SLOTS + place)
            })?;
        Some(number(found))
    }

    /// The slot of the innermost fold's accumulator, if it has this name and is no user's
    /// variable.
    pub(super) fn accumulator(&self, name: &str) -> Option<u32> {
        let scope = self.open.last()?;
        let is = scope.variable.is_some() && &*scope.accumulator == name && name.starts_with('@');
        is.then(|| number((self.open.len() - 1) * SLOTS))
    }

    /// How many slots are needed at once.
    pub(super) fn most(&self) -> u32 {
        number(self.most * SLOTS)
    }
}

fn number(slot: usize) -> u32 {
    u32::try_from(slot).expect("nesting is bounded by the parser")
}
