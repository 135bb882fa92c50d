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

use coracle_base::error_chain;
use coracle_cgroup::{Error, Group, Hierarchies, Limits};
use k8s_openapi::api::core::v1::Pod;

use crate::pod::PodView;
use crate::qos::Class;
use crate::requests::{limits, requests};
use crate::spec::resources::{period, quota, shares};

/// The cgroups of one node's pods. Clones share state.
#[derive(Clone)]
pub(crate) struct PodCgroups {
    hierarchies: Arc<Hierarchies>,
    root: String,
    /// Limit of processes and threads per pod; negative: the limit of all pods together.
    pids: i64,
    /// CPU shares of the burstable class as last written; 0: not written yet.
    shared: Arc<AtomicI64>,
}

impl PodCgroups {
    /// Creates the root and the QoS cgroups below `root`; `together` limits all pods together.
    pub(crate) async fn open(
        hierarchies: &Hierarchies,
        root: &str,
        together: Limits,
        pids: i64,
    ) -> Result<PodCgroups, Error> {
        let cgroups = PodCgroups {
            hierarchies: Arc::new(hierarchies.clone()),
            root: pods_cgroup(root),
            pids,
            shared: Arc::default(),
        };

        let made = cgroups.clone();
        blocking(move || {
            for class in [Class::Guaranteed, Class::Burstable, Class::BestEffort] {
                made.qos_cgroup(class).create()?;
            }
            made.qos_cgroup(Class::BestEffort).limit(&Limits {
                cpu_shares: Some(2),
                ..Limits::default()
            })?;
            made.limit_all(&together)
        })
        .await?;

        Ok(cgroups)
    }

    /// Limits all pods together. Running pods may already use more than a new limit: then the node
    /// continues without the limit.
    fn limit_all(&self, together: &Limits) -> Result<(), Error> {
        match self
            .qos_cgroup(Class::Guaranteed)
            .limit_as_possible(together)
        {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                let missing = Vec::from_iter(missing).join(", ");
                tracing::warn!(
                    missing,
                    "cannot enforce node allocatable: cgroup controllers are missing"
                );
            }
            Err(error) if error.is_busy() => {
                let error = error_chain(&error);
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
        self.pod_cgroup(pod).path()
    }

    /// Creates the cgroup of a pod with its pod-level limits. The returned closure blocks.
    pub(crate) fn ensure(&self, pod: &Pod) -> impl FnOnce() -> Result<(), Error> + Send + 'static {
        let (pod_cgroup, limits) = (
            self.pod_cgroup(pod),
            Limits {
                pids: Some(self.pids),
                ..of_pod(pod)
            },
        );
        move || {
            pod_cgroup.create()?;
            pod_cgroup.limit(&limits)
        }
    }

    /// Kills remaining processes in a pod's cgroup, of whatever class, and removes it.
    pub(crate) async fn remove(&self, uid: &str) -> Result<(), Error> {
        let pod_cgroups = [Class::Guaranteed, Class::Burstable, Class::BestEffort]
            .map(|class| self.qos_cgroup(class).child(&name_of(uid)));
        blocking(move || {
            for pod_cgroup in pod_cgroups.iter().filter(|pod_cgroup| {
                pod_cgroup
                    .folders()
                    .iter()
                    .any(|directory| directory.exists())
            }) {
                kill_all(pod_cgroup)?;
                pod_cgroup.remove()?;
            }
            Ok(())
        })
        .await
    }

    /// Sets the CPU shares of the burstable class to the sum of its pods' requests.
    pub(crate) async fn update_cpu_shares(&self, pods: &[Arc<Pod>]) -> Result<(), Error> {
        let burstable = pods.iter().filter(|pod| Class::of(pod) == Class::Burstable);
        let requested: i64 = burstable
            .map(|pod| {
                requests(pod)
                    .get("cpu")
                    .map_or(0, coracle_api::quantity::Quantity::milli_value)
            })
            .sum();

        let shares = requested
            .saturating_mul(1024)
            .div_euclid(1000)
            .clamp(2, 262_144);

        if self.shared.load(Ordering::Relaxed) == shares {
            return Ok(());
        }

        let qos_cgroup = self.qos_cgroup(Class::Burstable);

        let limits = Limits {
            cpu_shares: u64::try_from(shares).ok(),
            ..Limits::default()
        };
        blocking(move || qos_cgroup.limit(&limits)).await?;

        self.shared.store(shares, Ordering::Relaxed);

        Ok(())
    }

    /// The UIDs of all pods that have a cgroup.
    pub(crate) async fn pods(&self) -> Vec<String> {
        let branches = [Class::Guaranteed, Class::Burstable, Class::BestEffort]
            .map(|class| self.qos_cgroup(class));
        blocking(move || {
            let folders = branches.iter().flat_map(Group::folders).collect::<Vec<_>>();
            let below = folders
                .iter()
                .filter_map(|directory| fs::read_dir(directory).ok())
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

    fn qos_cgroup(&self, class: Class) -> Group {
        let tree = self.hierarchies.group(&self.root);
        match class {
            Class::Guaranteed => tree,
            Class::Burstable => tree.child("burstable"),
            Class::BestEffort => tree.child("besteffort"),
        }
    }

    fn pod_cgroup(&self, pod: &Pod) -> Group {
        self.qos_cgroup(Class::of(pod)).child(&name_of(pod.uid()))
    }
}

/// The cgroup of all pods.
pub(crate) fn pods_cgroup(root: &str) -> String {
    format!("{}/kubepods", root.trim_end_matches('/'))
}

fn name_of(uid: &str) -> String {
    format!("pod{uid}")
}

/// The runtime has stopped the containers that it knows; kill what remains.
fn kill_all(pod_cgroup: &Group) -> Result<(), Error> {
    for directory in pod_cgroup.folders() {
        let below = fs::read_dir(directory).into_iter().flatten().flatten();
        let folders = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        for name in folders.filter_map(|entry| entry.file_name().into_string().ok()) {
            pod_cgroup.child(&name).kill()?;
        }
    }
    pod_cgroup.kill()
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
