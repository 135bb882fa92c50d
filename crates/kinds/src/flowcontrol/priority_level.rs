//! PriorityLevelConfiguration: how many requests run at once, and whether the others wait.

use coracle_api::field_error::{FieldError, as_json};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names, typed};
use k8s_openapi::api::flowcontrol::v1::{
    ExemptPriorityLevelConfiguration, LimitResponse, LimitedPriorityLevelConfiguration,
    PriorityLevelConfiguration, PriorityLevelConfigurationSpec, QueuingConfiguration,
};

use super::defaults::{MANDATORY, priority_levels};
use super::validate_conditions;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::{OwnMetadata, Part, keep_metadata};

const EXEMPT: &str = "exempt";
const MOST_QUEUES: i32 = 10_000_000;

/// The most bits of entropy for shuffle sharding.
const MOST_BITS: f64 = 60.0;

/// The annotation in which another version stores a zero; no object of this version has it.
const ZERO_SHARES: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &PriorityLevels,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct PriorityLevels;

impl Strategy for PriorityLevels {
    type Object = PriorityLevelConfiguration;

    /// A change of metadata is validated for every kind.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(
        &self,
        new: &View<'_, PriorityLevelConfiguration>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        if new.tree.meta().annotation(ZERO_SHARES).is_some() {
            let at = Path::Root.field("metadata.annotations");
            errors.push(FieldError::forbidden(
                &at,
                format!("annotation '{ZERO_SHARES}' is forbidden"),
            ));
        }

        let nothing = PriorityLevelConfigurationSpec::default();
        let spec = new.spec.as_ref().unwrap_or(&nothing);
        let name = new.tree.meta().name();
        validate_spec(spec, name, errors);

        if MANDATORY.contains(&name) && !is_fixed(name, spec) {
            let but = if name == EXEMPT {
                " except the 'spec.exempt' field"
            } else {
                ""
            };
            let shown = new.tree.get("spec").map(as_json).unwrap_or_default();
            let detail = format!("spec of '{name}'{but} must equal the fixed value");
            errors.push(FieldError::invalid(&SPEC, shown, detail));
        }

        validate_conditions(new.tree, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, PriorityLevelConfiguration>,
        _: &View<'_, PriorityLevelConfiguration>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        match cx.part {
            Part::Status => validate_conditions(new.tree, errors),
            _ => self.validate_anew(new, cx, errors),
        }
    }
}

/// Whether a mandatory level has its mandatory spec.
fn is_fixed(name: &str, spec: &PriorityLevelConfigurationSpec) -> bool {
    let fixed = priority_levels()
        .into_iter()
        .find(|level| level.metadata.name.as_deref() == Some(name));
    let Some(fixed) = fixed.and_then(|level| level.spec) else {
        return true;
    };
    let mut spec = spec.clone();
    if name == EXEMPT {
        spec.exempt.clone_from(&fixed.exempt);
    }
    typed::to_tree(&fixed).ok() == typed::to_tree(&spec).ok()
}

fn validate_spec(spec: &PriorityLevelConfigurationSpec, name: &str, errors: &mut Errors) {
    let place = SPEC.field("type");
    if (name == EXEMPT) != (spec.type_ == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid_str(&place, &spec.type_, detail));
    }

    match spec.type_.as_str() {
        "Exempt" => {
            if spec.limited.is_some() {
                let detail = "must be nil if the type is not Limited";
                errors.push(FieldError::forbidden(&SPEC.field("limited"), detail));
            }
            if let Some(exempt) = &spec.exempt {
                validate_exempt(exempt, &SPEC.field("exempt"), errors);
            }
        }
        "Limited" => {
            if spec.exempt.is_some() {
                let detail = "must be nil if the type is Limited";
                errors.push(FieldError::forbidden(&SPEC.field("exempt"), detail));
            }

            match &spec.limited {
                None => {
                    let detail = "must not be empty when type is Limited";
                    errors.push(FieldError::required(&SPEC.field("limited"), detail));
                }
                Some(limited) => validate_limited(limited, &SPEC.field("limited"), errors),
            }
        }
        "" => errors.push(FieldError::required(&place, "")),
        other => errors.push(FieldError::not_supported(
            &place,
            other,
            &["Exempt", "Limited"],
        )),
    }
}

fn validate_number(
    found: Option<i32>,
    fits: impl Fn(i32) -> bool,
    detail: &str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if let Some(found) = found.filter(|found| !fits(*found)) {
        errors.push(FieldError::invalid(at, found.to_string(), detail));
    }
}

