use std::sync::Arc;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::time::{Time, Timestamp};
use coracle_client::Cached;

use super::plan::{Observed, Plan, plan};

fn at(text: &str) -> Timestamp {
    Time::parse(&format!("2026-01-01T{text}Z")).unwrap().0
}

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap()
}

/// A CronJob created at 10:00; Jobs as `name state minute`.
fn observed(spec: &str, status: &str, jobs: &[&str]) -> Observed {
    let cron = tree(&format!(
        r#"{{"metadata":{{"name":"tick","namespace":"default","uid":"c","creationTimestamp":"2026-01-01T10:00:00Z"}},
            "spec":{{"jobTemplate":{{}},{spec}}},"status":{{{status}}}}}"#
    ));

    let job = |words: &&str| {
        let words: Vec<&str> = words.split(' ').collect();
        let conditions = match words[1] {
            "Running" => String::new(),
            how => format!(r#","conditions":[{{"type":"{how}","status":"True"}}]"#),
        };

        let (name, minute) = (words[0], words[2]);
        let job = tree(&format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"default","uid":"{name}"}},
                "status":{{"startTime":"2026-01-01T10:{minute}:00Z","completionTime":"2026-01-01T10:{minute}:30Z"{conditions}}}}}"#
        ));

        Arc::new(Cached::of(job).unwrap())
    };

    Observed {
        cron: Arc::new(Cached::of(cron).unwrap()),
        jobs: jobs.iter().map(job).collect(),
    }
}

fn begun(plan: &Plan) -> String {
    plan.create
        .as_ref()
        .map(|job| Time(job.at).text()[11..16].to_string())
        .unwrap_or_default()
}

fn reasons(plan: &Plan) -> Vec<&str> {
    plan.events.iter().map(|event| event.reason).collect()
}

#[test]
fn a_job_begins_when_it_is_time_and_once_for_each() {
    let check = |spec: &str, status: &str, now: &str, expected: &str, wakes: u64| {
        let plan = plan(&observed(spec, status, &[]), at(now));
        let wake = plan.wake_after.map_or(0, |wake| wake.as_secs());
        assert_eq!(
            (begun(&plan).as_str(), wake),
            (expected, wakes),
            "{spec} {status} {now}"
        );
    };

    let hourly = r#""schedule":"0 * * * *""#;
    check(hourly, "", "10:00:00", "", 3600);
    check(hourly, "", "10:30:00", "", 1800);

    check(hourly, "", "11:00:00", "11:00", 3600);
    check(hourly, "", "11:10:00", "11:00", 3000);
    check(
        hourly,
        r#""lastScheduleTime":"2026-01-01T11:00:00Z""#,
        "11:10:00",
        "",
        3000,
    );

    // Several were missed: the newest starts.
    check(hourly, "", "15:20:00", "15:00", 2400);
    check(
        &format!(r#"{hourly},"suspend":true"#),
        "",
        "11:00:00",
        "",
        0,
    );

    let deadline = format!(r#"{hourly},"startingDeadlineSeconds":60"#);
    check(&deadline, "", "11:00:50", "11:00", 3550);

    check(&deadline, "", "11:05:00", "", 3300);
    check(
        r#""schedule":"0 6 * * *","timeZone":"America/New_York""#,
        "",
        "11:00:00",
        "11:00",
        86400,
    );

    check(
        r#""schedule":"* * * * *""#,
        r#""lastScheduleTime":"2025-01-01T00:00:00Z""#,
        "11:00:30",
        "11:00",
        30,
    );
}

#[test]
fn concurrency_policy_allows_forbids_or_replaces_running_jobs() {
    let listed = r#""active":[{"name":"old","uid":"old"}]"#;
    let check = |policy: &str, expected: &str, replaced: usize, telling: &[&str]| {
        let spec = format!(r#""schedule":"0 * * * *","concurrencyPolicy":"{policy}""#);
        let plan = plan(
            &observed(&spec, listed, &["old Running 00"]),
            at("11:00:00"),
        );

        let instead = plan.create.as_ref().map_or(0, |job| job.instead_of.len());

        assert_eq!(
            (begun(&plan).as_str(), instead, reasons(&plan)),
            (expected, replaced, telling.to_vec()),
            "{policy}"
        );
    };

    check("Allow", "11:00", 0, &[]);
    check("Forbid", "", 0, &["JobAlreadyActive"]);
    check("Replace", "11:00", 1, &[]);
}

#[test]
fn finished_jobs_leave_the_active_list_and_the_oldest_are_deleted() {
    let spec =
        r#""schedule":"0 0 1 1 *","successfulJobsHistoryLimit":1,"failedJobsHistoryLimit":1"#;
    let status = r#""active":[{"name":"b","uid":"b"},{"name":"gone","uid":"gone"}]"#;

    let jobs = [
        "a Complete 01",
        "b Complete 02",
        "c Failed 03",
        "d Running 04",
    ];

    let plan = plan(&observed(spec, status, &jobs), at("10:30:00"));
    let forgotten: Vec<&str> = plan
        .forget
        .iter()
        .map(|job| job.key.name.as_str())
        .collect();
    assert_eq!(forgotten, ["a"]);

    assert_eq!(reasons(&plan), ["SawCompletedJob", "UnexpectedJob"]);
    assert_eq!(
        plan.events[0].message,
        "Saw completed job: b, condition: Complete"
    );

    assert_eq!(plan.status.items("active").len(), 1);
    assert_eq!(plan.missing.len(), 1, "it is requested from the server");
    assert_eq!(
        plan.status.text("lastSuccessfulTime"),
        "2026-01-01T10:02:30Z"
    );
}

#[test]
fn invalid_schedules_are_reported() {
    let check = |spec: &str, now: &str, expected: &[&str], message: &str| {
        let plan = plan(&observed(spec, "", &[]), at(now));
        assert_eq!(reasons(&plan), expected, "{spec}");
        assert_eq!(plan.events[0].message, message);
    };

    check(
        r#""schedule":"x""#,
        "11:00:00",
        &["UnparseableSchedule"],
        "unparseable schedule: \"x\" : expected exactly 5 fields, found 1: [x]",
    );

    check(
        r#""schedule":"* * * * *","timeZone":"Mars/X""#,
        "11:00:00",
        &["UnknownTimeZone"],
        "invalid timeZone: \"Mars/X\": unknown time zone Mars/X",
    );

    let many = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
    check(
        r#""schedule":"* * * * *""#,
        "15:00:00",
        &["TooManyMissedTimes"],
        many,
    );
}
