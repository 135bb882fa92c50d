//! The cgroups of pods: one root, one cgroup per QoS class (Guaranteed pods are directly below the
//! root), one per pod.
//!
//! ```text
//! <root>/kubepods/pod<uid>              Guaranteed
//! <root>/kubepods/burstable/pod<uid>
//! <root>/kubepods/besteffort/pod<uid>
//! ```
//! The runtime creates the cgroups of containers below the pod's. The QoS cgroups get CPU shares in
//! proportion to the requests of their pods.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use coracle_cgroup::{Error, Group, Hierarchies, Limits};
use k8s_openapi::api::core::v1::Pod;

use crate::pod::PodView;
use crate::qos::Class;
use crate::requests::{limits, requests};
use crate::spec::resources::{period, quota, shares};
use crate::worker::chain;

/// The cgroups of one node's pods. Clones share state.
#[derive(Clone)]
pub(crate) struct PodGroups {
    hierarchies: Arc<Hierarchies>,
    root: String,
    /// Limit of processes and threads per pod; negative: the limit of all pods together.
    pids: i64,
    /// CPU shares of the burstable class as last written; 0: not written yet.
    shared: Arc<AtomicI64>,
}

impl PodGroups {
    /// Creates the root and the QoS cgroups below `root`; `together` limits all pods together.
    pub(crate) async fn open(
        hierarchies: &Hierarchies,
        root: &str,
        together: Limits,
        pids: i64,
    ) -> Result<PodGroups, Error> {
        let groups = PodGroups {
            hierarchies: Arc::new(hierarchies.clone()),
            root: tree_below(root),
            pids,
            shared: Arc::default(),
        };

        let made = groups.clone();
        blocking(move || {
            for class in [Class::Guaranteed, Class::Burstable, Class::BestEffort] {
                made.branch(class).create()?;
            }
            made.branch(Class::BestEffort).limit(&Limits {
                cpu_shares: Some(2),
                ..Limits::default()
            })?;
            made.limit_all(&together)
        })
        .await?;

        Ok(groups)
    }

    /// Limits all pods together. Running pods may already use more than a new limit: then the node
    /// continues without the limit.
    fn limit_all(&self, together: &Limits) -> Result<(), Error> {
        match self.branch(Class::Guaranteed).limit_as_possible(together) {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                let missing = Vec::from_iter(missing).join(", ");
                tracing::warn!(
                    missing,
                    "cannot enforce node allocatable: cgroup controllers are missing"
                );
            }
            Err(error) if error.is_busy() => {
                let error = chain(&error);
                tracing::warn!(
                    error,
                    "cannot enforce node allocatable: running pods exceed the limit"
                );
            }
            Err(error) => return Err(error),
        }

        Ok(())
    }

    /// The cgroup parent of a pod's containers.
    pub(crate) fn parent_of(&self, pod: &Pod) -> String {
        self.leaf(pod).path()
    }

    /// Creates the cgroup of a pod with its pod-level limits. The returned closure blocks.
    pub(crate) fn ensure(&self, pod: &Pod) -> impl FnOnce() -> Result<(), Error> + Send + 'static {
        let (leaf, limits) = (
            self.leaf(pod),
            Limits {
                pids: Some(self.pids),
                ..of_pod(pod)
            },
        );
        move || {
            leaf.create()?;
            leaf.limit(&limits)
        }
    }

    /// Kills remaining processes in a pod's cgroup, of whatever class, and removes it.
    pub(crate) async fn remove(&self, uid: &str) -> Result<(), Error> {
        let leaves = [Class::Guaranteed, Class::Burstable, Class::BestEffort]
            .map(|class| self.branch(class).child(&name_of(uid)));
        blocking(move || {
            for leaf in leaves
                .iter()
                .filter(|leaf| leaf.folders().iter().any(|folder| folder.exists()))
            {
                kill_all(leaf)?;
                leaf.remove()?;
            }
            Ok(())
        })
        .await
    }

    /// Sets the CPU shares of the burstable class to the sum of its pods' requests.
    pub(crate) async fn share(&self, pods: &[Arc<Pod>]) -> Result<(), Error> {
        let burstable = pods.iter().filter(|pod| Class::of(pod) == Class::Burstable);
        let asked: i64 = burstable
            .map(|pod| {
                requests(pod)
                    .get("cpu")
                    .map_or(0, coracle_api::quantity::Quantity::milli_value)
            })
            .sum();

        let shares = asked
            .saturating_mul(1024)
            .div_euclid(1000)
            .clamp(2, 262_144);

        if self.shared.load(Ordering::Relaxed) == shares {
            return Ok(());
        }

        let branch = self.branch(Class::Burstable);

        let limits = Limits {
            cpu_shares: u64::try_from(shares).ok(),
            ..Limits::default()
        };
        blocking(move || branch.limit(&limits)).await?;

        self.shared.store(shares, Ordering::Relaxed);

        Ok(())
    }

    /// The UIDs of all pods that have a cgroup.
    pub(crate) async fn pods(&self) -> Vec<String> {
        let branches = [Class::Guaranteed, Class::Burstable, Class::BestEffort]
            .map(|class| self.branch(class));
        blocking(move || {
            let folders = branches.iter().flat_map(Group::folders).collect::<Vec<_>>();
            let below = folders
                .iter()
                .filter_map(|folder| fs::read_dir(folder).ok())
                .flatten()
                .flatten();
            let names = below.filter_map(|entry| entry.file_name().into_string().ok());

            let mut uids: Vec<String> = names
                .filter_map(|name| name.strip_prefix("pod").map(str::to_owned))
                .collect();
            uids.sort();

            uids.dedup();

            uids
        })
        .await
    }

    fn branch(&self, class: Class) -> Group {
        let tree = self.hierarchies.group(&self.root);
        match class {
            Class::Guaranteed => tree,
            Class::Burstable => tree.child("burstable"),
            Class::BestEffort => tree.child("besteffort"),
        }
    }

    fn leaf(&self, pod: &Pod) -> Group {
        self.branch(Class::of(pod)).child(&name_of(pod.uid()))
    }
}

/// The cgroup of all pods.
pub(crate) fn tree_below(root: &str) -> String {
    format!("{}/kubepods", root.trim_end_matches('/'))
}

fn name_of(uid: &str) -> String {
    format!("pod{uid}")
}

/// The runtime has stopped the containers that it knows; kill what remains.
fn kill_all(leaf: &Group) -> Result<(), Error> {
    for folder in leaf.folders() {
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for name in folders.filter_map(|entry| entry.file_name().into_string().ok()) {
            leaf.child(&name).kill()?;
        }
    }
    leaf.kill()
}

fn of_pod(pod: &Pod) -> Limits {
    let (least, most) = (requests(pod), limits(pod));
    let cpu = least.get("cpu").or(most.get("cpu"));

    let quota = Some(quota(most.get("cpu"))).filter(|quota| *quota > 0);
    Limits {
        cpu_shares: u64::try_from(shares(cpu)).ok(),
        cpu_quota: quota,
        cpu_period: quota.and_then(|_| u64::try_from(period()).ok()),
        memory: most
            .get("memory")
            .map(coracle_api::quantity::Quantity::value)
            .filter(|bytes| *bytes > 0),
        ..Limits::default()
    }
}

/// Runs blocking work on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime shuts down, and the caller with it.
        Err(_) => std::future::pending().await,
    }
}
