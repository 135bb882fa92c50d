//! Evaluates the rules of a schema on an object.
//!
//! A walk over the object, along the nodes that have rules: the rules of a node, those of its
//! `allOf`, then its elements or members. It ends when the budget for the object is spent.

use coracle_api::Value;
use coracle_api::field_error::{FieldError, FieldErrorKind, FieldErrors, shown};
use coracle_api::schema::{Rule, Schema, Types, correlate};
use coracle_api::value::Path;

use super::compile::{Compiled, MessageFailure, RuleFailure, Selves};
use super::ratchet::Ratchet;
use super::validator::{Rules, Validator};

/// What all rules of one object may cost.
const BUDGET: u64 = 10_000_000;

/// What rules have found.
#[derive(Debug, Default)]
pub struct Findings {
    pub errors: FieldErrors,
    /// Failed rules of values that were the same before.
    pub warnings: Vec<String>,
    /// What evaluating them cost; `None`: it ended before all were evaluated.
    pub cost: Option<u64>,
}

/// The walk ended early; the last error says why.
struct Ended;

impl Validator {
    /// Evaluates the rules on an object at `at`, `old` being what it replaces.
    #[must_use]
    pub fn validate(
        &self,
        schema: &Schema,
        new: &Value,
        old: Option<&Value>,
        at: &Path<'_>,
    ) -> Findings {
        let mut walk = Walk {
            schema,
            budget: BUDGET,
            found: Findings::default(),
        };

        let ratchet = match old {
            Some(old) => Ratchet::of_update(schema, new, old),
            None => Ratchet::none(schema),
        };
        let ended = walk.value(&self.root, new, old, ratchet, at);
        Findings {
            cost: ended.is_ok().then_some(BUDGET - walk.budget),
            ..walk.found
        }
    }

    /// Evaluates the rules on a default: as what replaces itself, and as what is new. Returns what
    /// is left of the budget; `None`: no more rules can be evaluated.
    #[must_use]
    pub fn validate_default(
        &self,
        schema: &Schema,
        default: &Value,
        at: &Path<'_>,
        budget: u64,
    ) -> (FieldErrors, Option<u64>) {
        let mut left = Some(budget);
        for old in [Some(default), None] {
            let mut walk = Walk {
                schema,
                budget,
                found: Findings::default(),
            };

            let ended = walk.value(&self.root, default, old, Ratchet::none(schema), at);
            left = match ended {
                Ok(()) => left.map(|left| left.min(walk.budget)),
                Err(Ended) => None,
            };
            if !walk.found.errors.is_empty() {
                return (walk.found.errors, left);
            }
        }
        (FieldErrors::default(), left)
    }
}

struct Walk<'s> {
    schema: &'s Schema,
    budget: u64,
    found: Findings,
}

impl<'s> Walk<'s> {
    fn value(
        &mut self,
        rules: &Rules,
        new: &'s Value,
        old: Option<&'s Value>,
        ratchet: Ratchet<'s>,
        at: &Path<'_>,
    ) -> Result<(), Ended> {
        if new.is_null() {
            return Ok(());
        }

        let old = old.filter(|old| !old.is_null());
        self.rules(rules, new, old, ratchet, at)?;
        for branch in &rules.all_of {
            self.value(branch, new, old, ratchet.in_all_of(), at)?;
        }

        match new {
            Value::Array(elements) => self.elements(rules, elements, old, ratchet, at),
            Value::Object(_) => self.members(rules, new, old, ratchet, at),
            _ => Ok(()),
        }
    }

    fn elements(
        &mut self,
        rules: &Rules,
        elements: &'s [Value],
        old: Option<&'s Value>,
        ratchet: Ratchet<'s>,
        at: &Path<'_>,
    ) -> Result<(), Ended> {
        let (Some(items), Some(node)) = (&rules.items, rules.node) else {
            return Ok(());
        };

        let node = self.schema.node(node);
        let old = old.and_then(|old| correlate::Elements::of(node, old));
        for (index, element) in elements.iter().enumerate() {
            let before = old.as_ref().and_then(|old| old.of_element(element));
            let ratchet = ratchet.element(element, before);
            self.value(items, element, before, ratchet, &at.index(index))?;
        }
        Ok(())
    }

    fn members(
        &mut self,
        rules: &Rules,
        new: &'s Value,
        old: Option<&'s Value>,
        ratchet: Ratchet<'s>,
        at: &Path<'_>,
    ) -> Result<(), Ended> {
        let members = || new.as_object().into_iter().flat_map(|map| map.iter());
        let before = |name: &str| old.and_then(|old| old.get(name));

        if let Some(additional) = &rules.additional {
            for (name, value) in members() {
                let ratchet = ratchet.member(name);
                self.value(additional, value, before(name), ratchet, &at.key(name))?;
            }
        }

        for (name, value) in members() {
            if let Some(property) = rules.properties.get(name) {
                let ratchet = ratchet.member(name);
                self.value(property, value, before(name), ratchet, &at.field(name))?;
            }
        }
        Ok(())
    }

