//! The Job controller: runs pods to their end, and counts each exactly once.
//!
//! `hear` turns changes of Jobs and pods into keys; `plan` decides, with the help of `ending` (is
//! it over), `failure` (what a failed pod means), `backoff` (how long to wait) and `indexes`; `act`
//! makes and deletes pods, writes what `track` works out, and lets pods go. `orphans` lets go what
//! no Job will count any more.

mod act;
pub mod backoff;
pub mod ending;
pub mod failure;
mod hear;
pub mod indexes;
mod new_pod;
mod orphans;
pub mod plan;
#[cfg(test)]
mod tests;
pub mod track;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_client::queue::ExponentialLimiter;
use coracle_client::{Access, Informer, ObjectKey, Recorder, Resource, WorkQueue, World};

pub use act::ActError;
use backoff::Backoff;
pub use plan::{Observed, Plan};

use crate::frame::{Context, Controller, Feeds, Observation, Requeue, Shell};
use crate::own_writes::OwnWrites;
use crate::pods::{PodControl, Unseen};
use crate::views::{BY_CONTROLLER, Job, Pod, orphans_of};

/// The controller's account, and the component in its events.
const ACCOUNT: &str = "job-controller";
/// What own writes of Jobs are noted under.
const JOBS: &str = "jobs";
/// What happens to pods is looked at after this long, together with what happens meanwhile.
const BATCH: Duration = Duration::from_secs(1);
/// The first pause after a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The controller.
pub struct Jobs {
    jobs: Informer<Job>,
    pods: Informer<Pod>,
    job_access: Access,
    control: PodControl,
    unseen: Arc<Unseen>,
    written: Arc<OwnWrites>,
    memory: Mutex<BTreeMap<ObjectKey, Memory>>,
    recorder: Recorder,
    world: World,
}

/// What is remembered of a Job besides what its status says.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// Whose memory it is: one that follows under the same name starts with none.
    uid: Text,
    backoff: Backoff,
    /// Pods that were let go: a cache that still shows them as held is too old.
    let_go: BTreeSet<Text>,
}

/// Begins the controller, with so many workers. Never returns.
pub async fn run(context: &Context, workers: usize) {
    let queue =
        WorkQueue::with_limiter("job", Box::new(ExponentialLimiter::new(PAUSES.0, PAUSES.1)));
    let mut feeds = Feeds::new();
    let controller = Jobs::new(context, &queue, &mut feeds);
    let counting = Shell::new(controller, queue, context).run(feeds, workers);
    tokio::join!(counting, orphans::run(context));
}

impl Jobs {
    /// The controller, whose feeds fill `queue`.
    pub fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> Jobs {
        let jobs_of = Resource::builtin("batch", "v1", JOBS);
        let pods_of = Resource::builtin("", "v1", "pods");
        let jobs: Informer<Job> = context.informers.of(&jobs_of);
        let pods: Informer<Pod> = context.informers.of(&pods_of);
        pods.ensure_index(BY_CONTROLLER, Pod::by_controller);

        let unseen = Arc::new(Unseen::default());
        let written = Arc::new(OwnWrites::default());
        hear::follow(feeds, &jobs, &pods, &unseen, queue);
        let client = context.client(ACCOUNT);
        let job_access = client.resource(&jobs_of);

        let recorder = context.recorder.clone().component(ACCOUNT);
        let control = PodControl::new(
            job_access.clone(),
            client.resource(&pods_of),
            unseen.clone(),
            written.clone(),
            recorder.clone(),
        );

        Jobs {
            jobs,
            pods,
            job_access,
            control,
            unseen,
            written,
            memory: Mutex::new(BTreeMap::new()),
            recorder,
            world: context.world,
        }
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is remembered of this very Job, looked at or changed.
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
            return Observation::Gone;
        };

        if job.finished().is_some() {
            self.forget(key);
            return Observation::Gone;
        }

        if self.written.is_behind(
            key,
            &[(JOBS, self.jobs.version()), ("pods", self.pods.version())],
        ) {
            return Observation::Behind;
        }

        let settled = self.unseen.expectations.satisfied(&job.uid);
        let own = [job.uid.to_string(), orphans_of(&key.namespace)];
        let pods: Vec<_> = own
            .iter()
            .flat_map(|value| {
                self.pods
                    .by_index(BY_CONTROLLER, value)
                    .expect("the index was made with the controller")
            })
            .collect();

        let memory = self.remembered(key, &job.uid, |memory| {
            // What the cache shows need not be remembered.
            memory
                .let_go
                .retain(|uid| pods.iter().any(|pod| pod.uid == *uid && pod.is_tracked));
            memory.clone()
        });

        let observed = Observed {
            pods,
            settled,
            let_go: memory.let_go,
            backoff: memory.backoff,
            job,
        };

        Observation::Seen {
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
