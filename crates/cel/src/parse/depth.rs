//! How deep rules of the grammar are nested, counted as cel-go's parser does.
//!
//! Only the rules counted here can be the first to exceed the limit.

/// How deep a rule may be nested.
const LIMIT: u32 = 250;

/// The error of a text that nests too deeply.
pub(crate) const MESSAGE: &str = "expression recursion limit exceeded: 250";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

#[derive(Debug, Default)]
pub(crate) struct Counter(u32);

impl Counter {
    pub(crate) fn enter(&mut self) -> Result<(), TooDeep> {
        self.0 += 1;
        if self.0 > LIMIT { Err(TooDeep) } else { Ok(()) }
    }

    /// An operator of the rule begins its own nesting in place of the one before.
    pub(crate) fn again(&mut self) -> Result<(), TooDeep> {
        self.0 = self.0.saturating_sub(1);
        self.enter()
    }

    pub(crate) fn leave(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Depth {
    expr: Counter,
    pub(crate) relation: Counter,
    pub(crate) calc: Counter,
}

impl Depth {
    pub(crate) fn enter_expr(&mut self) -> Result<(), TooDeep> {
        self.expr.enter()
    }

    pub(crate) fn leave_expr(&mut self) {
        self.expr.leave();
    }
}
