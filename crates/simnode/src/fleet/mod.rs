//! The fleet: the state of each node and pod, what is due when, and the requests that follow.
//!
//! Not a task per node but one heap: an entry means that a lease is to be renewed, or that a pod is
//! to be reconciled. The decision is made again from the informers' state, so a stale entry does no
//! harm.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Text;
use coracle_api::resource_version::ResourceVersion;
use coracle_api::time::Timestamp;
use coracle_client::{Cached, Change, Error, Journal, ObjectKey, Stage as Noted, World};
use ipnet::IpNet;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::Config;
use crate::node::{self, Node};
use crate::plan::{self, Next, Stage};
use crate::pod::Pod;
use crate::profile::{Profile, ProfileError};
use crate::queue::{QueueKind, RequestQueue};
use crate::request::{Done, Operation, Outcome, Request};
use crate::status::{self, Addresses};

/// A failed request is retried after this time.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Leases are renewed at this many points of an interval, and those of one point together: a
/// machine that sleeps in between does a hundred small writes for little more than one, with warm
/// caches.
const RENEWAL_POINTS: u32 = 4;
/// The first offset in a range for pods: before it are the network and the gateway.
const FIRST_OFFSET: u32 = 2;

/// All nodes and their pods.
pub(crate) struct Fleet {
    config: Config,
    world: World,
    journal: Journal,
    nodes: Vec<Member>,
    pods: BTreeMap<ObjectKey, TrackedPod>,
    due: BinaryHeap<Reverse<(Instant, Due)>>,
    leases: RequestQueue,
    others: RequestQueue,
    /// The points of renewal are counted from here.
    begun: Instant,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Register(usize),
    Renew(usize),
    Pod(ObjectKey),
}

/// One node.
#[derive(Default)]
struct Member {
    /// Empty: it is not registered.
    uid: Text,
    /// It was deleted: it is not registered again.
    is_gone: bool,
    /// Its status is being written.
    is_posting: bool,
    lease: ResourceVersion,
    held: Node,
    /// The offsets in its range that its pods use.
    offsets: BTreeSet<u32>,
}

/// One pod.
struct TrackedPod {
    pod: Arc<Cached<Pod>>,
    node: usize,
    offset: Option<u32>,
    /// A request about it is in flight.
    is_busy: bool,
    /// The last version written: older events are ignored.
    written: ResourceVersion,
    /// It was deleted by its node; remaining finalizers are not the node's.
    is_removed: bool,
    wakes: Option<Instant>,
}

impl Member {
    fn is_alive(&self) -> bool {
        !self.uid.is_empty() && !self.is_gone && !self.held.is_dead
    }

    fn ranges(&self, index: usize) -> Vec<IpNet> {
        if self.held.ranges.is_empty() {
            vec![node::own_range(index)]
        } else {
            self.held.ranges.clone()
        }
    }

    /// Reserves the address of a pod.
    fn reserve_offset(&mut self, index: usize, tracked: &mut TrackedPod) {
        if tracked.offset.is_none() && !tracked.pod.ips.is_empty() {
            let ranges = self.ranges(index);
            let of = |ip: &IpAddr| ranges.iter().find_map(|range| node::offset_of(range, *ip));
            tracked.offset = tracked.pod.ips.iter().find_map(of);
            self.offsets.extend(tracked.offset);
        }
    }

    /// Takes a free offset of a range.
    fn allocate_offset(&mut self, range: &IpNet) -> Option<u32> {
        let room = 1_u64 << (range.max_prefix_len() - range.prefix_len()).min(31);
        let offset = (FIRST_OFFSET..).find(|offset| !self.offsets.contains(offset))?;
        (u64::from(offset) + 1 < room)
            .then(|| self.offsets.insert(offset))
            .map(|_| offset)
    }
}

impl Fleet {
    pub(crate) fn new(config: Config, world: World, journal: Journal) -> Fleet {
        let nodes = (0..config.nodes).map(|_| Member::default()).collect();
        let now = Instant::now();

        // Existing nodes are reported before this is due.
        let due = (0..config.nodes)
            .map(|index| Reverse((now + Duration::from_millis(1), Due::Register(index))));

        Fleet {
            due: due.collect(),
            config,
            world,
            journal,
            nodes,
            pods: BTreeMap::new(),
            leases: RequestQueue::default(),
            others: RequestQueue::default(),
            begun: now,
        }
    }

