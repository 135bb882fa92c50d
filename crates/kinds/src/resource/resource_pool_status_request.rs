//! ResourcePoolStatusRequest: a question about the pools of a driver, which is answered once.

use std::collections::BTreeSet;

use coracle_api::catalog::BUILTIN;
use coracle_api::codec::json;
use coracle_api::field_error::{FieldError, refuse, shown};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::names::dns1123_subdomain;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::resource::v1alpha3::{
    PoolStatus, ResourcePoolStatusRequest, ResourcePoolStatusRequestSpec,
    ResourcePoolStatusRequestStatus,
};

use super::validate_list;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::storage::validate_driver_name;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{conditions, internal, items, text, validate_not_negative};
use crate::{Part, keep_metadata};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

const HIGHEST_LIMIT: i32 = 1000;
const MOST_POOLS: usize = 1000;
const MOST_CONDITIONS: usize = 10;
const LONGEST_ERROR: usize = 256;
const LONGEST_POOL_NAME: usize = 253;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ResourcePoolStatusRequests,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct ResourcePoolStatusRequests;

impl Strategy for ResourcePoolStatusRequests {
    type Object = ResourcePoolStatusRequest;

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(
        &self,
        new: &View<'_, ResourcePoolStatusRequest>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_spec(&new.spec, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ResourcePoolStatusRequest>,
        old: &View<'_, ResourcePoolStatusRequest>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part != Part::Status {
            if new.spec != old.spec {
                errors.push(FieldError::invalid(&SPEC, "null".to_owned(), IMMUTABLE));
            }
            return;
        }

        if old.status.is_some() {
            if new.status != old.status {
                let shown = shown_status(new.tree);
                errors.push(FieldError::invalid(&STATUS, shown, IMMUTABLE));
            }
        } else if let Some(status) = &new.status {
            let found = new.tree.at(&["status", "conditions"]);
            let found = found.and_then(Value::as_array).unwrap_or_default();
            conditions::validate(found, &STATUS.field("conditions"), errors);
            validate_status(status, new.tree, errors);
        }
    }
}

/// The status as errors show it: as upstream's struct.
fn shown_status(request: &Value) -> String {
    const POOL: [(&str, &str, &str); 10] = [
        ("Driver", "driver", "\"\""),
        ("PoolName", "poolName", "\"\""),
        ("Generation", "generation", "0"),
        ("ResourceSliceCount", "resourceSliceCount", "null"),
        ("TotalDevices", "totalDevices", "null"),
        ("AllocatedDevices", "allocatedDevices", "null"),
        ("AvailableDevices", "availableDevices", "null"),
        ("UnavailableDevices", "unavailableDevices", "null"),
        ("NodeName", "nodeName", "null"),
        ("ValidationError", "validationError", "null"),
    ];
    let Some(status) = request.get("status").filter(|status| !status.is_null()) else {
        return "null".to_owned();
    };

    let member = |of: &Value, name: &str, absent: &str| {
        of.get(name).map_or_else(|| absent.to_owned(), shown)
    };
    let pool = |pool: &Value| {
        let fields = POOL.map(|(name, field, absent)| (name, member(pool, field, absent)));
        internal::object(&fields)
    };
    let all = |name: &str, show: &dyn Fn(&Value) -> String| match status.get(name) {
        Some(Value::Array(items)) => internal::list(items.iter().map(show)),
        _ => "null".to_owned(),
    };
    let condition = BUILTIN.type_named("meta.v1.Condition");
    internal::object(&[
        ("PoolCount", member(status, "poolCount", "null")),
        ("Pools", all("pools", &pool)),
        (
            "Conditions",
            all("conditions", &|value| {
                let mut out = Vec::new();
                match condition {
                    Some(of) => json::write_typed(value, of.node(), &mut out),
                    None => json::write(value, &mut out),
                }
                String::from_utf8_lossy(&out).into_owned()
            }),
        ),
    ])
}

fn validate_spec(spec: &ResourcePoolStatusRequestSpec, errors: &mut Errors) {
    validate_driver_name(&spec.driver, &SPEC.field("driver"), errors);
    if let Some(pool) = &spec.pool_name {
        validate_segments(pool, &SPEC.field("poolName"), errors);
    }

    let at = SPEC.field("limit");
    match spec.limit {
        None => errors.push(FieldError::required(&at, "")),
        Some(limit) if limit > HIGHEST_LIMIT => {
            let why = format!("must be less than or equal to {HIGHEST_LIMIT}");
            errors.push(FieldError::invalid(&at, limit.to_string(), why));
        }
        Some(limit) if limit < 1 => validate_at_least_one(limit, &at, errors),
        Some(_) => {}
    }
}

fn validate_at_least_one(found: i32, at: &Path<'_>, errors: &mut Errors) {
    if found < 1 {
        let why = "must be greater than or equal to 1";
        errors.push(FieldError::invalid(at, found.to_string(), why));
    }
}

