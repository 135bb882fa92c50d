//! The status of a Job, and the removal of tracking finalizers. Pure.
//!
//! Every pod is counted exactly once, whatever fails in between. Its UID is first written into the
//! status (`uncountedTerminatedPods`), then its tracking finalizer is removed, then the UID moves
//! from the list into the count. A pod in the list without finalizer is counted; one with finalizer
//! is not yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};
use coracle_client::Cached;

use super::ending::Ending;
use super::failure::{apply_policy, has_failed};
use super::plan::{Observed, Work, index_of, is_tracked, uncounted};
use crate::views::{Job, Phase, Pod};
use crate::write_status::{number, put_count};

/// The most UIDs in `uncountedTerminatedPods`.
const MOST_UNCOUNTED: usize = 500;

/// The result of creating and deleting pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How many are active.
    pub active: usize,
    /// How many of those are ready.
    pub ready: usize,
    /// How many are terminating.
    pub terminating: usize,
    /// Whether the Job may end: no active pods are left.
    pub may_end: bool,
}

/// What to write, and which finalizers to remove then.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracked {
    /// The status to write first.
    pub status: Map,
    /// The pods whose finalizers are removed then.
    pub untrack: Vec<Arc<Cached<Pod>>>,
    /// UIDs of all pods with finalizer, including those.
    pub held: BTreeSet<Text>,
    /// How the Job ends when all pods are counted and terminated.
    pub ending: Option<Ending>,
    /// `Suspended` or `Resumed` with its message, if that changed.
    pub news: Option<(&'static str, &'static str)>,
}

/// Computes what to write.
pub fn track(observed: &Observed, work: &Work, outcome: Outcome, now: Timestamp) -> Tracked {
    let job: &Job = &observed.job;
    let mut status = job.status().cloned().unwrap_or_default();
    if job.start_time().is_none() && !job.is_suspended() {
        status.insert("startTime", Time(now).text());
    }

    let ending = match &work.ending {
        Some(ending) => Some(ending.clone()).filter(|_| outcome.may_end),
        None => is_complete(job, work, outcome).then(Ending::complete),
    };

    let mut news = None;
    if work.managed && ending.is_none() {
        news = note_suspension(job, &mut status, now);
    }

    put_count(&mut status, "active", outcome.active);
    status.insert("ready", number(outcome.ready));
    status.insert("terminating", number(outcome.terminating));

    let pods = &work.claims.claimed;
    let held: BTreeSet<Text> = pods
        .iter()
        .filter(|pod| is_tracked(observed, pod))
        .map(|pod| pod.uid.clone())
        .collect();

    status.object_mut("uncountedTerminatedPods");
    count(&mut status, &held);
    let (untrack, all) = note_ended(observed, work, ending.as_ref(), &mut status);
    if job.is_indexed() {
        note_indexes(job, work, &untrack, &mut status);
    }

    if let Some(ending) = &ending {
        let (first, _) = ending.conditions();
        if job.condition(first).is_none() {
            push_condition(&mut status, first, ending, now);
        }
    }

    Tracked {
        status,
        untrack,
        held,
        ending: ending.filter(|_| all),
        news,
    }
}

/// Whether enough pods have succeeded, and none is running.
fn is_complete(job: &Job, work: &Work, outcome: Outcome) -> bool {
    let enough = job
        .completions()
        .map_or(work.succeeded > 0, |wanted| work.succeeded >= wanted);
    enough && outcome.active == 0
}

/// Moves the UIDs of pods without finalizer into the counts; `true` if there were any.
pub fn count(status: &mut Map, held: &BTreeSet<Text>) -> bool {
    let mut changed = false;
    for name in ["succeeded", "failed"] {
        let list = status.object_mut("uncountedTerminatedPods");
        let before = list.items(name).to_vec();
        let is_held = |uid: &Value| uid.as_str().is_some_and(|uid| held.contains(uid));
        let after: Vec<Value> = before.iter().filter(|uid| is_held(uid)).cloned().collect();

        let counted = before.len() - after.len();
        if counted == 0 {
            continue;
        }

        changed = true;

        match after.is_empty() {
            true => drop(list.remove(name)),
            false => drop(list.insert(name, after)),
        }

        let total = status.int(name) + number(counted);
        status.insert(name, total);
    }

    changed
}

