//! What a call costs: one variant per rule, shared by the static estimate and the meter.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostClass {
    /// 1, whatever the arguments.
    One,
}
