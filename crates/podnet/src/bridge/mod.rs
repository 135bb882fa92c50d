//! The built-in network: a bridge on the node, one port of it per pod.
//!
//! One thread does everything, in the order in which it was asked: the kernel lets only one change
//! its network configuration at a time anyway, and so the ledger and the pools need no lock. What
//! waits at the same time is done together (`jobs`), because the rules for ports of the host are
//! replaced as a whole. The network is that of the namespace in which [`Bridge::open`] was called.

mod jobs;
mod wiring;
mod worker;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use ipnet::IpNet;
use tokio::sync::{mpsc, oneshot};

use crate::{Attachment, Error, NotReady, Pod, PodNetwork};
use jobs::Job;
use worker::Worker;

/// What an instance's bridge is.
#[derive(Clone, Debug)]
pub struct BridgeConfig {
    /// The bridge's name, at most 15 characters. Instances on one node have different ones.
    pub name: String,
    /// The table of the packet filter that holds the host ports of this instance.
    pub table: String,
    /// Where the records of addresses are kept. It may be a folder that a reboot empties: no pod
    /// survives one.
    pub state: PathBuf,
    /// The ranges for pods: one, or one of each family, the primary first. None yet: see
    /// [`Bridge::set_ranges`].
    pub ranges: Vec<IpNet>,
    /// The largest packet; none is that of the interface with the default route.
    pub mtu: Option<u32>,
    /// Pods that speak to anybody outside of these appear with the node's address. Empty: they
    /// never do.
    pub masquerade_outside: Vec<IpNet>,
    /// Ranges that no interface has, because rules lead their addresses elsewhere (those of
    /// Services). The node itself has a way to them through the bridge: without one, where there is
    /// no default route, it would not even try.
    pub led_by_rules: Vec<IpNet>,
}

/// The built-in network of one instance.
pub struct Bridge {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    ranges: Arc<Mutex<Vec<IpNet>>>,
}

/// How many pods may wait for the thread before further ones wait for room.
const WAITING: usize = 64;

impl Bridge {
    /// Finds the records again; makes the bridge if the ranges are known.
    pub async fn open(config: BridgeConfig) -> Result<Self, Error> {
        let (jobs, mut incoming) = mpsc::channel::<Job>(WAITING);
        let (tell, told) = oneshot::channel();
        let known = config.ranges.clone();

        // A thread begins in the namespace of the one that made it.
        let thread = std::thread::Builder::new()
            .name("podnet".to_owned())
            .spawn(move || {
                let mut worker = match Worker::open(config) {
                    Ok(worker) => worker,
                    Err(error) => return drop(tell.send(Err(error))),
                };
                drop(tell.send(Ok(())));
                jobs::serve(&mut worker, &mut incoming);
            });
        let thread = thread.map_err(Error::Thread)?;

        told.await.map_err(|_| Error::Stopped)??;

        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            ranges: Arc::new(Mutex::new(known)),
        })
    }

    /// The ranges that the cluster has given this node. Pods that are connected keep what they
    /// have.
    pub async fn set_ranges(&self, ranges: Vec<IpNet>) -> Result<(), Error> {
        let known = Arc::clone(&self.ranges);
        self.ask(move |worker| {
            worker.set_ranges(&ranges)?;
            *known.lock().unwrap_or_else(PoisonError::into_inner) = ranges;
            Ok(())
        })
        .await
    }

    /// Takes back what sandboxes hold that are not among the live ones: after a crash, at start.
    pub async fn reclaim(&self, live: BTreeSet<String>) -> Result<(), Error> {
        self.ask(move |worker| worker.reclaim(&live)).await
    }

    /// Deletes the bridge, the table and all records: the instance is being removed from the node.
    pub async fn tear_down(&self) -> Result<(), Error> {
        self.ask(Worker::tear_down).await
    }

    /// # Cancellation
    /// What was asked for is done to its end, also if nobody waits for it any more.
    async fn ask<T: Send + 'static>(
        &self,
        deed: impl FnOnce(&mut Worker) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.send(|tell| Job::Deed(Box::new(move |worker| drop(tell.send(deed(worker))))))
            .await
    }

    async fn send<T>(&self, job: impl FnOnce(jobs::Answer<T>) -> Job) -> Result<T, Error> {
        let (tell, told) = oneshot::channel();
        let jobs = self
            .jobs
            .as_ref()
            .expect("the channel is closed only when the bridge is dropped");
        jobs.send(job(tell)).await.map_err(|_| Error::Stopped)?;
        told.await.map_err(|_| Error::Stopped)?
    }
}

#[async_trait]
impl PodNetwork for Bridge {
    fn ready(&self) -> Result<(), NotReady> {
        let known = !self
            .ranges
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty();
        known.then_some(()).ok_or_else(|| NotReady {
            reason: "NetworkPluginNotReady".to_owned(),
            message:
                "Network plugin returns error: cni plugin not initialized: this node has no pod CIDR yet"
                    .to_owned(),
        })
    }

    async fn learn_ranges(&self, ranges: Vec<IpNet>) -> Result<(), Error> {
        self.set_ranges(ranges).await
    }

    async fn attach(&self, pod: &Pod) -> Result<Attachment, Error> {
        self.send(|tell| Job::Attach(pod.clone(), tell)).await
    }

    async fn detach(&self, pod: &Pod) -> Result<(), Error> {
        self.send(|tell| Job::Detach(pod.sandbox.clone(), tell))
            .await
    }
}

impl Drop for Bridge {
    /// The thread ends what it is at; the bridge and the pods' connections stay.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the pod network panicked");
        }
    }
}
