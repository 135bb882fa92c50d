//! The TTL-after-finished controller: deletes finished Jobs when their TTL has expired.

pub mod plan;

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::typed::TypedError;
use coracle_client::{
    Access, Cached, Change, DeleteOptions, Error, Informer, ObjectKey, Propagation, Resource,
    WorkQueue, World,
};

pub use plan::Plan;

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::Job;
use coracle_client::Projection;

/// The service account.
pub(crate) const ACCOUNT: &str = "ttl-after-finished-controller";

/// The controller.
pub struct FinishedJobs {
    jobs: Informer<Job>,
    access: Access,
    world: World,
}

/// Why a Job could not be deleted.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("cannot read job")]
    Get(#[source] Error),
    #[error("cannot decode job")]
    Read(#[source] TypedError),
    #[error("cannot delete job")]
    Delete(#[source] Error),
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue = WorkQueue::new("ttl_jobs_to_delete");
    let mut feeds = Feeds::new();
    let jobs_of = Resource::builtin("batch", "v1", "jobs");
    let jobs: Informer<Job> = context.informers.of(&jobs_of);

    let woken = queue.clone();
    feeds.follow(&jobs, move |change| match change {
        Change::Added { object: job, .. } | Change::Updated { new: job, .. }
            if job.finished().is_some() && job.seconds_to_live().is_some() =>
        {
            woken.add(job.key.clone());
        }
        _ => {}
    });

    let access = context.client(ACCOUNT).resource(&jobs_of);
    let controller = FinishedJobs {
        jobs,
        access,
        world: context.world,
    };

    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

#[async_trait]
impl Controller for FinishedJobs {
    type Key = ObjectKey;
    type Observed = Arc<Cached<Job>>;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "ttl-after-finished-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Arc<Cached<Job>>> {
        match self.jobs.get(key) {
            Some(job) => Observation::Present {
                uid: job.uid.clone(),
                observed: job,
            },
            None => Observation::Absent,
        }
    }

    fn plan(job: &Arc<Cached<Job>>, now: Timestamp) -> Plan {
        plan::plan(job, now)
    }

    async fn act(
        &self,
        key: &ObjectKey,
        job: Arc<Cached<Job>>,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        match plan {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Wait(left) => return Ok(Requeue::After(left)),
            Plan::Delete => {}
        }

        // The TTL may just have been extended: only the server knows.
        let jobs = self.access.clone().namespace(&key.namespace);
        let live = match jobs.find(&key.name).await.map_err(ActError::Get)? {
            Some(live) if live.meta().uid() == job.uid.as_str() => live,
            _ => return Ok(Requeue::OnEvent),
        };

        let fresh = Job::project(&live.into()).map_err(ActError::Read)?;
        match plan::plan(&fresh, self.world.now()) {
            Plan::Keep => return Ok(Requeue::OnEvent),
            Plan::Wait(left) => return Ok(Requeue::After(left)),
            Plan::Delete => {}
        }

        let options = DeleteOptions {
            propagation: Some(Propagation::Foreground),
            ..DeleteOptions::only(&job.uid)
        };

        match jobs.delete(&key.name, &options).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => {
                Err(ActError::Delete(error))
            }
            _ => Ok(Requeue::OnEvent),
        }
    }
}