    fn rules(
        &mut self,
        rules: &Rules,
        new: &'s Value,
        old: Option<&'s Value>,
        ratchet: Ratchet<'s>,
        at: &Path<'_>,
    ) -> Result<(), Ended> {
        let Some(node) = rules.node else {
            return Ok(());
        };

        let of = match &self.schema.node(node).types {
            Types::IntOrString => "",
            types => types.name(),
        };
        if rules.is_invisible {
            let detail = "rule compiler initialization error: failed to convert to declType for CEL validation rules";
            self.found
                .errors
                .push(FieldError::invalid_str(at, of, detail));
            return Ok(());
        }

        if rules.rules.is_empty() {
            return Ok(());
        }
        if self.budget == 0 {
            return self.end(at, of, OUT_OF_BUDGET);
        }

        // Messages see an old value only where some rule does.
        let is_used = rules
            .rules
            .iter()
            .any(|(_, compiled)| compiled.uses_old_self);
        let selves = Selves {
            schema: self.schema,
            node,
            resource: rules.resource,
            new,
            old: old.filter(|_| is_used),
        };
        for (rule, compiled) in &rules.rules {
            self.rule(rule, compiled, &selves, of, ratchet, at)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        selves: &Selves<'s>,
        of: &str,
        ratchet: Ratchet<'s>,
        at: &Path<'_>,
    ) -> Result<(), Ended> {
        // A transition rule needs the old value, unless it says that it may be absent.
        let optional = rule.optional_old_self == Some(true);
        if compiled.uses_old_self && selves.old.is_none() && !optional {
            return Ok(());
        }

        let program = match &compiled.program {
            Ok(program) => program,
            Err(error) => {
                let detail = format!("rule compile error: {error}");
                self.found
                    .errors
                    .push(FieldError::invalid_str(at, of, detail));
                return Ok(());
            }
        };

        let (cost, outcome) = program.holds(selves, optional);
        match self.budget.checked_sub(cost) {
            Some(left) => self.budget = left,
            None => return self.end(at, of, OUT_OF_BUDGET),
        }

        let named = described(rule);
        let detail = match outcome {
            Ok(true) => return Ok(()),
            Ok(false) => return self.failed(rule, compiled, selves, of, ratchet, at),
            Err(RuleFailure::NoOverload(error)) => format!(
                "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {named}"
            ),
            Err(RuleFailure::CostLimit(error)) => {
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {named}"
                );
                return self.end(at, of, &detail);
            }
            Err(RuleFailure::Other(error)) => format!("{error} evaluating rule: {named}"),
        };
        self.found
            .errors
            .push(FieldError::invalid_str(at, of, detail));
        Ok(())
    }

    /// A rule does not hold.
    fn failed(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        selves: &Selves<'s>,
        of: &str,
        ratchet: Ratchet<'s>,
        at: &Path<'_>,
    ) -> Result<(), Ended> {
        let below;
        let at = match compiled.field_path.as_str() {
            "" => at,
            path => {
                below = at.field(path);
                &below
            }
        };
        let unchanged = !compiled.uses_old_self && ratchet.is_unchanged();

        let detail = match self.message(compiled, selves) {
            Ok(message) => message.unwrap_or_else(|| default_message(rule)),
            Err(detail) => {
                self.add(FieldError::invalid_str(at, of, detail), unchanged);
                return Err(Ended);
            }
        };

        let found = match of {
            "object" | "array" => None,
            _ => Some(shown(selves.new)),
        };
        let error = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(at, detail),
            Some("FieldValueRequired") => FieldError::required(at, detail),
            Some("FieldValueDuplicate") => FieldError {
                kind: FieldErrorKind::Duplicate,
                bad_value: found,
                ..FieldError::forbidden(at, "")
            },
            _ => FieldError {
                kind: FieldErrorKind::Invalid,
                bad_value: found,
                ..FieldError::forbidden(at, detail)
            },
        };
        self.add(error, unchanged);
        Ok(())
    }

    /// What the message expression says; none, where it fails. An error ends the walk.
    fn message(
        &mut self,
        compiled: &Compiled,
        selves: &Selves<'s>,
    ) -> Result<Option<String>, String> {
        let Some(Ok(message)) = &compiled.message else {
            return Ok(None);
        };

        let (cost, text) = message.text(selves);
        let Some(left) = self.budget.checked_sub(cost) else {
            return Err("messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run".to_owned());
        };

        match text {
            Ok(text) => {
                self.budget = left;
                Ok(Some(text))
            }
            Err(MessageFailure::CostLimit) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                coracle_api::go_text::Quoted(&message.source)
            )),
            Err(MessageFailure::Unusable) => {
                self.budget = left;
                Ok(None)
            }
        }
    }

    fn add(&mut self, error: FieldError, unchanged: bool) {
        if unchanged {
            self.found.warnings.push(error.to_string());
        } else {
            self.found.errors.push(error);
        }
    }

    fn end(&mut self, at: &Path<'_>, of: &str, detail: &str) -> Result<(), Ended> {
        self.found
            .errors
            .push(FieldError::invalid_str(at, of, detail));
        Err(Ended)
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A rule in errors: by its message, or else by its text.
fn described(rule: &Rule) -> &str {
    if rule.message.is_empty() {
        rule.rule.trim()
    } else {
        rule.message.trim()
    }
}

fn default_message(rule: &Rule) -> String {
    if rule.message.is_empty() {
        format!("failed rule: {}", rule.rule.trim())
    } else {
        rule.message.trim().to_owned()
    }
}
