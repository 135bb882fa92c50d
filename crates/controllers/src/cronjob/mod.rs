//! The CronJob controller: creates Jobs on schedule.
//!
//! Changes of CronJobs and of the Jobs they control become keys; `plan` decides, using `times`;
//! `act` creates and deletes Jobs and writes the status.

mod act;
pub mod plan;
#[cfg(test)]
mod tests;
mod times;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_client::ownership;
use coracle_client::{Access, Change, Informer, ObjectKey, Recorder, Resource, WorkQueue};

pub use act::ActError;
pub use plan::{Observed, Plan};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::own_writes::OwnWrites;
use crate::views::{BY_CONTROLLER, CronJob, Job};

/// The service account, and the component of events.
pub(crate) const ACCOUNT: &str = "cronjob-controller";
/// The resource name under which own writes are noted.
const CRONS: &str = "cronjobs";
const JOBS: &str = "jobs";

/// The controller.
pub struct CronJobs {
    crons: Informer<CronJob>,
    jobs: Informer<Job>,
    cron_access: Access,
    job_access: Access,
    written: OwnWrites,
    recorder: Recorder,
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("cronjob");
    let mut feeds = Feeds::new();
    let controller = CronJobs::new(context, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

impl CronJobs {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> CronJobs {
        let (crons_of, jobs_of) = (
            Resource::builtin("batch", "v1", CRONS),
            Resource::builtin("batch", "v1", JOBS),
        );
        let crons: Informer<CronJob> = context.informers.of(&crons_of);

        let jobs: Informer<Job> = context.informers.of(&jobs_of);
        jobs.ensure_index(BY_CONTROLLER, Job::by_controller);
        let woken = queue.clone();
        feeds.follow(&crons, move |change| {
            if let Some(cron) = change.object() {
                woken.add(cron.key.clone());
            }
        });

        let (all, woken) = (crons.clone(), queue.clone());
        let wake = move |namespace: &str, owner: Option<&ownership::Controller>| {
            let Some(owner) = owner.filter(|owner| owner.kind == "CronJob") else {
                return;
            };
            let key = ObjectKey::new(namespace, &owner.name);
            if all.get(&key).is_some_and(|cron| cron.uid == owner.uid) {
                woken.add(key);
            }
        };

        feeds.follow(&jobs, move |change| {
            if let Change::Updated { old, new } = change
                && old.controller != new.controller
            {
                wake(&old.key.namespace, old.controller.as_ref());
            }
            if let Some(job) = change.object() {
                wake(&job.key.namespace, job.controller.as_ref());
            }
        });

        let client = context.client(ACCOUNT);
        CronJobs {
            crons,
            jobs,
            cron_access: client.resource(&crons_of),
            job_access: client.resource(&jobs_of),
            written: OwnWrites::default(),
            recorder: context.recorder.clone().component(ACCOUNT),
        }
    }
}

#[async_trait]
impl Controller for CronJobs {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "cronjob-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(cron) = self.crons.get(key) else {
            self.written.forget(key);
            return Observation::Absent;
        };

        if self.written.is_behind(
            key,
            &[(CRONS, self.crons.version()), (JOBS, self.jobs.version())],
        ) {
            return Observation::Behind;
        }

        let jobs = self.jobs.by_index(BY_CONTROLLER, &cron.uid);
        let jobs = jobs.expect("the index is created with the controller");

        Observation::Present {
            uid: cron.uid.clone(),
            observed: Observed { cron, jobs },
        }
    }

    fn plan(observed: &Observed, now: Timestamp) -> Plan {
        plan::plan(observed, now)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        self.carry_out(key, &observed, plan).await
    }
}
