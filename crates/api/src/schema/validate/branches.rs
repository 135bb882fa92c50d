//! `anyOf`, `oneOf`, `allOf`, `not`: other schemas for the same value. The value before an update
//! does not matter here.

use super::Walk;
use super::violation::Outcome;
use crate::Value;
use crate::go_text::Quoted;
use crate::schema::node::{Checks, NodeId};
use crate::value::Path;

impl Walk<'_> {
    pub(super) fn branches(
        &self,
        checks: &Checks,
        value: &Value,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        if !checks.any_of.is_empty() {
            self.any_of(&checks.any_of, value, at, out);
        }
        if !checks.one_of.is_empty() {
            self.one_of(&checks.one_of, value, at, out);
        }
        if !checks.all_of.is_empty() {
            self.all_of(&checks.all_of, value, at, out);
        }

        if let Some(branch) = checks.not
            && self.without_messages(branch, value, at, out).is_valid()
        {
            out.fail(|| {
                self.invalid_somewhere(format!("{} must not validate the schema (not)", quoted(at)))
            });
        }
    }

    fn any_of(&self, several: &[NodeId], value: &Value, at: &Path<'_>, out: &mut Outcome) {
        for branch in several {
            let outcome = self.without_messages(*branch, value, at, out);
            if outcome.is_valid() {
                return out.merge(outcome);
            }
        }

        out.fail(|| {
            self.invalid_somewhere(format!(
                "{} must validate at least one schema (anyOf)",
                quoted(at)
            ))
        });

        self.closest_alternative(several, value, at, out);
    }

    fn one_of(&self, several: &[NodeId], value: &Value, at: &Path<'_>, out: &mut Outcome) {
        let mut valid = 0;
        let mut first = None;
        for branch in several {
            let outcome = self.without_messages(*branch, value, at, out);
            if outcome.is_valid() {
                valid += 1;
                first.get_or_insert(outcome);
            }
        }

        match (valid, first) {
            (1, Some(first)) => out.merge(first),
            (0, _) => {
                out.fail(|| self.not_exactly_one("Found none valid", at));
                self.closest_alternative(several, value, at, out);
            }
            _ => {
                out.fail(|| self.not_exactly_one(&format!("Found {valid} valid alternatives"), at))
            }
        }
    }

    fn not_exactly_one(&self, found: &str, at: &Path<'_>) -> super::Violation {
        self.invalid_somewhere(format!(
            "{} must validate one and only one schema (oneOf). {found}",
            quoted(at)
        ))
    }

    fn all_of(&self, several: &[NodeId], value: &Value, at: &Path<'_>, out: &mut Outcome) {
        let mut valid = 0;
        for branch in several {
            let before = out.mark();
            self.schema_of(self.schema.node(*branch), value, None, at, out);
            valid += usize::from(!out.failed_since(&before));
        }

        if valid < several.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            out.fail(|| {
                self.invalid_somewhere(format!(
                    "{} must validate all the schemas (allOf){none}",
                    quoted(at)
                ))
            });
        }
    }

    /// The errors of the alternative that matched most.
    fn closest_alternative(
        &self,
        several: &[NodeId],
        value: &Value,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        if !out.has_messages() {
            return;
        }

        let mut nearest: Option<Outcome> = None;
        for branch in several {
            let mut outcome = Outcome::alternative();
            self.schema_of(self.schema.node(*branch), value, None, at, &mut outcome);
            if nearest
                .as_ref()
                .is_none_or(|nearest| outcome.matches() > nearest.matches())
            {
                nearest = Some(outcome);
            }
        }

        if let Some(nearest) = nearest {
            out.merge(nearest);
        }
    }

    fn without_messages(
        &self,
        branch: NodeId,
        value: &Value,
        at: &Path<'_>,
        out: &Outcome,
    ) -> Outcome {
        let mut outcome = out.without_messages();
        self.schema_of(self.schema.node(branch), value, None, at, &mut outcome);
        outcome
    }
}

fn quoted(at: &Path<'_>) -> String {
    Quoted(&at.with_dots().to_string()).to_string()
}
