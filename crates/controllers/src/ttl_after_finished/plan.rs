//! When a finished Job expires. Pure.

use std::time::Duration;

use coracle_api::time::Timestamp;

use crate::views::Job;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Keep it: it has not finished, has no TTL, or is being deleted.
    Keep,
    /// Keep it for this long.
    Wait(Duration),
    /// Delete it.
    Delete,
}

/// Decides what happens to the Job.
pub fn plan(job: &Job, now: Timestamp) -> Plan {
    let (Some((_, Some(finished))), Some(seconds)) = (job.finished(), job.seconds_to_live()) else {
        return Plan::Keep;
    };

    if job.is_being_deleted() {
        return Plan::Keep;
    }

    let left = finished
        .plus_seconds(seconds)
        .since(now)
        .to_std()
        .filter(|left| !left.is_zero());

    left.map_or(Plan::Delete, Plan::Wait)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;
    use coracle_api::time::Time;
    use coracle_client::Projection;

    use super::*;

    #[test]
    fn a_finished_job_stays_as_long_as_it_says() {
        let now = Time::parse("2026-01-01T12:00:00Z").unwrap().0;
        let check = |meta: &str, spec: &str, kind: &str, expected: Plan| {
            let text = format!(
                r#"{{"metadata":{{"name":"j"{meta}}},"spec":{{{spec}}},"status":{{"conditions":[
                    {{"type":"{kind}","status":"True","lastTransitionTime":"2026-01-01T11:59:30Z"}}]}}}}"#
            );
            let job = Job::project(&json::parse(text.as_bytes()).unwrap().into()).unwrap();
            assert_eq!(plan(&job, now), expected, "{meta} {spec} {kind}");
        };

        let minute = r#""ttlSecondsAfterFinished":60"#;
        check("", "", "Complete", Plan::Keep);
        check("", minute, "Suspended", Plan::Keep);

        check("", minute, "Complete", Plan::Wait(Duration::from_secs(30)));
        check("", minute, "Failed", Plan::Wait(Duration::from_secs(30)));
        check(
            "",
            r#""ttlSecondsAfterFinished":30"#,
            "Complete",
            Plan::Delete,
        );

        check("", r#""ttlSecondsAfterFinished":0"#, "Failed", Plan::Delete);
        check(
            r#","deletionTimestamp":"2026-01-01T12:00:00Z""#,
            minute,
            "Complete",
            Plan::Keep,
        );
    }
}
