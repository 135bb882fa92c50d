//! CEL rules of a schema: do they compile, what may they cost, may they refer to old values.
//!
//! Rules of a node are compiled only if nothing else is wrong with the schema at it or below it.
//! Children come before their parent, as in upstream: additional properties, properties, items.

use std::sync::Arc;

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::schema::check::Faults;
use coracle_api::schema::{Flags, NodeId, Props, Rule, Schema};
use coracle_api::{Path, Value};
use coracle_expressions::custom_resource::cost::{MOST_PER_RULE, Total, exceeded};
use coracle_expressions::custom_resource::{Compiled, Validator, compile};
use coracle_expressions::declared::Declared;

use crate::validate::internal;

/// What all rules of the defaults of a schema may cost when they are evaluated.
const BUDGET_OF_DEFAULTS: u64 = 10_000_000;

/// Validates the rules of a schema at `at`. `any_cost`: single rules may cost as much as they do.
pub(super) fn validate(props: Props<'_>, faults: &mut Faults, any_cost: bool, at: &Path<'_>) {
    if !faults.is_structural {
        return;
    }
    let Ok(schema) = Schema::new(props) else {
        return;
    };
    if !schema.root().flags.has(Flags::RULES) {
        return;
    }

    let openapi = faults.errors.len() - faults.openapi;
    let wrong_defaults = defaults(&schema, &faults.errors[..openapi], at);
    let is_sound = faults.has_valid_defaults && wrong_defaults.is_empty();

    let mut found = FieldErrors::default();
    let mut dearest = Vec::new();
    if is_sound {
        let mut rules = Rules {
            schema: &schema,
            faults: &faults.errors[openapi..],
            any_cost,
            total: Total::default(),
            errors: FieldErrors::default(),
        };
        rules.node(props, schema.root_id(), NodeContext::ROOT, at);
        found = rules.errors;
        dearest = rules.total.errors(at);
    }

    // Defaults come before the rest, rules and their sum after it.
    let mut others = std::mem::take(&mut faults.errors).into_iter();
    faults.errors.extend(others.by_ref().take(openapi));
    faults.errors.extend(wrong_defaults);
    faults.errors.extend(others);
    faults.errors.extend(found);
    faults.errors.extend(dearest);
}

/// Evaluates the rules of defaults that are valid otherwise.
fn defaults(schema: &Schema, faults: &[FieldError], at: &Path<'_>) -> FieldErrors {
    let mut defaults = Defaults {
        schema,
        faults,
        budget: BUDGET_OF_DEFAULTS,
        errors: FieldErrors::default(),
    };
    let _ended = defaults.node(schema.root_id(), true, at);
    defaults.errors
}

struct Defaults<'a> {
    schema: &'a Schema,
    faults: &'a [FieldError],
    budget: u64,
    errors: FieldErrors,
}

/// The budget of defaults is spent.
struct Spent;

impl Defaults<'_> {
    fn node(&mut self, id: NodeId, root: bool, at: &Path<'_>) -> Result<(), Spent> {
        let node = self.schema.node(id);
        if !node.flags.has(Flags::DEFAULTS) {
            return Ok(());
        }

        if let Some(default) = &node.default {
            self.default(id, default, root || node.embedded, &at.field("default"))?;
        }

        if let Some(items) = node.items {
            self.node(items, false, &at.field("items"))?;
        }
        let properties = at.field("properties");
        for property in node.properties.iter() {
            self.node(property.node, false, &properties.key(&property.name))?;
        }
        Ok(())
    }

    fn default(
        &mut self,
        id: NodeId,
        default: &Value,
        resource: bool,
        at: &Path<'_>,
    ) -> Result<(), Spent> {
        let declared = match resource {
            true if id == self.schema.root_id() => Declared::of_root(self.schema),
            _ => Declared::of_node(self.schema, id),
        };
        let rules = Validator::of_node(self.schema, id, declared, resource);
        let Some(rules) = rules.filter(|_| !is_faulty(self.faults, at)) else {
            return Ok(());
        };

        let (errors, left) = rules.validate_default(self.schema, default, at, self.budget);
        self.errors.extend(errors);
        self.budget = left.ok_or(Spent)?;
        Ok(())
    }
}

/// Whether something is wrong at a place or below it.
fn is_faulty(faults: &[FieldError], at: &Path<'_>) -> bool {
    let place = at.to_string();
    faults.iter().any(|fault| {
        fault
            .field
            .strip_prefix(&place)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// The rules of one version's schema.
struct Rules<'a> {
    schema: &'a Schema,
    /// What is wrong with the schema otherwise.
    faults: &'a [FieldError],
    any_cost: bool,
    total: Total,
    errors: FieldErrors,
}

/// What the place of a schema in the whole says about it.
#[derive(Clone)]
struct NodeContext<'p> {
    /// What the parent declares it to be, where the parent is known.
    declared: Option<Arc<Declared>>,
    /// There are rules at this node or above.
    below_rules: bool,
    /// How often a value of this schema can occur; `None`: as often as fits into a request.
    most: Option<u64>,
    /// The list above whose elements cannot be correlated with old ones.
    uncorrelated: Option<&'p str>,
    root: bool,
}

impl NodeContext<'_> {
    const ROOT: NodeContext<'static> = NodeContext {
        declared: None,
        below_rules: false,
        most: Some(1),
        uncorrelated: None,
        root: true,
    };
}

