//! The network component: follows nodes and the kernel, and keeps the kernel equal to the plan.
//!
//! It first acts when all nodes are known: until then, what an earlier process left works on. What
//! others change in the kernel is set right again, later each time if they insist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coracle_base::error_chain;
use coracle_client::{Change, Client, Informer, Informers, ObjectKey, Resource, Tasks};
use coracle_netlink::route::{self, Watch};
use coracle_netlink::{Version, nftables};
use ipnet::IpNet;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::kernel::{Kernel, KernelError};
use crate::masquerade;
use crate::node::Node;
use crate::plan::{Encapsulation, Machine, Plan, Problem, plan};
use crate::record::Record;

/// What the component creates outside of its own state. Different for each instance on a machine.
#[derive(Clone, Debug)]
pub struct Names {
    /// The pods' bridge, which another creates.
    pub bridge: String,
    /// The VXLAN interfaces: between IPv4 and between IPv6 addresses of nodes.
    pub devices: [String; 2],
    /// The nftables table.
    pub table: String,
}

impl Names {
    pub(crate) fn device(&self, version: Version) -> &str {
        match version {
            Version::V4 => &self.devices[0],
            Version::V6 => &self.devices[1],
        }
    }
}

/// Configuration of one node.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name of this node.
    pub node: String,
    pub names: Names,
    /// The file of added routes. It need not survive a reboot.
    pub record: PathBuf,
    pub encapsulation: Encapsulation,
    /// The pod ranges of the cluster, as far as they are known: pods of nodes to come.
    pub cluster_ranges: Vec<IpNet>,
}

/// Why the component does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error("cannot watch the kernel's network configuration")]
    Watch(#[source] std::io::Error),
}

/// Runs until dropped; what it made of the kernel stays. The client must be allowed to list and
/// watch nodes. `pod_mtu` is set to the MTU that pods should have, whenever it changes.
pub async fn run(
    config: Config,
    client: Client,
    pod_mtu: watch::Sender<Option<u32>>,
) -> Result<(), RunError> {
    let kernel = Kernel::open(&config.names, &config.record)?;
    // Before anything is read, so that no change is missed.
    let changes = Watch::open().map_err(RunError::Watch)?;
    let rules = nftables::Watch::open(vec![masquerade::table(&config.names.table)]);
    let rules = rules.map_err(RunError::Watch)?;

    let tasks = Tasks::new();
    let informers = Informers::new(client, tasks.clone());
    let nodes: Informer<Node> = informers.of(&Resource::builtin("", "v1", "nodes"));
    let mut events = nodes.subscribe();

    let mut network = Network {
        kernel,
        nodes,
        pod_mtu,
        concerned: BTreeSet::new(),
        problems: Vec::new(),
        last_error: String::new(),
        pause: FIRST_PAUSE,
        config,
    };
    let mut has_synced = false;
    let mut due = None;

    loop {
        tokio::select! {
            biased;
            event = events.next() => {
                has_synced |= matches!(event, Change::Synced);
                if has_synced && is_news(&event) {
                    network.pause = FIRST_PAUSE;
                    due = Some(Instant::now());
                }
            }
            found = changes.changes() => {
                if has_synced && due.is_none() && found.iter().any(|change| network.concerns(change)) {
                    due = Some(Instant::now() + network.pause);
                }
            }
            () = rules.table_deleted(), if has_synced && due.is_none() => {
                network.kernel.forget_rules();
                due = Some(Instant::now() + network.pause);
            }
            () = until(due) => due = network.reconcile(),
        }
    }
}

/// Removes what the component made of this machine's kernel.
pub fn remove(names: &Names, record: &Path) -> Result<(), KernelError> {
    Kernel::open(names, record)?.remove()
}

/// The MTU that pods had when the component last ran.
pub fn last_pod_mtu(record: &Path) -> Option<u32> {
    Record::load(record).ok()?.pod_mtu
}

