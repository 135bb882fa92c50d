//! The row of a CronJob.

use coracle_api::time::Timestamp;
use k8s_openapi::api::batch::v1::CronJob;

use crate::print::Row;
use crate::print::cells::{
    NONE, age, count, name, selector, since, template_containers, true_or_false,
};

pub(super) fn print_row(job: &CronJob, now: Timestamp) -> Row {
    let spec = &job.spec;
    let status = job.status.as_ref();
    let jobs = spec.job_template.spec.as_ref();
    let (names, images) = template_containers(jobs.map(|jobs| &jobs.template));
    let last = status.and_then(|status| status.last_schedule_time.as_ref());

    row![
        name(&job.metadata),
        spec.schedule.as_str(),
        spec.time_zone.as_deref().unwrap_or(NONE),
        true_or_false(spec.suspend),
        count(
            status
                .iter()
                .flat_map(|status| status.active.iter().flatten())
                .count()
        ),
        last.map_or_else(|| NONE.to_string(), |last| since(Some(last), now)),
        age(&job.metadata, now),
        names,
        images,
        selector(jobs.and_then(|jobs| jobs.selector.as_ref()))
    ]
}
