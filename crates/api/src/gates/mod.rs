//! Fields that belong to features which are off.
//!
//! A field whose feature gate is off is taken away when an object is written, unless the object
//! that is there uses it already: what was accepted once is not lost by an unrelated write. Which
//! fields those are, the catalogue says (`gate=`); where upstream takes away more or less than the
//! field, `rules` says so. For each kind the places of such fields are worked out once (`plan`);
//! most kinds have none, and nothing is done for them.
//!
//! Works on the version that is kept, after defaulting and conversion. Gates have their default
//! state.

mod plan;
mod rules;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::Value;
use crate::catalog::{BUILTIN, Kind};
use plan::Plan;

/// Takes the fields of disabled features away from an object of a built-in kind, unless `old` uses
/// them.
pub fn drop_disabled(new: &mut Value, old: Option<&Value>, kind: &Kind) {
    if let Some(plan) = of_kind(kind) {
        plan.apply(new, old);
    }
}

/// The plan of a kind, worked out when it is first met. None: nothing of it is gated.
fn of_kind(kind: &Kind) -> Option<&'static Plan> {
    static PLANS: OnceLock<Vec<OnceLock<Option<Plan>>>> = OnceLock::new();
    let kinds = BUILTIN.kinds();
    let place = BUILTIN.place_of_kind(&kind.group, &kind.version, &kind.name)?;
    let plans = PLANS.get_or_init(|| kinds.iter().map(|_| OnceLock::new()).collect());
    plans[place]
        .get_or_init(|| Plan::of(&kinds[place]))
        .as_ref()
}
