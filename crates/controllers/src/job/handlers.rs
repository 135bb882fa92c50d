//! Maps changes to Jobs.

use std::sync::Arc;

use coracle_client::{Change, Informer, ObjectKey, WorkQueue};

use super::BATCH;
use crate::framework::Feeds;
use crate::pods::{Unobserved, follow_pods};
use crate::views::{Job, Pod};

pub(super) fn follow(
    feeds: &mut Feeds,
    jobs: &Informer<Job>,
    pods: &Informer<Pod>,
    unobserved: &Arc<Unobserved>,
    queue: &WorkQueue<ObjectKey>,
) {
    let (woken, forgetting) = (queue.clone(), unobserved.clone());
    feeds.follow(jobs, move |change| match change {
        Change::Added { object, .. } => woken.add(object.key.clone()),
        Change::Updated { old, new } => {
            let generation = |job: &Job| job.object.meta().generation();
            match generation(old) == generation(new) {
                // Mostly its own status write, which is not urgent.
                true => woken.add_after(new.key.clone(), BATCH),
                false => woken.add(new.key.clone()),
            }
        }
        Change::Deleted { object, .. } => {
            forgetting.forget(&object.uid);
            woken.add(object.key.clone());
        }
        Change::Synced => {}
    });

    let woken = queue.clone();
    follow_pods(feeds, jobs, pods, unobserved, move |key| {
        woken.add_after(key.clone(), BATCH)
    });
}
