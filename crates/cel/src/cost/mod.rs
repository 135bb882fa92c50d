//! The estimate of what an expression can cost, from its checked tree alone.
//!
//! Definitions with rules that may cost too much are refused at once, before there are objects; so
//! the numbers are part of the API, and are upstream's to the unit, slips included. A node costs a
//! range, and may have a size: of a literal, of what a call returns, or of what the path of fields
//! from a variable leads to, for which the caller is asked ([`estimate`]). What one element can
//! have travels with lists and maps, and through the variables of comprehensions.
//!
//! `walk` goes through the tree; `calls` has one rule per [`CostClass`](crate::declare::CostClass).

mod calls;
mod path;
mod range;
mod walk;

use std::sync::Arc;

pub use range::Range;

use crate::env::Checked;
use crate::large_stack;

/// What is known of the size of a value that comes from a variable. The path begins with the name
/// of the variable (or, as upstream has it, with the first step from a value that comes from none:
/// `@items` for an element of `f(x)`); then names of fields, `@items`, `@keys`, `@values`,
/// `@indices`.
pub type SizeHints<'a> = dyn Fn(&[Arc<str>]) -> Option<Range> + Sync + 'a;

/// What evaluating the expression can cost, least and most.
#[must_use]
pub fn estimate(checked: &Checked, hints: &SizeHints<'_>) -> Range {
    let estimate = || walk::Walk::new(checked, hints).cost(checked.ast.root());
    if !checked.ast.is_deep() {
        return estimate();
    }
    // Without a thread it cannot be estimated: it may cost anything.
    large_stack::run(estimate).unwrap_or(Range {
        min: 0,
        max: u64::MAX,
    })
}