/// Adds the UIDs of ended pods, and returns which finalizers to remove, and whether those are all.
fn note_ended(
    observed: &Observed,
    work: &Work,
    ending: Option<&Ending>,
    status: &mut Map,
) -> (Vec<Arc<Cached<Pod>>>, bool) {
    let job: &Job = &observed.job;
    let (known_succeeded, known_failed) = (uncounted(job, "succeeded"), uncounted(job, "failed"));
    let mut untrack = Vec::new();
    let mut new_indexes = 0;

    let mut pods: Vec<_> = work
        .claims
        .claimed
        .iter()
        .filter(|pod| is_tracked(observed, pod))
        .collect();
    pods.sort_by_key(|pod| pod.index.map(|index| index.index));

    for pod in pods {
        let failed = has_failed(job, pod);
        if !is_done_with(job, work, ending, pod, failed) {
            continue;
        }

        untrack.push(pod.clone());
        let place = index_of(job, pod);
        if pod.phase == Phase::Succeeded && !known_failed.contains(&pod.uid) {
            match place {
                _ if !job.is_indexed() && !known_succeeded.contains(&pod.uid) => {
                    note_uid(status, "succeeded", pod);
                }
                Some(index) if job.is_indexed() && !work.known_indexes.has(index) => {
                    new_indexes += 1
                }
                _ => {}
            }
        } else if failed || ending.is_some_and(|ending| !ending.well) {
            let has_place = !job.is_indexed() || place.is_some();
            if has_place && !known_failed.contains(&pod.uid) && apply_policy(job, pod).counts() {
                note_uid(status, "failed", pod);
            }
        }

        let list = status.object_mut("uncountedTerminatedPods");
        if new_indexes + list.items("succeeded").len() + list.items("failed").len()
            >= MOST_UNCOUNTED
        {
            return (untrack, false);
        }
    }

    (untrack, true)
}

/// Whether a pod will not change any more.
fn is_done_with(
    job: &Job,
    work: &Work,
    ending: Option<&Ending>,
    pod: &Cached<Pod>,
    failed: bool,
) -> bool {
    if job.is_being_deleted() || ending.is_some() || pod.phase == Phase::Succeeded {
        return true;
    }
    let is_kept = || work.kept.values().any(|kept| kept.uid == pod.uid);
    failed && !is_kept()
}

fn note_uid(status: &mut Map, how: &'static str, pod: &Cached<Pod>) {
    let list = status.object_mut("uncountedTerminatedPods");
    let mut uids = list.items(how).to_vec();
    uids.push(Value::string(&pod.uid));
    list.insert(how, uids);
}

/// Indexes of pods are counted by the text itself, which cannot contain one twice.
fn note_indexes(job: &Job, work: &Work, untrack: &[Arc<Cached<Pod>>], status: &mut Map) {
    let done = untrack.iter().filter(|pod| pod.phase == Phase::Succeeded);
    let succeeded = work
        .known_indexes
        .with(done.filter_map(|pod| index_of(job, pod)));
    put_count(status, "succeeded", succeeded.len());

    match succeeded.is_empty() {
        true => drop(status.remove("completedIndexes")),
        false => drop(status.insert("completedIndexes", succeeded.to_string())),
    }

    if let Some(failed) = &work.failed_indexes {
        status.insert("failedIndexes", failed.to_string());
    }
}

/// The status of a finished Job, if all pods are counted and terminated; `None`: not yet.
pub fn finished(status: &Map, ending: &Ending, now: Timestamp) -> Option<Map> {
    let left = status.below("uncountedTerminatedPods");
    let uncounted = left.map_or(0, |left| {
        left.items("succeeded").len() + left.items("failed").len()
    });
    if uncounted > 0 || status.int("terminating") > 0 {
        return None;
    }

    let mut status = status.clone();
    let (_, last) = ending.conditions();
    push_condition(&mut status, last, ending, now);

    if ending.well {
        status.insert("completionTime", Time(now).text());
    }

    Some(status)
}

fn push_condition(status: &mut Map, kind: &'static str, ending: &Ending, now: Timestamp) {
    let mut conditions = status.items("conditions").to_vec();
    conditions.push(condition(
        kind,
        "True",
        &ending.reason,
        &ending.message,
        now,
    ));
    status.insert("conditions", conditions);
}

fn condition(kind: &str, holds: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let mut condition = Map::new();
    condition.insert("type", kind);
    condition.insert("status", holds);
    condition.insert("lastProbeTime", Time(now).text());
    condition.insert("lastTransitionTime", Time(now).text());
    condition.insert("reason", reason);
    condition.insert("message", message);
    Value::Object(condition)
}

/// Sets the `Suspended` condition, and returns the event if it changed.
fn note_suspension(
    job: &Job,
    status: &mut Map,
    now: Timestamp,
) -> Option<(&'static str, &'static str)> {
    let suspended = job.is_suspended();
    let mut conditions = status.items("conditions").to_vec();
    let is_it = |one: &Value| one.get("type").and_then(Value::as_str) == Some("Suspended");
    let there = conditions.iter().position(is_it);
    let (holds, reason, message) = if suspended {
        ("True", "JobSuspended", "Job suspended")
    } else {
        ("False", "JobResumed", "Job resumed")
    };

    match there {
        Some(at) if conditions[at].get("status").and_then(Value::as_str) == Some(holds) => {
            return None;
        }
        Some(at) => conditions[at] = condition("Suspended", holds, reason, message, now),
        None if suspended => conditions.push(condition("Suspended", holds, reason, message, now)),
        None => return None,
    }

    status.insert("conditions", conditions);

    if suspended {
        // Scheduling directives may be changed as if the Job had never started.
        status.remove("startTime");
        return Some(("Suspended", message));
    }

    // The deadline covers the time since it was last resumed.
    status.insert("startTime", Time(now).text());

    Some(("Resumed", message))
}
