//! Carries out the plan.

use coracle_api::cron::in_zone;
use coracle_api::time::Time;
use coracle_api::{Map, Value};
use coracle_client::{DeleteOptions, Error, ObjectKey, Propagation, ownership};

use super::plan::{NewJob, Observed, Plan, active, set_active};
use super::{CRONS, CronJobs, JOBS};
use crate::framework::Requeue;
use crate::pods::Owner;
use crate::write_status::with_status;

/// The annotation with the scheduled time of a Job.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("cannot read job {0}")]
    Get(String, #[source] Error),
    #[error("cannot replace job {0}")]
    Replace(String, #[source] Error),
    #[error("cannot create job {0}")]
    Create(String, #[source] Error),
    #[error("cannot update status")]
    Status(#[source] Error),
}

impl CronJobs {
    pub(super) async fn carry_out(
        &self,
        key: &ObjectKey,
        observed: &Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let owner = Owner::named(&observed.cron.object.object, "batch/v1", "CronJob");
        let mut status = plan.status;
        for job in &plan.forget {
            // Jobs that cannot be deleted now are retried with the next event.
            if let Ok(()) = self.delete(&owner, &job.key.name, &job.uid).await {
                remove_active(&mut status, &job.uid);
            }
        }

        for event in &plan.events {
            match event.is_normal {
                true => self
                    .recorder
                    .normal(&owner.about, event.reason, event.message.clone()),
                false => self
                    .recorder
                    .warning(&owner.about, event.reason, event.message.clone()),
            }
        }

        self.verify_missing(&owner, &plan.missing, &mut status)
            .await?;
        let begun = match &plan.create {
            Some(job) => self.create(&owner, observed, job, &mut status).await,
            None => Ok(()),
        };

        if observed.cron.status() != Some(&status) {
            let crons = self
                .cron_access
                .clone()
                .namespace(&key.namespace)
                .subresource("status");

            match crons
                .update(&with_status(&observed.cron.object.object, &status))
                .await
            {
                Ok(written) => self.written.note(key, CRONS, &written),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(ActError::Status(error)),
            }
        }

        begun?;

        Ok(plan.wake_after.map_or(Requeue::OnEvent, Requeue::After))
    }

    /// Removes Jobs from the active list that do not exist on the server either.
    async fn verify_missing(
        &self,
        owner: &Owner,
        missing: &[Map],
        status: &mut Map,
    ) -> Result<(), ActError> {
        let jobs = self.job_access.clone().namespace(&owner.key.namespace);
        for one in missing {
            let name = one.text("name");
            let found = jobs
                .find(name)
                .await
                .map_err(|error| ActError::Get(name.to_string(), error))?;

            if found.is_none() {
                let text = format!("Active job went missing: {name}");
                self.recorder.normal(&owner.about, "MissingJob", text);
                remove_active(status, one.text("uid"));
            }
        }

        Ok(())
    }

    async fn create(
        &self,
        owner: &Owner,
        observed: &Observed,
        planned: &NewJob,
        status: &mut Map,
    ) -> Result<(), ActError> {
        for (name, uid) in &planned.instead_of {
            self.delete(owner, name, uid)
                .await
                .map_err(|error| ActError::Replace(name.to_string(), error))?;
            remove_active(status, uid);
        }

        let jobs = self.job_access.clone().namespace(&owner.key.namespace);
        let failed = |error| ActError::Create(planned.name.clone(), error);
        let job = match jobs.create(&new_job(owner, observed, planned)).await {
            Ok(job) => {
                self.written.note(&owner.key, JOBS, &job);
                let text = format!("Created job {}", planned.name);
                self.recorder.normal(&owner.about, "SuccessfulCreate", text);
                job
            }
            // It was created and the process died before the status was written; or it belongs to
            // another owner.
            Err(error) if error.is_already_exists() => {
                let job = jobs.get(&planned.name).await.map_err(failed)?;
                let owned = ownership::Controller::of(job.meta());
                if owned.is_none_or(|owned| owned.uid != owner.controller.uid) {
                    return Ok(());
                }
                job
            }
            Err(error) if error.has_cause("NamespaceTerminating") => return Ok(()),
            Err(error) => {
                let text = format!("Error creating job: {error}");
                self.recorder.warning(&owner.about, "FailedCreate", text);
                return Err(failed(error));
            }
        };

        let mut listed = active(status);
        listed.push(reference(&job));
        set_active(status, listed);
        status.insert("lastScheduleTime", Time(planned.at).text());

        Ok(())
    }

    async fn delete(&self, owner: &Owner, name: &str, uid: &str) -> Result<(), Error> {
        let jobs = self.job_access.clone().namespace(&owner.key.namespace);
        let with_pods = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::only(uid)
        };

        match jobs.delete(name, &with_pods).await {
            Ok(_) => {
                self.recorder.normal(
                    &owner.about,
                    "SuccessfulDelete",
                    format!("Deleted job {name}"),
                );
                Ok(())
            }
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => {
                self.recorder.warning(
                    &owner.about,
                    "FailedDelete",
                    format!("Deleted job: {error}"),
                );
                Err(error)
            }
        }
    }
}

fn remove_active(status: &mut Map, uid: &str) {
    let mut listed = active(status);
    listed.retain(|one| one.text("uid") != uid);
    if listed != active(status) {
        set_active(status, listed);
    }
}

/// The reference to a Job in the status.
fn reference(job: &Value) -> Map {
    let meta = job.meta();
    let mut reference = Map::new();
    reference.insert("apiVersion", "batch/v1");
    reference.insert("kind", "Job");
    reference.insert("namespace", meta.namespace());
    reference.insert("name", meta.name());
    reference.insert("uid", meta.uid());
    reference.insert("resourceVersion", meta.resource_version());
    reference
}

/// Builds the Job for a scheduled time.
fn new_job(owner: &Owner, observed: &Observed, planned: &NewJob) -> Value {
    let template = observed.cron.job_template().cloned().unwrap_or_default();
    let mut job = Map::new();
    job.insert("apiVersion", "batch/v1");
    job.insert("kind", "Job");
    job.insert("spec", template.get("spec").cloned().unwrap_or_default());

    let mut job = Value::Object(job);
    let mut meta = job.meta_mut();
    meta.set_name(&planned.name);
    meta.set_namespace(&owner.key.namespace);
    meta.set_labels(template.meta().labels().cloned().unwrap_or_default());
    meta.set_annotations(template.meta().annotations().cloned().unwrap_or_default());
    let zone = observed.cron.time_zone().unwrap_or("UTC");
    meta.set_annotation(SCHEDULED, in_zone(planned.at, zone).as_deref());
    meta.set_owner_references([owner.controller.reference()]);

    job
}
