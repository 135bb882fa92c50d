use std::collections::BTreeSet;
use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};
use coracle_client::Cached;

use super::backoff::Backoff;
use super::plan::{Observed, Plan, Pods, Work, plan};
use super::track::{Outcome, Tracked, count, finished, track};
use crate::views::Pod;

fn noon() -> Timestamp {
    Time::parse("2026-01-01T12:00:00Z").unwrap().0
}

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// A Job `sum` with this spec and status.
fn job(spec: &str, status: &str) -> Value {
    tree(&format!(
        r#"{{"metadata":{{"name":"sum","namespace":"default","uid":"j","generation":1}},
            "spec":{{"selector":{{"matchLabels":{{"job":"sum"}}}},"backoffLimit":6,
                "template":{{"metadata":{{"labels":{{"job":"sum"}}}},"spec":{{"restartPolicy":"Never"}}}},{spec}}},
            "status":{{"startTime":"2026-01-01T12:00:00Z","ready":0,"terminating":0,
                "uncountedTerminatedPods":{{}}{status}}}}}"#
    ))
}

const TRACKED: &str = "batch.kubernetes.io/job-tracking";

/// A pod: `name phase`, with `#3` for index 3, `!` if it is being deleted, `-` if it has no
/// tracking finalizer, and `=1` for an exit code.
fn pod(words: &str) -> Value {
    let mut words = words.split(' ');
    let (name, phase) = (words.next().unwrap(), words.next().unwrap());
    let mut pod = tree(&format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default","uid":"{name}","labels":{{"job":"sum"}},
            "creationTimestamp":"2026-01-01T12:00:00Z",
            "ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"sum","uid":"j","controller":true}}]}},
            "status":{{"phase":"{phase}"}}}}"#
    ));

    let mut held = true;
    for word in words {
        let rest = &word[1..];
        match &word[..1] {
            "#" => pod
                .meta_mut()
                .set_annotation("batch.kubernetes.io/job-completion-index", Some(rest)),
            "x" => pod
                .meta_mut()
                .set_annotation("batch.kubernetes.io/job-index-failure-count", Some(rest)),
            "!" => pod.meta_mut().set_deletion_timestamp(Some(noon())),
            "-" => held = false,
            "=" => {
                let status = pod.as_object_mut().unwrap().object_mut("status");
                let text = format!(
                    r#"[{{"name":"c","state":{{"terminated":{{"exitCode":{rest},"finishedAt":"2026-01-01T12:00:00Z"}}}}}}]"#
                );
                status.insert("containerStatuses", tree(&text));
            }
            "r" => {
                let status = pod.as_object_mut().unwrap().object_mut("status");
                status.insert(
                    "containerStatuses",
                    tree(&format!(r#"[{{"name":"c","restartCount":{rest}}}]"#)),
                );
            }
            other => panic!("{other}"),
        }
    }

    if held {
        pod.meta_mut().add_finalizer(TRACKED);
    }

    pod
}

fn observed(job: Value, pods: &[&str]) -> Observed {
    Observed {
        job: Arc::new(Cached::of(job).unwrap()),
        pods: pods
            .iter()
            .map(|words| Arc::new(Cached::of(pod(words)).unwrap()))
            .collect(),
        settled: true,
        untracked: BTreeSet::new(),
        backoff: Backoff::default(),
    }
}

fn work(observed: &Observed, after: i64) -> Work {
    match plan(observed, noon().plus_seconds(after)) {
        Plan::Work(work) => *work,
        other => panic!("{other:?}"),
    }
}

/// The planned action as text.
fn action(work: &Work) -> String {
    let names = |pods: &[Arc<Cached<Pod>>]| {
        let mut names: Vec<&str> = pods.iter().map(|pod| pod.key.name.as_str()).collect();
        names.sort_unstable();
        names.join(" ")
    };

    match &work.pods {
        Pods::Keep => "keep".to_string(),
        Pods::Create(new) if new.iter().all(|new| new.index.is_none()) => {
            format!("create {}", new.len())
        }
        Pods::Create(new) => {
            let indexes: Vec<String> = new
                .iter()
                .map(|new| new.index.unwrap().to_string())
                .collect();
            format!("create #{}", indexes.join(" #"))
        }
        Pods::Remove(pods) => format!("remove {}", names(pods)),
        Pods::End(pods) => format!("end {}", names(pods)),
    }
}

/// Tracks as if the whole plan had been carried out.
fn tracked(observed: &Observed, work: &Work) -> Tracked {
    let active = work
        .claims
        .claimed
        .iter()
        .filter(|pod| pod.is_active())
        .count();

    let terminating = work
        .claims
        .claimed
        .iter()
        .filter(|pod| pod.is_terminating())
        .count();

    let (active, terminating) = match &work.pods {
        Pods::Keep => (active, terminating),
        Pods::Create(new) => (active + new.len(), terminating),
        Pods::Remove(pods) | Pods::End(pods) => (active - pods.len(), terminating + pods.len()),
    };

    track(
        observed,
        work,
        Outcome {
            active,
            ready: 0,
            terminating,
            may_end: observed.settled,
        },
        noon(),
    )
}

fn uncounted(status: &Map, how: &str) -> Vec<String> {
    let list = status.below("uncountedTerminatedPods").unwrap().items(how);
    list.iter()
        .map(|uid| uid.as_str().unwrap().to_string())
        .collect()
}

#[test]
fn as_many_pods_run_as_are_wanted() {
    let check = |spec: &str, status: &str, pods: &[&str], expected: &str| {
        assert_eq!(
            action(&work(&observed(job(spec, status), pods), 60)),
            expected,
            "{spec} {status} {pods:?}"
        );
    };

    let four = r#""completions":4,"parallelism":2"#;
    check(four, "", &[], "create 2");
    check(four, "", &["a Running"], "create 1");
    check(four, "", &["a Running", "b Pending"], "keep");
    check(four, "", &["a Running", "b Succeeded"], "create 1");

    check(four, r#","succeeded":3"#, &["a Running"], "keep");
    check(four, r#","succeeded":3"#, &[], "create 1");
    check(four, r#","succeeded":4"#, &[], "keep");
    check(
        r#""completions":4,"parallelism":0"#,
        "",
        &["a Running"],
        "remove a",
    );

    check(r#""completions":2,"parallelism":5"#, "", &[], "create 2");

    // Without completions, one success completes the Job.
    check(r#""parallelism":3"#, "", &[], "create 3");
    check(
        r#""parallelism":3"#,
        "",
        &["a Succeeded", "b Running"],
        "keep",
    );

    // A terminating pod is replaced at once, or only when it has failed.
    check(four, "", &["a Running", "b Running !"], "create 1");
    check(
        &format!(r#"{four},"podReplacementPolicy":"Failed""#),
        "",
        &["a Running", "b Running !"],
        "keep",
    );

    // The youngest are deleted first, and unscheduled ones before running ones.
    check(
        r#""completions":4,"parallelism":1"#,
        "",
        &["a Running", "b Pending"],
        "remove b",
    );

    check(
        &format!(r#"{four},"suspend":true"#),
        "",
        &["a Running", "b Running"],
        "remove a b",
    );

    check(&format!(r#"{four},"suspend":true"#), "", &[], "keep");
    check(
        r#""completions":2000,"parallelism":2000"#,
        "",
        &[],
        "create 500",
    );
}

#[test]
fn what_is_not_settled_finished_foreign_or_going_is_left() {
    let mut seen = observed(job(r#""completions":1"#, ""), &[]);
    seen.settled = false;
    assert_eq!(action(&work(&seen, 0)), "keep");

    let complete = r#","conditions":[{"type":"Complete","status":"True"}]"#;
    assert_eq!(
        plan(&observed(job(r#""completions":1"#, complete), &[]), noon()),
        Plan::Leave
    );

    let foreign = job(r#""completions":1,"managedBy":"example.com/queue""#, "");
    assert_eq!(plan(&observed(foreign, &[]), noon()), Plan::Leave);

    let unknown = job(r#""completionMode":"Random""#, "");
    assert_eq!(plan(&observed(unknown, &[]), noon()), Plan::UnknownMode);

    let mut going = job(r#""completions":1"#, "");
    going.meta_mut().set_deletion_timestamp(Some(noon()));

    let seen = observed(going, &["a Running"]);
    let work = work(&seen, 0);
    assert_eq!(action(&work), "keep");
    assert_eq!(
        tracked(&seen, &work).untrack.len(),
        1,
        "no pod is tracked for a deleted Job"
    );
}

#[test]
fn a_job_ends_for_the_first_reason_that_holds() {
    let check = |spec: &str, status: &str, pods: &[&str], after: i64, expected: &str| {
        let work = work(&observed(job(spec, status), pods), after);
        let ending = work
            .ending
            .as_ref()
            .map(|ending| format!("{} {}", ending.reason, ending.message));

        assert_eq!(
            ending.unwrap_or_default(),
            expected,
            "{spec} {status} {pods:?}"
        );

        assert_eq!(work.ending.is_some(), matches!(work.pods, Pods::End(_)));
    };

    let limit = "BackoffLimitExceeded Job has reached the specified backoff limit";
    let deadline = "DeadlineExceeded Job was active longer than specified deadline";

    check(r#""completions":1"#, r#","failed":6"#, &[], 0, "");
    check(
        r#""completions":1"#,
        r#","failed":6"#,
        &["a Failed"],
        0,
        limit,
    );

    check(
        r#""completions":1"#,
        r#","failed":7"#,
        &["b Running"],
        0,
        limit,
    );

    check(
        r#""completions":1,"activeDeadlineSeconds":10"#,
        "",
        &["a Running"],
        9,
        "",
    );

    check(
        r#""completions":1,"activeDeadlineSeconds":10"#,
        "",
        &["a Running"],
        10,
        deadline,
    );

    check(
        r#""completions":1,"activeDeadlineSeconds":10,"suspend":true"#,
        "",
        &[],
        20,
        "",
    );

    let decided = r#","conditions":[{"type":"FailureTarget","status":"True","reason":"Why","message":"because"}]"#;
    check(r#""completions":1"#, decided, &[], 0, "Why because");

    let met = r#","failed":9,"conditions":[{"type":"SuccessCriteriaMet","status":"True","reason":"R","message":"m"}]"#;
    check(r#""completions":1"#, met, &[], 0, "R m");
    let fails = |action: &str, operator: &str| {
        format!(
            r#""completions":3,"podFailurePolicy":{{"rules":[{{"action":"{action}",
                "onExitCodes":{{"operator":"{operator}","values":[42]}}}}]}}"#
        )
    };

    let text = "PodFailurePolicy Container c for pod default/a failed with exit code 42 matching FailJob rule at index 0";
    check(&fails("FailJob", "In"), "", &["a Failed =42"], 0, text);
    check(&fails("FailJob", "In"), "", &["a Failed =41"], 0, "");

    check(&fails("FailJob", "NotIn"), "", &["a Failed =42"], 0, "");
    check(
        &fails("Ignore", "In"),
        r#","failed":6"#,
        &["a Failed =42"],
        0,
        "",
    );

    check(
        &fails("Count", "In"),
        r#","failed":6"#,
        &["a Failed =42"],
        0,
        limit,
    );
}

#[test]
fn restarts_count_where_containers_are_restarted() {
    let check = |backoff_limit: i64, restarts: &str, expected: bool| {
        let mut object = job(r#""completions":1"#, "");
        let spec = object.as_object_mut().unwrap().object_mut("spec");
        spec.insert("backoffLimit", backoff_limit);
        spec.object_mut("template")
            .object_mut("spec")
            .insert("restartPolicy", "OnFailure");

        let work = work(&observed(object, &[&format!("a Running r{restarts}")]), 0);
        assert_eq!(
            work.ending.is_some(),
            expected,
            "{restarts} of {backoff_limit}"
        );
    };

    check(0, "0", false);
    check(0, "1", true);
    check(3, "2", false);
    check(3, "3", true);
}

#[test]
fn missing_indexes_are_created_duplicates_deleted_and_policies_applied() {
    let check = |spec: &str, status: &str, pods: &[&str], expected: &str, ending: &str| {
        let spec = format!(r#""completionMode":"Indexed",{spec}"#);
        let work = work(&observed(job(&spec, status), pods), 60);
        let found = work
            .ending
            .as_ref()
            .map(|ending| ending.reason.to_string())
            .unwrap_or_default();

        assert_eq!(
            (action(&work).as_str(), found.as_str()),
            (expected, ending),
            "{spec} {status} {pods:?}"
        );
    };

    let four = r#""completions":4,"parallelism":4"#;
    check(four, "", &[], "create #0 #1 #2 #3", "");
    check(
        four,
        r#","completedIndexes":"0,2""#,
        &["a Running #1"],
        "create #3",
        "",
    );

    check(
        four,
        "",
        &["a Succeeded #2", "b Running #0"],
        "create #1 #3",
        "",
    );

    check(
        four,
        "",
        &["a Running #1", "b Pending #1", "c Running #9"],
        "remove b c",
        "",
    );

    check(
        r#""completions":4,"parallelism":2"#,
        "",
        &["a Succeeded #0"],
        "create #1 #2",
        "",
    );

    let per_index = format!(r#"{four},"backoffLimitPerIndex":1"#);
    check(
        &per_index,
        "",
        &["a Failed #0 x0"],
        "create #0 #1 #2 #3",
        "",
    );

    check(&per_index, "", &["a Failed #0 x1"], "create #1 #2 #3", "");
    check(
        &per_index,
        r#","completedIndexes":"1-3""#,
        &["a Failed #0 x1"],
        "end ",
        "FailedIndexes",
    );

    let at_most = format!(r#"{per_index},"maxFailedIndexes":0"#);
    check(
        &at_most,
        "",
        &["a Failed #0 x1", "b Running #1"],
        "end b",
        "MaxFailedIndexesExceeded",
    );

    let one_is_enough = format!(
        r#"{four},"successPolicy":{{"rules":[{{"succeededIndexes":"1-2","succeededCount":1}}]}}"#
    );
    check(
        &one_is_enough,
        "",
        &["a Succeeded #2", "b Running #0"],
        "end b",
        "SuccessPolicy",
    );

    check(
        &one_is_enough,
        "",
        &["a Succeeded #0", "b Running #1"],
        "create #2 #3",
        "",
    );
}

#[test]
fn failures_are_waited_for_longer_and_longer() {
    let check = |failures: usize, after: i64, expected: Option<u64>| {
        let mut seen = observed(job(r#""completions":1"#, ""), &[]);
        seen.backoff = Backoff {
            failures,
            last: Some(noon()),
        };

        let work = work(&seen, after);
        assert_eq!(
            work.wake_after.map(|wait| wait.as_secs()),
            expected,
            "{failures} {after}"
        );

        assert_eq!(
            action(&work),
            if expected.is_some() {
                "keep"
            } else {
                "create 1"
            }
        );
    };

    check(0, 0, None);
    check(1, 0, Some(10));
    check(1, 10, None);
    check(2, 5, Some(15));
    check(6, 0, Some(320));
    check(7, 0, Some(600));
    check(90, 0, Some(600));

    let seen = observed(job(r#""completions":2"#, ""), &["a Failed =1"]);
    assert_eq!(
        work(&seen, 4).wake_after.unwrap().as_secs(),
        6,
        "from the end of the last that failed"
    );
}

#[test]
fn a_pod_is_recorded_untracked_and_counted_once() {
    let mut seen = observed(
        job(r#""completions":3,"parallelism":3"#, ""),
        &["a Succeeded", "b Failed", "c Running"],
    );
    let first = work(&seen, 60);

    let result = tracked(&seen, &first);
    assert_eq!(
        (
            uncounted(&result.status, "succeeded"),
            uncounted(&result.status, "failed")
        ),
        (vec!["a".to_string()], vec!["b".to_string()])
    );

    assert_eq!(
        result.status.get("succeeded"),
        None,
        "nothing is counted while it is held"
    );

    let names: Vec<&str> = result
        .untrack
        .iter()
        .map(|pod| pod.key.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b"]);

    // The status was written and the process died: nothing is lost, and nothing counted twice.
    let mut object = job(r#""completions":3,"parallelism":3"#, "");
    object
        .as_object_mut()
        .unwrap()
        .insert("status", result.status.clone());

    seen = observed(object.clone(), &["a Succeeded", "b Failed", "c Running"]);
    let again = work(&seen, 60);
    assert_eq!(again.succeeded, 1);
    assert_eq!(
        uncounted(&tracked(&seen, &again).status, "succeeded"),
        ["a"]
    );

    // The finalizers were removed as well.
    seen = observed(
        object.clone(),
        &["a Succeeded -", "b Failed -", "c Running"],
    );

    let counted = tracked(&seen, &work(&seen, 60)).status;
    assert_eq!((counted.int("succeeded"), counted.int("failed")), (1, 1));
    assert!(
        uncounted(&counted, "succeeded").is_empty() && uncounted(&counted, "failed").is_empty()
    );

    // They were counted, and the cache still shows their finalizers.
    object.as_object_mut().unwrap().insert("status", counted);
    seen = observed(object, &["a Succeeded", "b Failed", "c Running"]);
    seen.untracked = ["a", "b"].into_iter().map(Text::const_new).collect();
    let last = work(&seen, 60);
    assert_eq!(last.succeeded, 1);
    assert!(tracked(&seen, &last).untrack.is_empty());
}

#[test]
fn a_job_has_finished_when_all_are_counted_and_gone() {
    let seen = observed(job(r#""completions":1"#, ""), &["a Succeeded"]);
    let done = tracked(&seen, &work(&seen, 0));
    let ending = done.ending.unwrap();

    assert_eq!(
        done.status.items("conditions")[0]
            .get("type")
            .unwrap()
            .as_str(),
        Some("SuccessCriteriaMet")
    );

    assert_eq!(finished(&done.status, &ending, noon()), None, "one is held");

    let mut status = done.status.clone();
    assert!(count(&mut status, &BTreeSet::new()));

    let over = finished(&status, &ending, noon()).unwrap();
    let kinds: Vec<_> = over
        .items("conditions")
        .iter()
        .map(|one| one.get("type").unwrap().as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["SuccessCriteriaMet", "Complete"]);

    assert_eq!(
        (over.int("succeeded"), over.text("completionTime")),
        (1, "2026-01-01T12:00:00Z")
    );

    status.insert("terminating", 1);
    assert_eq!(
        finished(&status, &ending, noon()),
        None,
        "one is on its way out"
    );
}

#[test]
fn a_job_that_fails_takes_its_pods_along() {
    let seen = observed(
        job(r#""completions":2,"parallelism":2"#, r#","failed":7"#),
        &["a Running", "b Succeeded"],
    );
    let work = work(&seen, 0);
    assert_eq!(action(&work), "end a");

    let result = tracked(&seen, &work);
    assert_eq!(
        uncounted(&result.status, "failed"),
        ["a"],
        "what runs has failed with it"
    );

    assert_eq!(result.status.int("terminating"), 1);
    assert_eq!(
        result.status.items("conditions")[0]
            .get("type")
            .unwrap()
            .as_str(),
        Some("FailureTarget")
    );

    let mut unsettled = seen.clone();
    unsettled.settled = false;
    assert_eq!(
        tracked(&unsettled, &work).ending,
        None,
        "there may be pods that are not seen yet"
    );
}

#[test]
fn suspension_is_reported_and_the_deadline_restarts() {
    let seen = observed(job(r#""completions":1,"suspend":true"#, ""), &[]);
    let result = tracked(&seen, &work(&seen, 0));
    assert_eq!(result.news, Some(("Suspended", "Job suspended")));
    assert_eq!(result.status.get("startTime"), None);

    let mut object = job(r#""completions":1"#, "");
    object
        .as_object_mut()
        .unwrap()
        .insert("status", result.status);

    let seen = observed(object, &[]);
    let result = tracked(&seen, &work(&seen, 0));
    assert_eq!(result.news, Some(("Resumed", "Job resumed")));
    assert_eq!(result.status.text("startTime"), "2026-01-01T12:00:00Z");

    let conditions = result.status.items("conditions");
    assert_eq!(
        conditions[0].get("reason").unwrap().as_str(),
        Some("JobResumed")
    );

    let fresh = observed(job(r#""completions":1"#, ""), &[]);
    assert_eq!(
        tracked(&fresh, &work(&fresh, 0)).news,
        None,
        "one that was never suspended says nothing"
    );
}

#[test]
fn an_orphan_is_adopted_with_the_finalizer_and_counted() {
    let mut orphan = pod("a Succeeded -");
    orphan.meta_mut().set_owner_references([]);
    let mut seen = observed(job(r#""completions":2"#, ""), &[]);
    seen.pods = vec![Arc::new(Cached::of(orphan).unwrap())];
    let work = work(&seen, 0);
    assert_eq!((work.claims.adopt.len(), work.succeeded), (1, 1));
}
