//! What one Job needs now. Pure.
//!
//! Ended pods that are not counted yet are evaluated together with the counts of the status: does
//! the Job end (`ending`), and if not, how many pods should run. `track` computes the status once
//! it is known how much of this succeeded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::Cached;

use super::backoff::{self, Backoff};
use super::ending::{Ending, ending};
use super::failure::{apply_policy, has_failed};
use super::indexes::Indexes;
use crate::pods::{Claims, claims, rank};
use crate::views::{Job, Phase, Pod};

/// The most pods created or deleted in one reconcile.
pub const BURST: usize = 500;

/// All that was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Job.
    pub job: Arc<Cached<Job>>,
    /// The pods that it controls, and those of its namespace that nothing controls.
    pub pods: Vec<Arc<Cached<Pod>>>,
    /// Whether all expectations are met.
    pub settled: bool,
    /// Pods without tracking finalizer, although the cache still shows it.
    pub untracked: BTreeSet<Text>,
    /// The backoff state.
    pub backoff: Backoff,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing: it has finished, or another controller manages it.
    Leave,
    /// Nothing but an event: its completion mode is unknown.
    UnknownMode,
    /// There is something to do.
    Work(Box<Work>),
}

/// What to do for a Job that has not finished.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Ownership of the pods.
    pub claims: Claims,
    /// Pods to create or delete.
    pub pods: Pods,
    /// How the Job ends, if that is certain.
    pub ending: Option<Ending>,
    /// Whether the number of pods was evaluated, so that the `Suspended` condition can be set.
    pub managed: bool,
    /// How many pods have succeeded, including uncounted ones; for an indexed Job, how many
    /// indexes.
    pub succeeded: i64,
    /// The indexes that had succeeded before.
    pub known_indexes: Indexes,
    /// Those that have by now.
    pub succeeded_indexes: Indexes,
    /// Those that have failed for good, if there is a limit per index.
    pub failed_indexes: Option<Indexes>,
    /// Failed pods that are not counted until their replacement is created.
    pub kept: BTreeMap<u32, Arc<Cached<Pod>>>,
    /// The backoff state, including these pods.
    pub backoff: Backoff,
    /// When to reconcile again without an event.
    pub wake_after: Option<Duration>,
}

/// Pods to create or delete.
#[derive(Clone, Debug, PartialEq)]
pub enum Pods {
    /// Nothing.
    Keep,
    /// Create these.
    Create(Vec<New>),
    /// Delete these without counting them.
    Remove(Vec<Arc<Cached<Pod>>>),
    /// Delete all active ones, because the Job ends.
    End(Vec<Arc<Cached<Pod>>>),
}

/// A pod to create.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct New {
    /// Its index in an indexed Job.
    pub index: Option<u32>,
    /// Failures of the same index, and how many of those are ignored; if there is a limit per
    /// index.
    pub failures: Option<(u32, u32)>,
}

/// The pods of a Job, sorted.
pub(super) struct Sorted {
    pub(super) active: Vec<Arc<Cached<Pod>>>,
    pub(super) terminating: usize,
    pub(super) new_succeeded: Vec<Arc<Cached<Pod>>>,
    pub(super) new_failed: Vec<Arc<Cached<Pod>>>,
}

/// Whether a pod has yet to be counted.
pub(super) fn is_tracked(observed: &Observed, pod: &Cached<Pod>) -> bool {
    pod.is_tracked && !observed.untracked.contains(&pod.uid)
}

/// The index of a pod of an indexed Job.
pub(super) fn index_of(job: &Job, pod: &Pod) -> Option<u32> {
    pod.index
        .map(|index| index.index)
        .filter(|index| i64::from(*index) < job.completions().unwrap_or_default())
}

/// The first number that is no index.
pub(super) fn index_limit(job: &Job) -> u32 {
    job.completions()
        .and_then(|completions| u32::try_from(completions).ok())
        .unwrap_or_default()
}

/// Decides what the Job needs.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let job: &Job = &observed.job;
    if job.finished().is_some() || job.is_foreign() {
        return Plan::Leave;
    }

    if !matches!(job.completion_mode(), "Indexed" | "NonIndexed") {
        return Plan::UnknownMode;
    }

    let claims = adopted_as_tracked(claims(&observed.job, &observed.pods));
    let sorted = sort(observed, &claims.claimed);
    let status = |name: &str| job.status().map_or(0, |status| status.int(name));
    let uncounted = |name: &str| uncounted(job, name).len();
    let failed_now = sorted
        .new_failed
        .iter()
        .filter(|pod| apply_policy(job, pod).counts())
        .count();

    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let failed = status("failed") + count(failed_now) + count(uncounted("failed"));
    let mut work = Work {
        pods: Pods::Keep,
        ending: None,
        managed: false,
        succeeded: status("succeeded")
            + count(sorted.new_succeeded.len())
            + count(uncounted("succeeded")),
        known_indexes: Indexes::default(),
        succeeded_indexes: Indexes::default(),
        failed_indexes: None,
        kept: BTreeMap::new(),
        backoff: observed
            .backoff
            .after(&sorted.new_succeeded, &sorted.new_failed),
        wake_after: None,
        claims,
    };

    if job.is_indexed() {
        compute_indexes(observed, &mut work);
    }

    work.ending = ending(observed, &work, failed, now);

    if work.ending.is_some() {
        work.pods = Pods::End(sorted.active);
    } else {
        if observed.settled && !job.is_being_deleted() {
            work.managed = true;
            manage(observed, &sorted, &mut work, now);
        }

        let until_deadline = until_deadline(job, now);
        work.wake_after = [work.wake_after, until_deadline]
            .into_iter()
            .flatten()
            .min();
    }

    Plan::Work(Box::new(work))
}

