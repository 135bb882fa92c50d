//! The state of what controls pods.

use coracle_api::Value;

use super::{Verdict, condition, first_below, is, verdict_of};
use crate::why::Facts;
use crate::why::timeline::text;

pub(super) fn summarize_replicas(facts: &Facts) -> Verdict {
    let object = &facts.object;
    let wanted = object
        .at(&["spec", "replicas"])
        .and_then(Value::as_int)
        .unwrap_or(1);

    let available = number(object, &["status", "availableReplicas"]);
    let mut state = format!("has {available} of {wanted} pods available");
    let newest = number(object, &["status", "updatedReplicas"]);

    // Old pods keep running until new ones are ready: all may be available while the rollout is
    // stuck.
    let changes = matches!(text(object, &["kind"]), "Deployment" | "StatefulSet")
        && (newest < wanted || number(object, &["status", "replicas"]) > newest);
    if changes && available >= wanted {
        state += &format!(", {newest} of them updated");
    }

    let mut waits: Vec<String> = behind(object).into_iter().collect();
    if object.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true) {
        waits.push("it is paused; resume it with `kubectl rollout resume`".to_string());
    }

    waits.extend(complaints(object));

    if available < wanted || changes {
        waits.extend(first_below(facts));
    }

    verdict_of(state, waits)
}

pub(super) fn summarize_daemons(facts: &Facts) -> Verdict {
    let count = |name: &str| number(&facts.object, &["status", name]);
    let (wanted, available) = (count("desiredNumberScheduled"), count("numberAvailable"));
    let mut waits: Vec<String> = behind(&facts.object).into_iter().collect();
    if available < wanted {
        waits.extend(first_below(facts));
    }
    verdict_of(format!("runs on {available} of {wanted} nodes"), waits)
}

pub(super) fn summarize_job(facts: &Facts) -> Verdict {
    let object = &facts.object;
    for (kind, state) in [
        ("Complete", "is complete"),
        ("Failed", "has failed"),
        ("Suspended", "is suspended"),
    ] {
        if let Some(condition) =
            condition(object, kind).filter(|condition| is(Some(condition), "True"))
        {
            let message = text(condition, &["message"]);
            let why = if message.is_empty() {
                String::new()
            } else {
                format!(" ({message})")
            };
            return verdict_of(format!("{state}{why}"), Vec::new());
        }
    }

    let count = |name: &str| number(object, &["status", name]);
    let wanted = object
        .at(&["spec", "completions"])
        .and_then(Value::as_int)
        .unwrap_or(1);

    let (done, failed, active) = (count("succeeded"), count("failed"), count("active"));
    let state =
        format!("has {done} of {wanted} completions, {failed} failures, {active} active pods");

    verdict_of(state, first_below(facts).into_iter().collect())
}

/// Failure conditions that the controller has set.
fn complaints(object: &Value) -> Vec<String> {
    let mut messages = Vec::new();
    if let Some(failure) =
        condition(object, "ReplicaFailure").filter(|failure| is(Some(failure), "True"))
    {
        messages.push(format!(
            "pods cannot be created: {}",
            text(failure, &["message"])
        ));
    }

    if let Some(progress) =
        condition(object, "Progressing").filter(|progress| is(Some(progress), "False"))
    {
        messages.push(format!(
            "its rollout makes no progress: {}",
            text(progress, &["message"])
        ));
    }

    messages
}

fn behind(object: &Value) -> Option<String> {
    let (seen, is) = (
        number(object, &["status", "observedGeneration"]),
        object.meta().generation(),
    );
    (seen < is).then(|| {
        "its controller has not observed the last change yet; check that it is running".to_string()
    })
}

fn number(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or_default()
}
