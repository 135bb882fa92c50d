//! The row of a Job.

use coracle_api::time::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};

use crate::print::Row;
use crate::print::cells::{age, moment, name, selector, template_containers};

pub(super) fn print_row(job: &Job, now: Timestamp) -> Row {
    let spec = job.spec.as_ref();
    let (names, images) = template_containers(spec.map(|spec| &spec.template));
    row![
        name(&job.metadata),
        status(job),
        completions(spec, job.status.as_ref()),
        duration(job.status.as_ref(), now),
        age(&job.metadata, now),
        names,
        images,
        selector(spec.and_then(|spec| spec.selector.as_ref()))
    ]
}

fn status(job: &Job) -> &'static str {
    let holds = |kind: &str| {
        let mut conditions = job
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        conditions
            .find(|condition| condition.type_ == kind)
            .is_some_and(|found| found.status == "True")
    };

    if holds("Complete") {
        "Complete"
    } else if holds("Failed") {
        "Failed"
    } else if job.metadata.deletion_timestamp.is_some() {
        "Terminating"
    } else {
        ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
            .into_iter()
            .find(|kind| holds(kind))
            .unwrap_or("Running")
    }
}

/// `2/5`; where any one success completes the job, `1/1 of 3` has the parallelism.
fn completions(spec: Option<&JobSpec>, status: Option<&JobStatus>) -> String {
    let succeeded = status
        .and_then(|status| status.succeeded)
        .unwrap_or_default();
    let parallelism = spec.and_then(|spec| spec.parallelism).unwrap_or_default();
    match spec.and_then(|spec| spec.completions) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

/// How long it took, or has taken so far; empty before it starts.
fn duration(status: Option<&JobStatus>, now: Timestamp) -> String {
    let Some(start) = status.and_then(|status| status.start_time.as_ref()) else {
        return String::new();
    };
    let end = status.and_then(|status| status.completion_time.as_ref());
    let end = end.map_or(now, |end| moment(&end.0));
    end.since(moment(&start.0)).human().to_string()
}