    /// The request to send next.
    pub(crate) fn next_request(&mut self) -> Option<Request> {
        self.leases
            .next(QueueKind::Leases)
            .or_else(|| self.others.next(QueueKind::Others))
    }

    fn queue(&mut self, kind: QueueKind) -> &mut RequestQueue {
        match kind {
            QueueKind::Leases => &mut self.leases,
            QueueKind::Others => &mut self.others,
        }
    }

    /// When to call `wake` again.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((when, _))| *when)
    }

    /// Handles what is due.
    pub(crate) fn wake(&mut self) {
        let now = Instant::now();
        while self.next_due().is_some_and(|when| when <= now)
            && let Some(Reverse((_, due))) = self.due.pop()
        {
            match due {
                Due::Register(index) if self.nodes[index].uid.is_empty() => {
                    self.enqueue(index, Operation::Register(self.config.version.clone()));
                }
                Due::Register(_) => {}
                Due::Renew(index) => self.renew(index),
                Due::Pod(key) => {
                    if let Some(tracked) = self.pods.get_mut(&key) {
                        tracked.wakes = None;
                    }
                    self.reconcile(&key);
                }
            }
        }
    }

    fn enqueue(&mut self, node: usize, operation: Operation) {
        let request = Request { node, operation };
        self.queue(request.queue_kind()).waiting.push_back(request);
    }

    fn renew(&mut self, index: usize) {
        let member = &self.nodes[index];
        if member.is_gone {
            return;
        }
        if member.held.is_dead {
            // It may come back.
            return self.renew_after(self.config.renew_every, index);
        }
        let (uid, held) = (member.uid.clone(), member.lease);
        self.enqueue(index, Operation::Renew { uid, held });
    }

    /// Renews at the point nearest to this delay.
    fn renew_after(&mut self, delay: Duration, index: usize) {
        let step = self.config.renew_every / RENEWAL_POINTS;
        let moment = nearest(self.begun.elapsed() + delay, step);
        self.due
            .push(Reverse((self.begun + moment, Due::Renew(index))));
    }

    fn later(&mut self, delay: Duration, due: Due) {
        self.due.push(Reverse((Instant::now() + delay, due)));
    }

    pub(crate) fn handle_node(&mut self, change: &Change<Node>) {
        let Some(reported) = change.object() else {
            return;
        };
        let Some(index) = node::index(&reported.key.name).filter(|index| *index < self.nodes.len())
        else {
            return;
        };

        if matches!(change, Change::Deleted { .. }) {
            self.nodes[index].is_gone = true;
            return;
        }

        let is_new = self.nodes[index].uid.is_empty();
        let before = std::mem::replace(&mut self.nodes[index].held, reported.object.clone());
        if is_new {
            self.registered(index, &reported.uid);
        } else if before.is_dead || before.ranges != reported.ranges {
            self.reconcile_all(index);
        }

        self.post_status(index);
    }

    /// From now on its lease is renewed, and its pods are run.
    fn registered(&mut self, index: usize, uid: &str) {
        let member = &mut self.nodes[index];
        if !member.uid.is_empty() {
            return;
        }
        member.uid = Text::new(uid);
        self.renew(index);
        self.reconcile_all(index);
    }

    /// A node that was marked as not ready reports that it is ready.
    fn post_status(&mut self, index: usize) {
        let member = &mut self.nodes[index];
        if !member.is_alive() || member.held.is_ready || member.is_posting {
            return;
        }
        member.is_posting = true;
        let mut patch = node::status_patch(&self.config.version, self.world.now());
        patch.meta_mut().set_name(&node::name(index));
        self.enqueue(index, Operation::NodeStatus(patch));
    }

    /// Reconciles all pods of a node, which may be reported after them.
    fn reconcile_all(&mut self, index: usize) {
        for tracked in self
            .pods
            .values_mut()
            .filter(|tracked| tracked.node == index)
        {
            self.nodes[index].reserve_offset(index, tracked);
        }

        let own = self
            .pods
            .iter()
            .filter(|(_, tracked)| tracked.node == index);
        let keys: Vec<ObjectKey> = own.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| self.reconcile(key));
    }

    pub(crate) fn handle_pod(&mut self, change: &Change<Pod>) {
        let Some(reported) = change.object() else {
            return;
        };
        let Some(index) = node::index(&reported.node).filter(|index| *index < self.nodes.len())
        else {
            return;
        };
        let replaced = self
            .pods
            .get(&reported.key)
            .is_some_and(|tracked| tracked.pod.uid != reported.uid);

        if replaced || matches!(change, Change::Deleted { .. }) {
            self.remove_pod(&reported.key);
        }
        if matches!(change, Change::Deleted { .. }) {
            return;
        }

        let tracked = self
            .pods
            .entry(reported.key.clone())
            .or_insert_with(|| TrackedPod {
                pod: reported.clone(),
                node: index,
                offset: None,
                is_busy: false,
                written: ResourceVersion::default(),
                is_removed: false,
                wakes: None,
            });
        tracked.pod = reported.clone();

        self.nodes[index].reserve_offset(index, tracked);
        self.reconcile(&reported.key);
    }

    fn remove_pod(&mut self, key: &ObjectKey) {
        if let Some(tracked) = self.pods.remove(key)
            && let Some(offset) = tracked.offset
        {
            self.nodes[tracked.node].offsets.remove(&offset);
        }
    }

    /// Decides what a pod does next.
    fn reconcile(&mut self, key: &ObjectKey) {
        let Some(tracked) = self.pods.get(key) else {
            return;
        };

        let member = &self.nodes[tracked.node];
        if !member.is_alive()
            || tracked.is_busy
            || tracked.is_removed
            || tracked.pod.version < tracked.written
        {
            return;
        }

        let (node, now) = (tracked.node, self.world.now());
        match plan::next(&tracked.pod, &profile(&tracked.pod, member), now) {
            Next::Nothing => {}
            Next::At(when) => self.wake_at(key, when, now),
            Next::Write(stage) => self.write(key, &stage, now),
            Next::Remove => {
                let uid = tracked.pod.uid.to_string();
                self.enqueue(
                    node,
                    Operation::Remove {
                        key: key.clone(),
                        uid,
                    },
                );

                self.mark(key, |tracked| tracked.is_busy = true);
            }
        }
    }

    fn wake_at(&mut self, key: &ObjectKey, when: Timestamp, now: Timestamp) {
        let delay = when.since(now).to_std().unwrap_or_default();
        let at = Instant::now() + delay;
        let Some(tracked) = self.pods.get_mut(key) else {
            return;
        };
        if tracked.wakes.is_none_or(|wakes| at < wakes) {
            tracked.wakes = Some(at);
            self.due.push(Reverse((at, Due::Pod(key.clone()))));
        }
    }

    fn write(&mut self, key: &ObjectKey, stage: &Stage, now: Timestamp) {
        let Some(tracked) = self.pods.get_mut(key) else {
            return;
        };
        let (node, member) = (tracked.node, &mut self.nodes[tracked.node]);
        let ranges = member.ranges(node);

        let has_address = !tracked.pod.ips.is_empty();
        if tracked.offset.is_none() && !tracked.pod.host_network && !has_address {
            tracked.offset = ranges
                .first()
                .and_then(|range| member.allocate_offset(range));
        }

        let pod = match tracked.offset {
            _ if has_address => tracked.pod.ips.clone(),
            Some(offset) => ranges
                .iter()
                .map(|range| node::address_at(range, offset))
                .collect(),
            None if tracked.pod.host_network => vec![node::address(node)],
            // Its node has no free address: it is retried when it changes.
            None => return,
        };

        let addresses = Addresses {
            node: node::address(node),
            pod,
        };

        let uid = tracked.pod.uid.to_string();
        let patch = status::patch(&tracked.pod, &uid, stage, &addresses, now);

        tracked.is_busy = true;
        let operation = match stage {
            Stage::Creating => "create containers",
            Stage::Refused(_) => "refuse",
            Stage::Running { ready: true, .. } => "run, ready",
            Stage::Running { .. } => "run",
            Stage::BackOff { .. } => "back off",
            Stage::Ended { .. } => "end",
        };

        let outcome = format!("on {}", node::name(node));
        self.journal.note(
            &uid,
            Noted {
                when: now,
                who: "simulated-node",
                what: operation,
                outcome,
            },
        );

        self.enqueue(
            node,
            Operation::PodStatus {
                key: key.clone(),
                uid,
                patch,
            },
        );
    }

    fn mark(&mut self, key: &ObjectKey, mark: impl FnOnce(&mut TrackedPod)) {
        if let Some(tracked) = self.pods.get_mut(key) {
            mark(tracked);
        }
    }

    /// Handles the result of a request.
    pub(crate) fn done(&mut self, done: Done) {
        self.queue(done.queue_kind()).in_flight -= 1;
        let index = done.node;
        match done.outcome {
            Outcome::Registered(Ok(object)) => self.registered(index, object.meta().uid()),
            Outcome::Registered(Err(error)) => {
                warn!(node = node::name(index), %error, "cannot register node");
                self.later(RETRY_DELAY, Due::Register(index));
            }
            Outcome::NodeStatus(result) => {
                self.nodes[index].is_posting = false;
                if let Err(error) = result {
                    debug!(node = node::name(index), %error, "cannot update node status");
                }
            }
            Outcome::Renewed(result) => self.renewed(index, result),
            Outcome::PodStatus { key, uid, result } => self.status_written(&key, &uid, result),
            Outcome::Removed { key, uid, result } => {
                let gone = result.as_ref().err().is_none_or(Error::is_not_found);
                self.settle(&key, &uid, gone, |tracked| tracked.is_removed = true);
            }
        }
    }

    fn renewed(&mut self, index: usize, result: Result<ResourceVersion, Error>) {
        let first = self.nodes[index].lease == ResourceVersion::default();
        match result {
            Ok(version) => {
                self.nodes[index].lease = version;

                // All nodes start at once; from the second renewal on they are spread over the
                // interval.
                let every = self.config.renew_every;
                let delay = if first {
                    every.mul_f64(self.world.fraction())
                } else {
                    every
                };
                self.renew_after(delay, index);
            }
            Err(error) => {
                debug!(node = node::name(index), %error, "cannot renew node lease");
                self.nodes[index].lease = ResourceVersion::default();
                self.later(RETRY_DELAY, Due::Renew(index));
            }
        }

        self.post_status(index);
    }

    fn status_written(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        result: Result<ResourceVersion, Error>,
    ) {
        match result {
            Ok(version) => self.settle(key, uid, true, |tracked| tracked.written = version),
            // It was deleted: the event follows soon, and until then there is nothing to write.
            Err(error) if error.is_not_found() => {
                self.settle(key, uid, true, |tracked| tracked.is_removed = true);
            }
            Err(error) => {
                warn!(pod = %key, %error, "cannot update pod status; retrying");
                self.settle(key, uid, false, |_| {});
            }
        }
    }

    /// The request about a pod is finished; it does not matter if the pod was replaced in the
    /// meantime.
    fn settle(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        went_well: bool,
        mark: impl FnOnce(&mut TrackedPod),
    ) {
        let Some(tracked) = self
            .pods
            .get_mut(key)
            .filter(|tracked| tracked.pod.uid == uid)
        else {
            return;
        };
        tracked.is_busy = false;

        if went_well {
            mark(tracked);
            self.reconcile(key);
        } else {
            let now = self.world.now();
            self.wake_at(key, now + RETRY_DELAY.into(), now);
        }
    }
}

/// The profile in a pod's annotation, or else in its node's label.
fn profile(pod: &Pod, member: &Member) -> Result<Profile, ProfileError> {
    pod.profile
        .as_ref()
        .or(member.held.profile.as_ref())
        .map_or(Ok(Profile::default()), |text| text.parse())
}

/// The multiple of `step` that is nearest to `time`.
fn nearest(time: Duration, step: Duration) -> Duration {
    let past = time + step / 2;
    let over = past.as_nanos() % step.as_nanos().max(1);
    past.saturating_sub(Duration::from_nanos(
        u64::try_from(over).unwrap_or(u64::MAX),
    ))
}
