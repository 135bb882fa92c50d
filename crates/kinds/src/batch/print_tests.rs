//! Rows of the batch group, one line each.

use crate::print::tests::check as check_row;

fn check(kind: &str, object: &str, expected: &str) {
    let meta = r#""metadata":{"name":"x","creationTimestamp":"2026-03-01T11:55:00Z""#;
    check_row("batch", kind, &object.replace("META", meta), expected);
}

const TEMPLATE: &str = r#""template":{"spec":{"containers":[{"name":"c","image":"i"}]}}"#;

#[test]
fn jobs() {
    let job = |spec: &str, status: &str, expected: &str| {
        let object = format!(
            r#"{{META}},"spec":{{{TEMPLATE},"selector":{{"matchLabels":{{"a":"b"}}}}{spec}}},"status":{{{status}}}}}"#
        );
        check(
            "Job",
            &object,
            &format!("x | {expected} | 5m | c | i | a=b"),
        );
    };

    let condition = |kind: &str| format!(r#""conditions":[{{"type":"{kind}","status":"True"}}]"#);
    job("", "", "Running | 0/1 | ");
    job(
        r#","parallelism":3"#,
        r#""succeeded":1"#,
        "Running | 1/1 of 3 | ",
    );

    job(
        r#","parallelism":3,"completions":5"#,
        r#""succeeded":2"#,
        "Running | 2/5 | ",
    );

    job(
        "",
        r#""startTime":"2026-03-01T11:00:00Z""#,
        "Running | 0/1 | 60m",
    );

    job(
        "",
        &format!(
            r#""startTime":"2026-03-01T11:00:00Z","completionTime":"2026-03-01T11:00:07Z",{}"#,
            condition("Complete")
        ),
        "Complete | 0/1 | 7s",
    );

    for kind in ["Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"] {
        job("", &condition(kind), &format!("{kind} | 0/1 | "));
    }

    job(
        "",
        r#""conditions":[{"type":"Complete","status":"False"}]"#,
        "Running | 0/1 | ",
    );

    check(
        "Job",
        r#"{META,"deletionTimestamp":"2026-03-01T12:00:00Z"},"status":{"conditions":[{"type":"Suspended","status":"True"}]}}"#,
        "x | Terminating | 0/1 |  | 5m |  |  | <none>",
    );
}

#[test]
fn cron_jobs() {
    check(
        "CronJob",
        "{META}}",
        "x |  | <none> | <unset> | 0 | <none> | 5m |  |  | <none>",
    );

    check(
        "CronJob",
        &format!(
            r#"{{META}},"spec":{{"schedule":"* * * * *","timeZone":"Etc/UTC","suspend":true,"jobTemplate":{{"spec":{{{TEMPLATE}}}}}}},
            "status":{{"active":[{{}},{{}}],"lastScheduleTime":"2026-03-01T11:59:00Z"}}}}"#
        ),
        "x | * * * * * | Etc/UTC | True | 2 | 60s | 5m | c | i | <none>",
    );
}
