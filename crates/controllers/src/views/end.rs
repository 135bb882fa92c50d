//! The end of a pod: when and how it ended.

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};

use super::pod::{End, is_sidecar};

/// The end of a pod that has ended or is being deleted.
pub(super) fn of(pod: &Value) -> Option<End> {
    let none = Map::new();
    let status = pod
        .get("status")
        .and_then(Value::as_object)
        .unwrap_or(&none);

    let has_ended = matches!(status.text("phase"), "Succeeded" | "Failed");
    if !has_ended && !pod.meta().is_being_deleted() {
        return None;
    }

    let statuses = |name| status.items(name).iter().filter_map(Value::as_object);
    let ended = statuses("containerStatuses")
        .chain(statuses("initContainerStatuses"))
        .filter_map(|container| {
            let code = container
                .below("state")?
                .below("terminated")?
                .int("exitCode");
            Some((Text::new(container.text("name")), code))
        });

    let conditions = statuses("conditions").map(|condition| {
        (
            Text::new(condition.text("type")),
            Text::new(condition.text("status")),
        )
    });

    Some(End {
        at: at(pod, status),
        exit_codes: ended.collect(),
        conditions: conditions.collect(),
    })
}

/// When its last container ended; if unknown, when it became not ready, was deleted, or was
/// created.
fn at(pod: &Value, status: &Map) -> Timestamp {
    let meta = pod.meta();
    let told_to_go = || {
        let grace = meta.deletion_grace_period_seconds().unwrap_or_default();
        meta.deletion_timestamp().map(|at| at.plus_seconds(-grace))
    };
    last_container(pod, status)
        .or_else(|| not_ready_since(status))
        .or_else(told_to_go)
        .or_else(|| meta.creation_timestamp())
        .unwrap_or(Timestamp::ZERO)
}

/// When the last container or sidecar ended; `None` if some still run or the time is unknown.
fn last_container(pod: &Value, status: &Map) -> Option<Timestamp> {
    let spec = pod.get("spec").and_then(Value::as_object);
    let statuses = |name| status.items(name).iter().filter_map(Value::as_object);
    let sidecars = statuses("initContainerStatuses")
        .filter(|container| is_sidecar(spec, container.text("name")));
    let mut last = None;
    for container in statuses("containerStatuses").chain(sidecars) {
        let ended = container.below("state")?.below("terminated")?;
        last = last.max(Some(moment(ended.text("finishedAt"))?));
    }
    last
}

fn not_ready_since(status: &Map) -> Option<Timestamp> {
    let mut conditions = status
        .items("conditions")
        .iter()
        .filter_map(Value::as_object);
    let ready = conditions.find(|condition| condition.text("type") == "Ready")?;
    (ready.text("status") == "False")
        .then(|| moment(ready.text("lastTransitionTime")))
        .flatten()
}

fn moment(text: &str) -> Option<Timestamp> {
    Time::parse(text).ok().map(|time| time.0)
}