fn validate_exempt(exempt: &ExemptPriorityLevelConfiguration, at: &Path<'_>, errors: &mut Errors) {
    let shares = exempt.nominal_concurrency_shares;
    let place = at.field("nominalConcurrencyShares");
    validate_number(
        shares,
        |found| found >= 0,
        "must be a non-negative integer",
        &place,
        errors,
    );
    validate_lendable(exempt.lendable_percent, at, errors);
}

fn validate_lendable(percent: Option<i32>, at: &Path<'_>, errors: &mut Errors) {
    let detail = "must be between 0 and 100, inclusive";
    let place = at.field("lendablePercent");
    validate_number(
        percent,
        |found| (0..=100).contains(&found),
        detail,
        &place,
        errors,
    );
}

fn validate_limited(
    limited: &LimitedPriorityLevelConfiguration,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let shares = limited.nominal_concurrency_shares;
    let place = at.field("nominalConcurrencyShares");
    validate_number(
        shares,
        |found| found >= 0,
        "must be a non-negative integer",
        &place,
        errors,
    );

    let nothing = LimitResponse::default();
    let response = limited.limit_response.as_ref().unwrap_or(&nothing);
    validate_response(response, &at.field("limitResponse"), errors);
    validate_lendable(limited.lendable_percent, at, errors);
    let detail = "if specified, must be a non-negative integer";

    let place = at.field("borrowingLimitPercent");
    validate_number(
        limited.borrowing_limit_percent,
        |found| found >= 0,
        detail,
        &place,
        errors,
    );
}

fn validate_response(response: &LimitResponse, at: &Path<'_>, errors: &mut Errors) {
    let place = at.field("queuing");
    match (response.type_.as_str(), &response.queuing) {
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.push(FieldError::forbidden(&place, detail));
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(&place, detail));
        }
        ("Queue", Some(queuing)) => validate_queuing(queuing, &place, errors),
        ("", _) => errors.push(FieldError::required(&at.field("type"), "")),
        (other, _) => {
            errors.push(FieldError::not_supported(
                &at.field("type"),
                other,
                &["Queue", "Reject"],
            ));
        }
    }
}

fn validate_queuing(queuing: &QueuingConfiguration, at: &Path<'_>, errors: &mut Errors) {
    let queues = queuing.queues.unwrap_or_default();
    let hand = queuing.hand_size.unwrap_or_default();

    let length = queuing.queue_length_limit.unwrap_or_default();
    let mut refuse = |name: &str, found: i32, detail: String| {
        errors.push(FieldError::invalid(
            &at.field(name),
            found.to_string(),
            detail,
        ));
    };

    if length <= 0 {
        refuse("queueLengthLimit", length, "must be positive".to_owned());
    }

    if queues <= 0 {
        refuse("queues", queues, "must be positive".to_owned());
    } else if queues > MOST_QUEUES {
        refuse(
            "queues",
            queues,
            format!("must not be greater than {MOST_QUEUES}"),
        );
    }

    if hand <= 0 {
        refuse("handSize", hand, "must be positive".to_owned());
    } else if hand > queues {
        refuse(
            "handSize",
            hand,
            format!("should not be greater than queues ({queues})"),
        );
    } else if (f64::from(queues).log2() * f64::from(hand)).ceil() > MOST_BITS {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {MOST_BITS}"
        );
        refuse("handSize", hand, detail);
    }
}

fn print_row(level: &PriorityLevelConfiguration, now: Timestamp) -> Row {
    let spec = level.spec.as_ref();
    let limited = spec.and_then(|spec| spec.limited.as_ref());
    let shares = limited.map(|limited| limited.nominal_concurrency_shares.unwrap_or_default());
    let response = limited.and_then(|limited| limited.limit_response.as_ref());
    let queuing = response.and_then(|response| response.queuing.as_ref());
    let number = |number: Option<i32>| number.map_or_else(|| Value::from(cells::NONE), Value::from);

    row![
        cells::name(&level.metadata),
        spec.map_or("", |spec| &spec.type_),
        number(shares),
        number(queuing.map(|queuing| queuing.queues.unwrap_or_default())),
        number(queuing.map(|queuing| queuing.hand_size.unwrap_or_default())),
        number(queuing.map(|queuing| queuing.queue_length_limit.unwrap_or_default())),
        cells::age(&level.metadata, now)
    ]
}
