//! The built-in network: a bridge on the node with one port per pod.
//!
//! One thread does everything in order: the kernel serializes changes of the network configuration
//! anyway, and the ledger and the pools need no lock. Queued jobs are batched (`jobs`), because
//! host port rules are replaced as a whole. The network is in the namespace in which
//! [`Bridge::open`] was called.

mod jobs;
mod wiring;
mod worker;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use coracle_base::sync::Mutex;
use coracle_netlink::nftables::Watch;
use ipnet::IpNet;
use tokio::sync::{mpsc, oneshot};

use crate::{Attachment, Error, NotReady, Pod, PodNetwork, host_ports};
use jobs::Job;
use worker::Worker;

/// The configuration of an instance's bridge.
#[derive(Clone, Debug)]
pub struct BridgeConfig {
    /// The bridge's name, at most 15 characters. Different for each instance on a node.
    pub name: String,
    /// The nftables table of this instance.
    pub table: String,
    /// Directory of address records. It need not survive a reboot, as no pod does.
    pub state: PathBuf,
    /// Pod CIDRs: one, or one per family, the primary first. Empty: not known yet, see
    /// [`Bridge::set_ranges`].
    pub ranges: Vec<IpNet>,
    /// The MTU; none: that of the interface with the default route.
    pub mtu: Option<u32>,
    /// Traffic of pods to destinations outside of these is masqueraded. Empty: never.
    pub masquerade_outside: Vec<IpNet>,
    /// Ranges that no interface has because nftables rules redirect them (Service CIDRs). The node
    /// gets a route to them through the bridge: without a default route, it could not send to them
    /// at all.
    pub service_ranges: Vec<IpNet>,
}

/// The built-in network of one instance.
pub struct Bridge {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    ranges: Arc<Mutex<Vec<IpNet>>>,
}

/// Bound of the job queue.
const QUEUED: usize = 64;

impl Bridge {
    /// Loads the records; creates the bridge if the ranges are known.
    pub async fn open(config: BridgeConfig) -> Result<Self, Error> {
        let (jobs, mut incoming) = mpsc::channel::<Job>(QUEUED);
        let (reply, result) = oneshot::channel();
        let known = config.ranges.clone();

        // A thread inherits the namespace of its creator.
        let thread = std::thread::Builder::new()
            .name("podnet".to_owned())
            .spawn(move || {
                let runtime = match tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                {
                    Ok(runtime) => runtime,
                    Err(error) => return drop(reply.send(Err(Error::Thread(error)))),
                };

                runtime.block_on(async {
                    let watch = watch(&config.table);
                    let mut worker = match Worker::open(config) {
                        Ok(worker) => worker,
                        Err(error) => return drop(reply.send(Err(error))),
                    };
                    drop(reply.send(Ok(())));
                    jobs::serve(&mut worker, watch.as_ref(), &mut incoming).await;
                });
            });
        let thread = thread.map_err(Error::Thread)?;

        result.await.map_err(|_| Error::Stopped)??;

        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            ranges: Arc::new(Mutex::new(known)),
        })
    }

    /// Sets the pod CIDRs of this node. Connected pods keep their addresses.
    pub async fn set_ranges(&self, ranges: Vec<IpNet>) -> Result<(), Error> {
        let known = Arc::clone(&self.ranges);
        self.run(move |worker| {
            worker.set_ranges(&ranges)?;
            *known.lock() = ranges;
            Ok(())
        })
        .await
    }

    /// Sets the MTU of the bridge, of the pods that are connected and of those to come.
    pub async fn set_mtu(&self, mtu: u32) -> Result<(), Error> {
        self.run(move |worker| worker.set_mtu(mtu)).await
    }

    /// Releases what sandboxes hold that are not in `live`: at start, after a crash.
    pub async fn reclaim(&self, live: BTreeSet<String>) -> Result<(), Error> {
        self.run(move |worker| worker.reclaim(&live)).await
    }

    /// Deletes the bridge, the table and all records, when the instance is removed from the node.
    pub async fn tear_down(&self) -> Result<(), Error> {
        self.run(Worker::tear_down).await
    }

    /// # Cancellation
    /// The operation is completed even if the caller no longer waits.
    async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&mut Worker) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.send(|reply| Job::Run(Box::new(move |worker| drop(reply.send(operation(worker))))))
            .await
    }

    async fn send<T>(&self, job: impl FnOnce(jobs::Reply<T>) -> Job) -> Result<T, Error> {
        let (reply, result) = oneshot::channel();
        let jobs = self
            .jobs
            .as_ref()
            .expect("the channel is closed only when the bridge is dropped");
        jobs.send(job(reply)).await.map_err(|_| Error::Stopped)?;
        result.await.map_err(|_| Error::Stopped)?
    }
}

/// Optional: only needed if another process deletes the table.
fn watch(table: &str) -> Option<Watch> {
    let watch = Watch::open(vec![host_ports::table(table)]);
    watch
        .map_err(|error| tracing::warn!(%error, "cannot watch nftables; deletion of the host port rules by other processes will not be detected"))
        .ok()
}

#[async_trait]
impl PodNetwork for Bridge {
    fn ready(&self) -> Result<(), NotReady> {
        let known = !self.ranges.lock().is_empty();
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
        self.send(|reply| Job::Attach(pod.clone(), reply)).await
    }

    async fn detach(&self, pod: &Pod) -> Result<(), Error> {
        self.send(|reply| Job::Detach(pod.sandbox.clone(), reply))
            .await
    }
}

impl Drop for Bridge {
    /// The thread finishes its current job; the bridge and the pods' connections stay.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("pod network thread panicked");
        }
    }
}
