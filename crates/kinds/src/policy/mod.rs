//! Kinds of `policy`.

pub mod disruptions;
pub(crate) mod pod_disruption_budget;
#[cfg(test)]
mod print_tests;