/// Adopted pods get the tracking finalizer.
fn adopted_as_tracked(mut claims: Claims) -> Claims {
    let adopted: BTreeSet<Text> = claims.adopt.iter().map(|pod| pod.uid.clone()).collect();
    for pod in claims
        .claimed
        .iter_mut()
        .filter(|pod| adopted.contains(&pod.uid))
    {
        Arc::make_mut(pod).object.is_tracked = true;
    }
    claims
}

/// The UIDs in the status of ended pods that are not counted yet.
pub(super) fn uncounted(job: &Job, how: &str) -> BTreeSet<Text> {
    let all = job
        .status()
        .and_then(|status| status.below("uncountedTerminatedPods"));
    let uids = all.map(|all| all.items(how)).unwrap_or_default();
    uids.iter()
        .filter_map(|uid| uid.as_str().map(Text::new))
        .collect()
}

fn sort(observed: &Observed, pods: &[Arc<Cached<Pod>>]) -> Sorted {
    let job: &Job = &observed.job;
    let counts = |pod: &Cached<Pod>, known: &BTreeSet<Text>| {
        let has_place = !job.is_indexed() || index_of(job, pod).is_some();
        is_tracked(observed, pod) && has_place && !known.contains(&pod.uid)
    };

    let (known_succeeded, known_failed) = (uncounted(job, "succeeded"), uncounted(job, "failed"));
    let of =
        |is: &dyn Fn(&Cached<Pod>) -> bool| pods.iter().filter(|pod| is(pod)).cloned().collect();

    Sorted {
        active: of(&|pod| pod.is_active()),
        terminating: pods.iter().filter(|pod| pod.is_terminating()).count(),
        new_succeeded: of(&|pod| pod.phase == Phase::Succeeded && counts(pod, &known_succeeded)),
        new_failed: of(&|pod| has_failed(job, pod) && counts(pod, &known_failed)),
    }
}

/// Computes which indexes have succeeded and failed, and which failed pods are kept to carry the
/// failure count.
fn compute_indexes(observed: &Observed, work: &mut Work) {
    let job: &Job = &observed.job;
    let text = |name: &str| {
        job.status()
            .map(|status| status.text(name))
            .unwrap_or_default()
    };

    let limit = index_limit(job);

    let pods: Vec<_> = work
        .claims
        .claimed
        .iter()
        .filter(|pod| is_tracked(observed, pod))
        .collect();
    let succeeded = pods.iter().filter(|pod| pod.phase == Phase::Succeeded);

    work.known_indexes = Indexes::parse(text("completedIndexes"), limit);
    work.succeeded_indexes = work
        .known_indexes
        .with(succeeded.filter_map(|pod| index_of(job, pod)));
    work.succeeded = i64::try_from(work.succeeded_indexes.len()).unwrap_or(i64::MAX);
    let Some(per_index) = job.backoff_limit_per_index() else {
        return;
    };

    let failed = pods.iter().filter(|pod| has_failed(job, pod));
    let for_good = failed.clone().filter(|pod| {
        let before = pod.index.map_or(0, |index| i64::from(index.failures));
        match apply_policy(job, pod) {
            super::failure::Failure::Index => true,
            failure => failure.counts() && before >= per_index,
        }
    });

    let known = Indexes::parse(text("failedIndexes"), limit);
    let failed_indexes = known.with(for_good.filter_map(|pod| index_of(job, pod)));
    let active: BTreeSet<u32> = work
        .claims
        .claimed
        .iter()
        .filter(|pod| pod.is_active())
        .filter_map(|pod| index_of(job, pod))
        .collect();

    for pod in failed {
        let Some(index) = index_of(job, pod) else {
            continue;
        };
        if work.succeeded_indexes.has(index) || failed_indexes.has(index) || active.contains(&index)
        {
            continue;
        }

        let newer = work.kept.get(&index).is_none_or(|kept| {
            all_failures(kept) <= all_failures(pod) && backoff::ended(kept) <= backoff::ended(pod)
        });
        if newer {
            work.kept.insert(index, (*pod).clone());
        }
    }

    work.failed_indexes = Some(failed_indexes);
}