/// Between a change by another process and our own, doubled as long as ours are undone.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// After an error.
const RETRY: Duration = Duration::from_secs(1);

/// Heartbeats change nodes without changing anything here.
fn is_news(event: &Change<Node>) -> bool {
    match event {
        Change::Updated { old, new } => old.object != new.object,
        Change::Added { .. } | Change::Deleted { .. } | Change::Synced => true,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

struct Network {
    config: Config,
    kernel: Kernel,
    nodes: Informer<Node>,
    pod_mtu: watch::Sender<Option<u32>>,
    /// The interfaces on the way to other nodes.
    concerned: BTreeSet<u32>,
    /// Those logged last, to log them only once.
    problems: Vec<Problem>,
    last_error: String,
    pause: Duration,
}

impl Network {
    /// Makes the kernel equal to the plan; returns when to try again.
    fn reconcile(&mut self) -> Option<Instant> {
        match self.try_reconcile() {
            Ok(0) => {
                self.last_error.clear();
                self.pause = FIRST_PAUSE;
                None
            }
            Ok(changes) => {
                tracing::debug!(changes, "network between nodes updated");
                self.last_error.clear();
                self.pause = (self.pause * 2).min(LAST_PAUSE);
                None
            }
            Err(error) => {
                let text = error_chain(&error);
                if text != self.last_error {
                    tracing::error!(error = %text, "cannot set up the network between nodes; retrying");
                    self.last_error = text;
                }
                Some(Instant::now() + RETRY)
            }
        }
    }

    /// Returns how many changes it took.
    fn try_reconcile(&mut self) -> Result<usize, KernelError> {
        // A node that is not registered yet, or no longer, keeps what it has.
        let Some(own) = self.nodes.get(&ObjectKey::new("", &self.config.node)) else {
            return Ok(0);
        };
        let others: Vec<Node> = self
            .nodes
            .list()
            .iter()
            .filter(|node| node.key != own.key)
            .map(|node| node.object.clone())
            .collect();

        let targets = others.iter().flat_map(|node| node.addresses.clone());
        let machine = self.kernel.machine(targets)?;
        self.note_interfaces(&machine);

        let plan = plan(
            &own.object,
            &others,
            &machine,
            self.config.encapsulation,
            &self.config.cluster_ranges,
        );
        self.log_problems(&plan);
        let changes = self.kernel.apply(&plan)?;

        self.pod_mtu.send_if_modified(|known| {
            let is_new = *known != Some(plan.pod_mtu);
            *known = Some(plan.pod_mtu);
            is_new
        });

        Ok(changes)
    }

    fn note_interfaces(&mut self, machine: &Machine) {
        self.concerned = machine.paths.values().map(|path| path.interface).collect();
    }

    fn log_problems(&mut self, plan: &Plan) {
        for problem in plan
            .problems
            .iter()
            .filter(|one| !self.problems.contains(one))
        {
            tracing::warn!(%problem, "pods of a node cannot be reached");
        }
        self.problems.clone_from(&plan.problems);
    }

    /// Whether a change can matter. Those of pods' interfaces, the most frequent ones, do not; a new
    /// address of the bridge is seen by its route.
    fn concerns(&self, change: &route::Change) -> bool {
        let is_ours = |name: &String| self.config.names.devices.contains(name);
        match change {
            route::Change::Link { index, name } => is_ours(name) || self.concerned.contains(index),
            route::Change::Address { index } => {
                self.concerned.contains(index) || self.kernel.is_own(*index)
            }
            route::Change::Route { range } => range.is_none_or(|range| !is_link_local(&range)),
            route::Change::Neighbour { index, is_deleted } => {
                *is_deleted && self.kernel.is_own(*index)
            }
            route::Change::Lost => true,
        }
    }
}

/// Every interface has such routes.
fn is_link_local(range: &IpNet) -> bool {
    match range {
        IpNet::V4(_) => false,
        IpNet::V6(range) => range.addr().is_unicast_link_local() || range.addr().is_multicast(),
    }
}
