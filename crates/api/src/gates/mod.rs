//! Drops fields of disabled features.
//!
//! A field whose feature gate is off is removed when an object is written, unless the stored object
//! uses it already: what was accepted once is not lost by an unrelated write. The catalogue lists
//! these fields (`gate=`); `rules` has the exceptions where upstream drops more or less than the
//! field. For each kind the paths of such fields are computed once (`plan`); most kinds have none.
//!
//! Works on the storage version, after defaulting and conversion. [`states`] has which gates are on.

mod plan;
mod rules;
pub mod states;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::Value;
use crate::catalog::{BUILTIN, Kind};
use plan::Plan;
pub use states::{FeatureGates, is_on, set};

/// Removes the fields of disabled features from an object of a built-in kind, unless `old` uses
/// them.
pub fn drop_disabled(new: &mut Value, old: Option<&Value>, kind: &Kind) {
    if let Some(plan) = of_kind(kind) {
        plan.apply(new, old);
    }
}

/// The plan of a kind, computed on first use. `None`: the kind has no gated fields.
fn of_kind(kind: &Kind) -> Option<&'static Plan> {
    static PLANS: OnceLock<Vec<OnceLock<Option<Plan>>>> = OnceLock::new();
    let kinds = BUILTIN.kinds();
    let index = BUILTIN.kind_index(&kind.group, &kind.version, &kind.name)?;
    let plans = PLANS.get_or_init(|| kinds.iter().map(|_| OnceLock::new()).collect());
    plans[index]
        .get_or_init(|| Plan::of(&kinds[index]))
        .as_ref()
}