impl Rules<'_> {
    fn node(&mut self, props: Props<'_>, id: NodeId, mut place: NodeContext<'_>, at: &Path<'_>) {
        let node = self.schema.node(id);
        if !node.flags.has(Flags::RULES) || self.errors.is_full() {
            return;
        }

        place.below_rules |= !node.rules.is_empty();
        if place.below_rules && place.declared.is_none() {
            place.declared = match place.root {
                true => Declared::of_root(self.schema),
                false => Declared::of_node(self.schema, id),
            }
            .map(Arc::new);
        }

        self.children(props, id, &place, at);

        let rules = node.rules.clone();
        if !rules.is_empty() && !is_faulty(self.faults, at) {
            self.rules(id, &rules, &place, &at.field("x-kubernetes-validations"));
        }
    }

    fn children(&mut self, props: Props<'_>, id: NodeId, place: &NodeContext<'_>, at: &Path<'_>) {
        let node = self.schema.node(id);
        let below = |declared: Option<&Arc<Declared>>, most: Option<u64>| NodeContext {
            declared: declared.cloned(),
            below_rules: place.below_rules,
            most: place
                .most
                .zip(most)
                .map(|(above, most)| above.saturating_mul(most)),
            uncorrelated: place.uncorrelated,
            root: false,
        };
        let declared = place.declared.as_deref();

        if let (Some(child), Some(child_props)) =
            (node.additional.node(), props.additional_schema())
        {
            let place = below(
                declared.and_then(Declared::value),
                stated(props.max_properties()),
            );
            self.node(child_props, child, place, &at.field("additionalProperties"));
        }

        let properties = at.field("properties");
        let most = match props.additional_schema() {
            Some(_) => stated(props.max_properties()),
            None => Some(1),
        };
        for (name, child_props) in props.properties() {
            let Some(property) = node.property(name) else {
                continue;
            };
            let place = below(declared.and_then(|declared| declared.field(name)), most);
            self.node(child_props, property.node, place, &properties.key(name));
        }

        if let (Some(child), Some(child_props)) = (node.items, props.items_schema()) {
            let path = at.to_string();
            let mut place = below(declared.and_then(Declared::item), stated(props.max_items()));
            if node.list_keys().is_none() {
                place.uncorrelated = place.uncorrelated.or(Some(&path));
            }
            self.node(child_props, child, place, &at.field("items"));
        }
    }

    fn rules(&mut self, id: NodeId, rules: &[Rule], place: &NodeContext<'_>, at: &Path<'_>) {
        let Some(declared) = &place.declared else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            return self.errors.push(FieldError::internal(at, detail));
        };

        let most = place.most.unwrap_or_else(|| declared.most_in_request());
        for (index, compiled) in compile(self.schema, id, declared, rules).iter().enumerate() {
            let at = at.index(index);
            self.rule(&rules[index], compiled, most, &at);
            self.old_values(&rules[index], compiled, place.uncorrelated, &at);
        }
    }

    fn rule(&mut self, rule: &Rule, compiled: &Compiled, most: u64, at: &Path<'_>) {
        let (place, whole) = (at.field("rule"), || shown(rule));
        self.cost(
            "estimated rule cost",
            compiled.cost.saturating_mul(most),
            &place,
        );

        if let Err(error) = &compiled.program {
            self.errors
                .push(FieldError::invalid(&place, whole(), error.to_string()));
        }

        let place = at.field("messageExpression");
        match &compiled.message {
            None => {}
            Some(Err(error)) => {
                self.errors
                    .push(FieldError::invalid(&place, whole(), error.to_string()));
            }
            // A message is made once, however many values there are.
            Some(Ok(message)) => {
                self.cost("estimated messageExpression cost", message.cost, &place);
            }
        }
    }

    fn cost(&mut self, what: &str, cost: u64, at: &Path<'_>) {
        if cost > MOST_PER_RULE && !self.any_cost {
            let detail = exceeded(what, cost, MOST_PER_RULE);
            self.errors.push(FieldError::forbidden(at, detail));
        }
        self.total.add(at, cost);
    }

    fn old_values(
        &mut self,
        rule: &Rule,
        compiled: &Compiled,
        uncorrelated: Option<&str>,
        at: &Path<'_>,
    ) {
        if compiled.uses_old_self {
            if let Some(list) = uncorrelated {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.errors.push(FieldError::invalid_str(
                    &at.field("rule"),
                    &rule.rule,
                    detail,
                ));
            }
        } else if let Some(optional) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.push(FieldError::invalid(
                &at.field("optionalOldSelf"),
                optional.to_string(),
                detail,
            ));
        }
    }
}

/// A limit that the schema states; a negative one is none of anything.
fn stated(limit: Option<i64>) -> Option<u64> {
    limit.map(|limit| u64::try_from(limit).unwrap_or_default())
}

/// A rule as messages show it.
fn shown(rule: &Rule) -> String {
    let reason = rule.reason.as_ref();
    internal::object(&[
        ("Rule", internal::text(&rule.rule)),
        ("Message", internal::text(&rule.message)),
        (
            "MessageExpression",
            internal::text(&rule.message_expression),
        ),
        (
            "Reason",
            reason.map_or_else(|| "null".to_owned(), |reason| internal::text(reason)),
        ),
        ("FieldPath", internal::text(&rule.field_path)),
        (
            "OptionalOldSelf",
            rule.optional_old_self
                .map_or_else(|| "null".to_owned(), |optional| optional.to_string()),
        ),
    ])
}