fn validate_status(status: &ResourcePoolStatusRequestStatus, tree: &Value, errors: &mut Errors) {
    let at = STATUS.field("poolCount");
    match tree.at(&["status", "poolCount"]) {
        None | Some(Value::Null) => errors.push(FieldError::required(&at, "")),
        Some(_) => validate_not_negative(status.pool_count.into(), &at, errors),
    }

    let at = STATUS.field("pools");
    validate_list(items(&status.pools), MOST_POOLS, &at, errors, validate_pool);

    let (found, at) = (items(&status.conditions), STATUS.field("conditions"));
    if found.len() > MOST_CONDITIONS {
        return errors.push(FieldError::too_many(&at, found.len(), MOST_CONDITIONS));
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in found.iter().enumerate() {
        if !seen.insert(&condition.type_) {
            let shown = internal::text(&condition.type_);
            errors.push(FieldError::duplicate(&at.index(index), shown));
        }
    }
}

/// Validates the name of a pool in the words that upstream has for this kind.
fn validate_segments(name: &str, at: &Path<'_>, errors: &mut Errors) {
    if name.len() > LONGEST_POOL_NAME {
        errors.push(FieldError::too_long(at, LONGEST_POOL_NAME));
    }
    for (index, segment) in name.split('/').enumerate() {
        if segment.is_empty() {
            let why = format!("segment {index}: must not be empty");
            errors.push(FieldError::invalid_str(at, name, why));
            continue;
        }
        for why in dns1123_subdomain(segment) {
            let why = format!("segment {index}: {why}");
            errors.push(FieldError::invalid_str(at, segment, why));
        }
    }
}

fn validate_pool(pool: &PoolStatus, at: &Path<'_>, errors: &mut Errors) {
    validate_driver_name(&pool.driver, &at.field("driver"), errors);
    match pool.pool_name.as_str() {
        "" => errors.push(FieldError::required(&at.field("poolName"), "")),
        name => validate_segments(name, &at.field("poolName"), errors),
    }
    match pool.generation {
        0 => errors.push(FieldError::required(&at.field("generation"), "")),
        found => validate_not_negative(found, &at.field("generation"), errors),
    }
    if let Some(count) = pool.resource_slice_count {
        validate_at_least_one(count, &at.field("resourceSliceCount"), errors);
    }

    for (name, count) in [
        ("totalDevices", pool.total_devices),
        ("allocatedDevices", pool.allocated_devices),
        ("availableDevices", pool.available_devices),
        ("unavailableDevices", pool.unavailable_devices),
    ] {
        validate_not_negative(count.unwrap_or_default().into(), &at.field(name), errors);
    }

    if let Some(node) = &pool.node_name {
        refuse(&at.field("nodeName"), node, dns1123_subdomain(node), errors);
    }
    if text(&pool.validation_error).len() > LONGEST_ERROR {
        errors.push(FieldError::too_long(
            &at.field("validationError"),
            LONGEST_ERROR,
        ));
    }
}

/// The state of a request, and when it was completed.
fn state(status: &ResourcePoolStatusRequestStatus, now: Timestamp) -> (String, String, bool) {
    let conditions = items(&status.conditions).iter();
    let mut ended = conditions.filter(|condition| condition.status == "True");
    let ended = ended.find(|condition| matches!(condition.type_.as_str(), "Complete" | "Failed"));
    let none = cells::NONE.to_owned();

    match ended {
        None => ("Pending".to_owned(), none, false),
        Some(condition) if condition.type_ == "Failed" => ("Failed".to_owned(), none, true),
        Some(condition) => {
            let shown = items(&status.pools).len();
            let state = match usize::try_from(status.pool_count) {
                Ok(all) if all > shown => format!("Complete ({shown}/{all} pools)"),
                _ => "Complete".to_owned(),
            };
            let when = cells::since(Some(&condition.last_transition_time), now);
            (state, when, false)
        }
    }
}

fn print_row(request: &ResourcePoolStatusRequest, now: Timestamp) -> Row {
    let unknown = || ("Pending".to_owned(), cells::NONE.to_owned(), true);
    let status = request.status.as_ref();
    let (state, completed, is_failed) = status.map_or_else(unknown, |status| state(status, now));

    let pools = status.map_or(&[][..], |status| items(&status.pools));
    let sum = |count: fn(&PoolStatus) -> Option<i32>| match is_failed {
        true => "-".to_owned(),
        false => {
            let counts = pools.iter().filter_map(count).map(i64::from);
            counts.sum::<i64>().to_string()
        }
    };

    row![
        cells::name(&request.metadata),
        request.spec.driver.as_str(),
        sum(|pool| pool.total_devices),
        sum(|pool| pool.available_devices),
        sum(|pool| pool.allocated_devices),
        sum(|pool| pool.unavailable_devices),
        sum(|pool| pool.validation_error.as_ref().map(|_| 1)),
        status.map_or(0, |status| i64::from(status.pool_count)),
        state,
        completed
    ]
}