fn all_failures(pod: &Pod) -> u32 {
    pod.index
        .map_or(0, |index| index.failures + index.ignored_failures)
}

fn until_deadline(job: &Job, now: Timestamp) -> Option<Duration> {
    let deadline = job.active_deadline().filter(|_| !job.is_suspended())?;
    job.start_time()
        .unwrap_or(now)
        .plus_seconds(deadline)
        .since(now)
        .to_std()
}

/// How many pods should be active.
fn wanted(job: &Job, active: i64, succeeded: i64) -> i64 {
    match job.completions() {
        // One success completes the Job: no more are created, and running ones may end.
        None if succeeded > 0 => active,
        None => job.parallelism(),
        Some(completions) => (completions - succeeded).min(job.parallelism()).max(0),
    }
}

fn manage(observed: &Observed, sorted: &Sorted, work: &mut Work, now: Timestamp) {
    let job: &Job = &observed.job;
    let active = i64::try_from(sorted.active.len()).unwrap_or(i64::MAX);
    let wanted = if job.is_suspended() {
        0
    } else {
        wanted(job, active, work.succeeded)
    };
    let surplus = usize::try_from(active - wanted).unwrap_or_default();

    let mut removed = to_remove(job, &sorted.active, surplus);
    if !job.is_suspended() {
        removed.truncate(BURST);
    }

    if !removed.is_empty() {
        work.pods = Pods::Remove(removed);
        return;
    }

    let held = if job.only_replaces_failed() {
        sorted.terminating
    } else {
        0
    };

    let missing = usize::try_from(wanted - active)
        .unwrap_or_default()
        .saturating_sub(held)
        .min(BURST);

    if missing == 0 || job.is_suspended() {
        return;
    }

    if job.backoff_limit_per_index().is_none() {
        work.wake_after = work.backoff.remaining(now);
        if work.wake_after.is_some() {
            return;
        }
    }

    let new = match job.is_indexed() {
        true => new_indexes(observed, sorted, work, missing, now),
        false => vec![New::default(); missing],
    };

    if !new.is_empty() {
        work.pods = Pods::Create(new);
    }
}

/// The active pods to delete: those with duplicate or missing index, then the youngest.
fn to_remove(job: &Job, active: &[Arc<Cached<Pod>>], at_least: usize) -> Vec<Arc<Cached<Pod>>> {
    let mut ordered = active.to_vec();
    ordered.sort_by(|one, other| rank::youngest_first(one, other));
    let (mut removed, mut left) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();

    // Of several with one index, the last in deletion order stays.
    for pod in ordered.into_iter().rev() {
        let stays =
            !job.is_indexed() || index_of(job, &pod).is_some_and(|index| seen.insert(index));
        if stays {
            left.push(pod)
        } else {
            removed.push(pod)
        }
    }

    let more = at_least.saturating_sub(removed.len());
    removed.extend(left.into_iter().rev().take(more));

    removed
}

/// The indexes that get a pod now. With a limit per index, each index has its own backoff.
fn new_indexes(
    observed: &Observed,
    sorted: &Sorted,
    work: &mut Work,
    missing: usize,
    now: Timestamp,
) -> Vec<New> {
    let job: &Job = &observed.job;
    let indexes = |pods: &[Arc<Cached<Pod>>]| -> Vec<u32> {
        pods.iter()
            .filter_map(|pod| pod.index.map(|index| index.index))
            .collect()
    };

    let mut taken = work.succeeded_indexes.with(indexes(&sorted.active));
    if job.only_replaces_failed() {
        let going: Vec<_> = work
            .claims
            .claimed
            .iter()
            .filter(|pod| pod.is_terminating())
            .cloned()
            .collect();
        taken = taken.with(indexes(&going));
    }

    if let Some(failed) = &work.failed_indexes {
        taken = taken.union(failed);
    }

    let mut new = Vec::new();
    for index in taken.missing(missing, index_limit(job)) {
        let before = work.kept.get(&index);
        let pause = before.and_then(|pod| {
            let failures = usize::try_from(all_failures(pod))
                .unwrap_or(usize::MAX)
                .saturating_add(1);
            backoff::pause(failures, backoff::ended(pod), now)
        });

        match pause {
            Some(pause) => {
                work.wake_after = Some(work.wake_after.map_or(pause, |other| other.min(pause)))
            }
            None => new.push(New {
                index: Some(index),
                failures: failures(job, before),
            }),
        }
    }

    new
}

/// The failure counts that the next pod of an index carries.
fn failures(job: &Job, before: Option<&Arc<Cached<Pod>>>) -> Option<(u32, u32)> {
    job.backoff_limit_per_index()?;
    let Some(pod) = before else {
        return Some((0, 0));
    };
    let (counted, ignored) = pod
        .index
        .map_or((0, 0), |index| (index.failures, index.ignored_failures));

    Some(if apply_policy(job, pod).counts() {
        (counted + 1, ignored)
    } else {
        (counted, ignored + 1)
    })
}
