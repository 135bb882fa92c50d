//! The upper bounds of a histogram's buckets.

use std::sync::Arc;

/// Nanoseconds.
const SECOND: f64 = 1e9;

/// Upper bounds, ascending, and the unit in which is counted: observations are whole numbers.
#[derive(Clone, Debug)]
pub struct Buckets {
    pub(crate) bounds: Arc<[f64]>,
    /// So many counted units make one of the exported.
    pub(crate) unit: f64,
}

impl Buckets {
    /// Durations in seconds, counted in nanoseconds.
    pub fn seconds(bounds: &[f64]) -> Buckets {
        Buckets::in_units(SECOND, bounds)
    }

    /// Numbers and sizes, counted as they are.
    pub fn whole(bounds: &[f64]) -> Buckets {
        Buckets::in_units(1.0, bounds)
    }

    /// Counted in units, `unit` of which make one of what is exported.
    pub fn in_units(unit: f64, bounds: &[f64]) -> Buckets {
        Buckets {
            bounds: bounds.into(),
            unit,
        }
    }

    /// Durations in seconds whose bounds grow by `factor`, computed as upstream computes them, so
    /// that the labels are the same to the last digit.
    pub fn exponential_seconds(start: f64, factor: f64, count: usize) -> Buckets {
        Buckets::seconds(&exponential(start, factor, count))
    }

    /// Numbers and sizes whose bounds grow by `factor`.
    pub fn exponential(start: f64, factor: f64, count: usize) -> Buckets {
        Buckets::whole(&exponential(start, factor, count))
    }

    /// Numbers and sizes whose bounds grow by `width`.
    pub fn linear(start: f64, width: f64, count: u32) -> Buckets {
        let bounds = (0..count).map(|step| start + width * f64::from(step));
        Buckets::whole(&bounds.collect::<Vec<_>>())
    }

    /// Prometheus' own default, for durations in seconds.
    pub fn default_seconds() -> Buckets {
        Buckets::seconds(&[
            0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
        ])
    }

    /// The bounds in counted units.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounds are positive and far below the limit; `as` saturates"
    )]
    pub(crate) fn counted(&self) -> Box<[u64]> {
        self.bounds
            .iter()
            .map(|bound| (bound * self.unit).round() as u64)
            .collect()
    }
}

fn exponential(start: f64, factor: f64, count: usize) -> Vec<f64> {
    std::iter::successors(Some(start), |bound| Some(bound * factor))
        .take(count)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_as_upstreams_do() {
        // With the rounding errors that upstream's work queues show.
        let bounds = exponential(1e-8, 10.0, 5);
        assert_eq!(
            bounds,
            [1e-8, 1e-7, 1e-6, 9.999999999999999e-6, 9.999999999999999e-5]
        );
        let counted = Buckets::exponential_seconds(1e-8, 10.0, 4).counted();
        assert_eq!(*counted, [10, 100, 1000, 10_000]);
        let linear = Buckets::linear(50_000.0, 100_000.0, 3).counted();
        assert_eq!(*linear, [50_000, 150_000, 250_000]);
    }
}
