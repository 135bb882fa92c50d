//! The Job controller: runs pods to completion, and counts each exactly once.
//!
//! `handlers` turns changes of Jobs and pods into keys; `plan` decides, using `ending` (is it
//! finished), `failure` (what a failed pod means), `backoff` (how long to wait) and `indexes`;
//! `act` creates and deletes pods, writes the status computed by `track`, and removes tracking
//! finalizers. `orphans` removes the finalizers of pods that no Job will count.

mod act;
pub mod backoff;
pub mod ending;
pub mod failure;
mod handlers;
pub mod indexes;
mod new_pod;
mod orphans;
pub mod plan;
#[cfg(test)]
mod tests;
pub mod track;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;
use coracle_client::queue::ExponentialLimiter;
use coracle_client::{Access, Informer, ObjectKey, Recorder, Resource, WorkQueue, World};

pub use act::ActError;
use backoff::Backoff;
pub use plan::{Observed, Plan};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::own_writes::OwnWrites;
use crate::pods::{PodControl, Unobserved};
use crate::views::{BY_CONTROLLER, Job, Pod, orphans_of};

/// The service account, and the component of events.
pub(crate) const ACCOUNT: &str = "job-controller";
/// The resource name under which own writes of Jobs are noted.
const JOBS: &str = "jobs";
/// Changes of pods are batched for this long.
const BATCH: Duration = Duration::from_secs(1);
/// The first retry delay after an error, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The controller.
pub struct Jobs {
    jobs: Informer<Job>,
    pods: Informer<Pod>,
    job_access: Access,
    control: PodControl,
    unobserved: Arc<Unobserved>,
    written: Arc<OwnWrites>,
    memory: Mutex<BTreeMap<ObjectKey, Memory>>,
    recorder: Recorder,
    world: World,
}

/// What is remembered of a Job besides its status.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// The UID: a new Job of the same name starts with none.
    uid: Text,
    backoff: Backoff,
    /// Pods without their finalizer: a cache that still shows it is stale.
    untracked: BTreeSet<Text>,
}

/// Runs the controller with `workers` workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue =
        WorkQueue::with_limiter("job", Box::new(ExponentialLimiter::new(PAUSES.0, PAUSES.1)));
    let mut feeds = Feeds::new();
    let controller = Jobs::new(context, &queue, &mut feeds);
    let counting = Runner::new(controller, queue, context).run(feeds, workers);
    tokio::join!(counting, orphans::run(context));
}

impl Jobs {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> Jobs {
        let jobs_of = Resource::builtin("batch", "v1", JOBS);
        let pods_of = Resource::builtin("", "v1", "pods");
        let jobs: Informer<Job> = context.informers.of(&jobs_of);
        let pods: Informer<Pod> = context.informers.of(&pods_of);
        pods.ensure_index(BY_CONTROLLER, Pod::by_controller);

        let unobserved = Arc::new(Unobserved::default());
        let written = Arc::new(OwnWrites::default());
        handlers::follow(feeds, &jobs, &pods, &unobserved, queue);
        let client = context.client(ACCOUNT);
        let job_access = client.resource(&jobs_of);

        let recorder = context.recorder.clone().component(ACCOUNT);
        let control = PodControl::new(
            job_access.clone(),
            client.resource(&pods_of),
            unobserved.clone(),
            written.clone(),
            recorder.clone(),
        );

        Jobs {
            jobs,
            pods,
            job_access,
            control,
            unobserved,
            written,
            memory: Mutex::new(BTreeMap::new()),
            recorder,
            world: context.world,
        }
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.memory.lock()
    }

    /// Reads or changes what is remembered of this Job.
    fn remembered<R>(&self, key: &ObjectKey, uid: &Text, with: impl FnOnce(&mut Memory) -> R) -> R {
        let mut all = self.memory();
        let memory = all.entry(key.clone()).or_default();
        if memory.uid != *uid {
            *memory = Memory {
                uid: uid.clone(),
                ..Memory::default()
            };
        }
        with(memory)
    }

    fn forget(&self, key: &ObjectKey) {
        self.written.forget(key);
        self.memory().remove(key);
    }
}

#[async_trait]
impl Controller for Jobs {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "job-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(job) = self.jobs.get(key) else {
            self.forget(key);
            return Observation::Absent;
        };

        if job.finished().is_some() {
            self.forget(key);
            return Observation::Absent;
        }

        if self.written.is_behind(
            key,
            &[(JOBS, self.jobs.version()), ("pods", self.pods.version())],
        ) {
            return Observation::Behind;
        }

        let settled = self.unobserved.expectations.satisfied(&job.uid);
        let own = [job.uid.to_string(), orphans_of(&key.namespace)];
        let pods: Vec<_> = own
            .iter()
            .flat_map(|value| {
                self.pods
                    .by_index(BY_CONTROLLER, value)
                    .expect("the index is created with the controller")
            })
            .collect();

        let memory = self.remembered(key, &job.uid, |memory| {
            // What the cache shows need not be remembered.
            memory
                .untracked
                .retain(|uid| pods.iter().any(|pod| pod.uid == *uid && pod.is_tracked));
            memory.clone()
        });

        let observed = Observed {
            pods,
            settled,
            untracked: memory.untracked,
            backoff: memory.backoff,
            job,
        };

        Observation::Present {
            uid: observed.job.uid.clone(),
            observed,
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
