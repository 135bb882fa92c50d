//! CronJob: a job that runs on a schedule.

mod print;
mod time_zone;

use coracle_api::Path;
use coracle_api::cron::Schedule;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec};

use super::job;
use crate::Part;
use crate::apps::workload;
use crate::behaviour::Behaviour;
use crate::core::pod;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, text};

/// The controller appends a time to the name.
const LONGEST_NAME: usize = 52;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &CronJobs,
    printer: printer!(print::print_row),
    ..Behaviour::DEFAULT
};

struct CronJobs;

impl Strategy for CronJobs {
    type Object = CronJob;

    fn validate(&self, new: &View<'_, CronJob>, cx: &Context<'_>, errors: &mut Errors) {
        validate_spec(new, None, cx, errors);
        let name = new.tree.meta().name();
        if name.len() > LONGEST_NAME {
            let why = format!("must be no more than {LONGEST_NAME} characters");
            errors.push(FieldError::invalid_str(
                &Path::Root.field("metadata.name"),
                name,
                why,
            ));
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, CronJob>,
        old: &View<'_, CronJob>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Main {
            validate_spec(new, Some(&old.spec), cx, errors);
        }
    }

    fn warnings(
        &self,
        new: &View<'_, CronJob>,
        old: Option<&View<'_, CronJob>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        if cx.part != Part::Main {
            return Vec::new();
        }

        let spec = &new.spec;
        let mut warnings = Vec::new();
        if old.is_none() {
            warnings.extend(workload::name_warning(new.tree.meta().name()));
        }

        if old.is_none_or(|old| old.metadata.generation != new.metadata.generation)
            && let Some(job) = &spec.job_template.spec
        {
            warnings.extend(job::spec::warnings(job, &SPEC.field("jobTemplate.spec")));
        }

        if old.is_some() && spec.schedule.contains("TZ") {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }

        warnings
    }
}

fn validate_spec(
    new: &View<'_, CronJob>,
    old: Option<&CronJobSpec>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let spec = &new.spec;
    let at = SPEC.field("schedule");
    if spec.schedule.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        validate_schedule(spec, old, &at, errors);
    }

    let numbers = [("startingDeadlineSeconds", spec.starting_deadline_seconds)];
    workload::validate_not_negative(&SPEC, &numbers, errors);

    if let Some(zone) = &spec.time_zone
        && old.is_none_or(|old| old.time_zone.as_ref() != Some(zone))
    {
        for why in time_zone::time_zone(zone) {
            errors.push(FieldError::invalid_str(&SPEC.field("timeZone"), zone, why));
        }
    }

    let known = ["Allow", "Forbid", "Replace"];
    let place = SPEC.field("concurrencyPolicy");
    match text(&spec.concurrency_policy) {
        "" => errors.push(FieldError::required(&place, "")),
        policy if !known.contains(&policy) => {
            errors.push(FieldError::not_supported(&place, policy, &known))
        }
        _ => {}
    }

    validate_template(new, spec, old, cx, errors);

    let numbers = [
        (
            "successfulJobsHistoryLimit",
            spec.successful_jobs_history_limit.map(i64::from),
        ),
        (
            "failedJobsHistoryLimit",
            spec.failed_jobs_history_limit.map(i64::from),
        ),
    ];
    workload::validate_not_negative(&SPEC, &numbers, errors);
}

fn validate_schedule(
    spec: &CronJobSpec,
    old: Option<&CronJobSpec>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if let Err(why) = Schedule::parse(&spec.schedule, None) {
        errors.push(FieldError::invalid_str(at, &spec.schedule, why.to_string()));
    }

    // Earlier versions accepted time zones in schedules.
    let had_zone = old.is_some_and(|old| old.schedule.contains("TZ"));
    let why = match (had_zone, spec.schedule.contains("TZ")) {
        (true, true) if spec.time_zone.is_some() => {
            "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        }
        (false, true) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        _ => return,
    };
    errors.push(FieldError::invalid_str(at, &spec.schedule, why));
}

fn validate_template(
    new: &View<'_, CronJob>,
    spec: &CronJobSpec,
    old: Option<&CronJobSpec>,
    cx: &Context<'_>,
    errors: &mut Errors,
) {
    let before = old
        .and_then(|old| old.job_template.spec.as_ref())
        .map(|job| &job.template);
    let options = pod::Options::of_template(before, cx.cluster.allow_privileged());
    let nothing = Default::default();
    let job = spec.job_template.spec.as_ref().unwrap_or(&nothing);

    let at = SPEC.field("jobTemplate.spec");
    job::spec::validate(
        job,
        new.tree.at(&["spec", "jobTemplate", "spec"]),
        &at,
        &options,
        errors,
    );

    if let Some(selector) = &job.selector {
        let why = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(
            &at.field("selector"),
            internal::label_selector(selector),
            why,
        ));
    }

    if job.manual_selector == Some(true) {
        let mut error =
            FieldError::not_supported(&at.field("manualSelector"), "true", &["nil", "false"]);
        error.bad_value = Some("true".to_owned());
        errors.push(error);
    }
}
