//! How much the rules of a definition may cost, by estimate.

use coracle_api::Path;
use coracle_api::field_error::FieldError;

/// The most that one rule may cost, with all places where it applies.
pub const MOST_PER_RULE: u64 = 10_000_000;

/// The most that all rules of a version may cost together.
pub const MOST_PER_SCHEMA: u64 = 100_000_000;

/// How many rules are named where all together cost too much.
const NAMED: usize = 4;

const ADVICE: &str = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";

/// The text for something that costs more than `most`.
#[must_use]
pub fn exceeded(what: &str, cost: u64, most: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a factor for readers")]
    let factor = cost as f64 / most as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        // With one digit it would be a factor of 1.0.
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!("{what} exceeds budget by factor of {factor} {ADVICE}")
}

/// The estimated costs of one version's schema.
#[derive(Debug, Default)]
pub struct Total {
    sum: u64,
    /// The dearest, by cost, each with its error.
    dearest: Vec<(u64, FieldError)>,
}

impl Total {
    pub fn add(&mut self, at: &Path<'_>, cost: u64) {
        self.sum = self.sum.saturating_add(cost);
        if cost < MOST_PER_SCHEMA / 100 {
            return;
        }

        let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        self.dearest.push((cost, FieldError::forbidden(at, detail)));
        self.dearest
            .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.dearest.truncate(NAMED);
    }

    /// The errors of a schema at `at` whose rules cost too much together.
    #[must_use]
    pub fn errors(self, at: &Path<'_>) -> Vec<FieldError> {
        if self.sum <= MOST_PER_SCHEMA {
            return Vec::new();
        }

        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let sum = FieldError::forbidden(at, exceeded(what, self.sum, MOST_PER_SCHEMA));
        let mut errors: Vec<FieldError> =
            self.dearest.into_iter().map(|(_, error)| error).collect();
        errors.push(sum);
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::exceeded;

    #[test]
    fn the_factor_is_rounded_as_it_grows() {
        let check = |cost, factor: &str| {
            let text = exceeded("estimated rule cost", cost, 10_000_000);
            let start = format!("estimated rule cost exceeds budget by factor of {factor} (try ");
            assert!(text.starts_with(&start), "{text}");
        };

        check(10_485_760, "1.048576x");
        check(15_000_000, "1.5x");
        check(123_456_789, "12.3x");
        check(1_000_000_001, "more than 100x");
        check(u64::MAX, "more than 100x");
    }
}
