//! The scheduling queue: which pod is tried next, and when a rejected one is retried.
//!
//! A waiting pod is in exactly one of four states. *Active*: to be tried now, by priority, then by
//! age. *Backing off*: failed recently, active again when its backoff ends, or as soon as no other
//! pod is active; after an error only the former. *Parked*: unschedulable; the first event that may
//! help, according to the plugins that rejected it, requeues it. *Gated*: must not be tried before
//! a plugin opens its gate. Pods in a cycle are in flight: events are recorded for them, otherwise
//! one that would have helped could be missed. No I/O and no clock: the tests simulate a week in a
//! millisecond.

#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Text;

pub use waiting::{Backoff, Moment, QueuedPod};

use crate::events::Event;
use crate::framework::{Nominations, Profile, Rank};
use crate::pod::Pod;

/// The rejector while there is no node at all. Upstream treats that as an error, and the pod waits
/// up to eleven seconds after the first node was added; here that event wakes it.
pub const NO_NODES: &str = "no nodes";

/// How long pods wait.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    pub backoff: Backoff,
    /// A parked pod is retried after this time even without an event.
    pub parked: Duration,
}

/// All pods that wait for a node.
pub struct Queue {
    profiles: Vec<Arc<Profile>>,
    delays: Delays,
    pods: HashMap<Text, Waiting>,
    active: BTreeSet<(Rank, Sequence)>,
    backing_off: BTreeSet<(Moment, Rank, Sequence)>,
    after_errors: BTreeSet<(Moment, Sequence)>,
    /// By the time they were parked.
    parked: BTreeSet<(Moment, Sequence)>,
    gated: BTreeSet<Sequence>,
    tickets: BTreeMap<Sequence, Text>,
    last_ticket: u64,
    in_flight: HashMap<Text, InFlight>,
    /// Events since the oldest pod in flight was taken, each with its number.
    events: VecDeque<(u64, Event)>,
    last_event: u64,
    /// Moves since they were last taken.
    moves: Vec<(&'static str, Destination)>,
    rejected: Rejected,
    pub nominations: Nominations,
}

/// How many waiting pods each plugin rejected last, by plugin and scheduler name.
#[derive(Default)]
struct Rejected {
    pods: HashMap<(&'static str, Text), i64>,
    has_changed: bool,
}

impl Rejected {
    fn count(&mut self, queued: &QueuedPod, change: i64) {
        let plugins = queued.rejectors.iter().filter(|name| **name != NO_NODES);
        for plugin in plugins {
            let key = (*plugin, queued.pod.scheduler_name.clone());
            *self.pods.entry(key).or_default() += change;
            self.has_changed = true;
        }
    }
}

/// Orders pods that are otherwise equal by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sequence(u64);

struct Waiting {
    queued: QueuedPod,
    sequence: Sequence,
    place: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active(Rank),
    BackingOff(Moment, Rank),
    AfterError(Moment),
    Parked(Moment),
    Gated,
}

struct InFlight {
    /// The last event before it was taken.
    since: u64,
    /// The current pod, if it has changed.
    latest: Option<Arc<Pod>>,
    gone: bool,
}

/// The queue that a pod was moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    Active,
    BackingOff,
    Parked,
    Gated,
}

/// How many pods are in each queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    pub active: usize,
    pub backing_off: usize,
    pub parked: usize,
    pub gated: usize,
}

/// Upstream's name for what moves a pod back after its cycle.
const ATTEMPT_FAILED: &str = "ScheduleAttemptFailure";

impl State {
    fn destination(self) -> Destination {
        match self {
            State::Active(_) => Destination::Active,
            State::BackingOff(..) | State::AfterError(_) => Destination::BackingOff,
            State::Parked(_) => Destination::Parked,
            State::Gated => Destination::Gated,
        }
    }
}

impl Destination {
    /// Upstream's name of the queue.
    pub fn name(self) -> &'static str {
        match self {
            Destination::Active => "active",
            Destination::BackingOff => "backoff",
            Destination::Parked => "unschedulable",
            Destination::Gated => "gated",
        }
    }
}

impl Queue {
    pub fn new(profiles: Vec<Arc<Profile>>, delays: Delays) -> Queue {
        Queue {
            profiles,
            delays,
            pods: HashMap::new(),
            active: BTreeSet::new(),
            backing_off: BTreeSet::new(),
            after_errors: BTreeSet::new(),
            parked: BTreeSet::new(),
            gated: BTreeSet::new(),
            tickets: BTreeMap::new(),
            last_ticket: 0,
            in_flight: HashMap::new(),
            events: VecDeque::new(),
            last_event: 0,
            moves: Vec::new(),
            rejected: Rejected::default(),
            nominations: Nominations::default(),
        }
    }

    /// Whether a profile handles the pod's scheduler name.
    pub fn is_responsible_for(&self, pod: &Pod) -> bool {
        self.profile(pod).is_some()
    }

    pub fn profile(&self, pod: &Pod) -> Option<&Arc<Profile>> {
        self.profiles
            .iter()
            .find(|profile| profile.name == pod.scheduler_name)
    }

    /// Adds or updates a pod without a node.
    pub fn set(&mut self, pod: Arc<Pod>, now: Moment) -> Option<Destination> {
        if let Some(flight) = self.in_flight.get_mut(&pod.uid) {
            let old = flight.latest.replace(Arc::clone(&pod));
            if let Some(old) = old {
                self.record(&Event::PodChanged { old, new: pod });
            }
            return None;
        }

        self.nominations.refresh(&pod);
        let Some(waiting) = self.pods.get_mut(&pod.uid) else {
            return Some(self.add(QueuedPod::new(pod, now), now, "UnschedulablePodAdd"));
        };
        let old = std::mem::replace(&mut waiting.queued.pod, Arc::clone(&pod));

        if !matches!(waiting.place, State::Parked(_) | State::Gated) {
            return None;
        }

        let uid = pod.uid.clone();
        self.requeue(&uid, &Event::PodChanged { old, new: pod }, now)
    }

    /// Removes a pod that was deleted or got a node.
    pub fn remove(&mut self, uid: &str) {
        self.nominations.remove(uid);
        if let Some(flight) = self.in_flight.get_mut(uid) {
            flight.gone = true;
        }
        self.take(uid);
    }

    /// The next pod to try. It is in flight until [`Queue::fail`] or [`Queue::done`].
    pub fn pop(&mut self, now: Moment) -> Option<QueuedPod> {
        self.flush(now);
        let active = self.active.first().map(|(_, sequence)| *sequence);
        let sequence =
            active.or_else(|| self.backing_off.first().map(|(_, _, sequence)| *sequence))?;
        let uid = self.tickets[&sequence].clone();
        if active.is_none() {
            self.moves.push(("PopFromBackoffQ", Destination::Active));
        }
        let mut queued = self
            .take(&uid)
            .expect("a sequence number belongs to a waiting pod");
        queued.attempts += 1;
        queued.rejectors.clear();
        queued.gate = None;

        let latest = Some(Arc::clone(&queued.pod));
        self.in_flight.insert(
            uid,
            InFlight {
                since: self.last_event,
                latest,
                gone: false,
            },
        );

        Some(queued)
    }

    /// Whether [`Queue::pop`] returns a pod.
    pub fn has_active(&self) -> bool {
        !self.active.is_empty() || !self.backing_off.is_empty()
    }

    /// The pod has a node, or is no longer needed.
    pub fn done(&mut self, uid: &str) {
        self.in_flight.remove(uid);
        let oldest = self.in_flight.values().map(|flight| flight.since).min();
        while self
            .events
            .front()
            .is_some_and(|(number, _)| oldest.is_none_or(|oldest| *number <= oldest))
        {
            self.events.pop_front();
        }
    }

    /// The pod got no node: it waits again, for an event that may help according to the plugins
    /// that rejected it. Without any the cycle failed, and only time helps. Returns the current
    /// pod; `None` if it was removed.
    pub fn fail(
        &mut self,
        mut queued: QueuedPod,
        rejectors: Vec<&'static str>,
        now: Moment,
    ) -> Option<Arc<Pod>> {
        let uid = queued.pod.uid.clone();
        let (latest, gone) = match self.in_flight.get(&uid) {
            Some(flight) => (flight.latest.clone(), flight.gone),
            None => (None, false),
        };

        if gone {
            self.done(&uid);
            return None;
        }

        queued.pod = latest.unwrap_or(queued.pod);
        queued.since = now;

        match rejectors.is_empty() {
            true => queued.errors += 1,
            false => (queued.refusals, queued.errors) = (queued.refusals + 1, 0),
        }

        queued.rejectors = rejectors;
        let pod = Arc::clone(&queued.pod);
        let hope = queued.rejectors.is_empty() || self.helped_in_flight(&queued);
        self.done(&uid);

        if hope {
            self.add(queued, now, ATTEMPT_FAILED);
        } else {
            let parked = State::Parked(queued.since);
            self.place(queued, parked, ATTEMPT_FAILED);
        }

        Some(pod)
    }

    /// Handles an event: requeues the pods that it may help.
    pub fn handle_event(&mut self, event: &Event, now: Moment) {
        self.handle_event_for(event, now, |_| true);
    }

    /// The same, for some pods only.
    pub fn handle_event_for(
        &mut self,
        event: &Event,
        now: Moment,
        concerns: impl Fn(&Pod) -> bool,
    ) {
        self.record(event);
        let waiting = self
            .parked
            .iter()
            .map(|(_, sequence)| *sequence)
            .chain(self.gated.iter().copied());

        let tickets: Vec<Sequence> = waiting.collect();
        for sequence in tickets {
            let uid = self.tickets[&sequence].clone();
            if concerns(&self.pods[&uid].queued.pod) {
                self.requeue(&uid, event, now);
            }
        }
    }

    /// Moves pods whose backoff has ended, and those parked for too long.
    pub fn flush(&mut self, now: Moment) {
        let ready = self
            .backing_off
            .iter()
            .take_while(|(at, ..)| *at <= now)
            .map(|(_, _, sequence)| *sequence);

        let after_errors = self
            .after_errors
            .iter()
            .take_while(|(at, _)| *at <= now)
            .map(|(_, sequence)| *sequence);

        let ready: Vec<Sequence> = ready.chain(after_errors).collect();
        for sequence in ready {
            let uid = self.tickets[&sequence].clone();
            let queued = self
                .take(&uid)
                .expect("a sequence number belongs to a waiting pod");
            self.activate(queued, "BackoffComplete");
        }

        let long = |parked: &&(Moment, Sequence)| now > parked.0 + self.delays.parked;
        let long: Vec<Sequence> = self
            .parked
            .iter()
            .take_while(long)
            .map(|(_, sequence)| *sequence)
            .collect();

        for sequence in long {
            let uid = self.tickets[&sequence].clone();
            self.requeue(&uid, &Event::Timeout, now);
        }
    }

    /// When [`Queue::flush`] has to be called again.
    pub fn next_flush(&self) -> Option<Moment> {
        let backing_off = self.backing_off.first().map(|(at, ..)| *at);
        let after_errors = self.after_errors.first().map(|(at, _)| *at);
        // Strictly longer than the limit.
        let parked = self
            .parked
            .first()
            .map(|(since, _)| *since + self.delays.parked + Duration::from_millis(1));
        [backing_off, after_errors, parked]
            .into_iter()
            .flatten()
            .min()
    }

    /// The waiting pod with this UID.
    pub fn get(&self, uid: &str) -> Option<&QueuedPod> {
        self.pods.get(uid).map(|waiting| &waiting.queued)
    }

    pub fn lengths(&self) -> Lengths {
        Lengths {
            active: self.active.len(),
            backing_off: self.backing_off.len() + self.after_errors.len(),
            parked: self.parked.len(),
            gated: self.gated.len(),
        }
    }

    /// The moves of pods since the last call: the event, by upstream's name, and the queue.
    pub fn take_moves(&mut self) -> Vec<(&'static str, Destination)> {
        std::mem::take(&mut self.moves)
    }

    /// How many waiting pods each plugin rejected last, by plugin and scheduler name; empty: as at
    /// the last call.
    pub fn take_rejected(&mut self) -> impl Iterator<Item = (&'static str, &str, i64)> {
        let pods = std::mem::take(&mut self.rejected.has_changed).then_some(&self.rejected.pods);
        pods.into_iter()
            .flatten()
            .map(|((plugin, profile), pods)| (*plugin, profile.as_str(), *pods))
    }

    /// Requeues a parked or gated pod, if the event may help it.
    fn requeue(&mut self, uid: &str, event: &Event, now: Moment) -> Option<Destination> {
        let queued = &self.pods.get(uid)?.queued;
        if !self.may_help(queued, event) {
            return None;
        }
        let queued = self.take(uid).expect("it was there");
        Some(self.add(queued, now, event.label()))
    }

    fn may_help(&self, queued: &QueuedPod, event: &Event) -> bool {
        // A gated pod is not helped by time.
        if event.helps_any() {
            return queued.gate.is_none();
        }
        if queued.rejectors == [NO_NODES] {
            return matches!(event, Event::NodeAdded(_));
        }
        let profile = self.profile(&queued.pod);
        queued.rejectors.is_empty()
            || profile.is_none_or(|profile| profile.may_help(&queued.rejectors, &queued.pod, event))
    }

    fn helped_in_flight(&self, queued: &QueuedPod) -> bool {
        let since = self
            .in_flight
            .get(&queued.pod.uid)
            .map_or(u64::MAX, |flight| flight.since);
        let mut meanwhile = self.events.iter().filter(|(number, _)| *number > since);
        meanwhile.any(|(_, event)| self.may_help(queued, event))
    }

    fn record(&mut self, event: &Event) {
        if !self.in_flight.is_empty() {
            self.last_event += 1;
            self.events.push_back((self.last_event, event.clone()));
        }
    }

    /// Adds a pod: gated, backing off or active.
    fn add(&mut self, mut queued: QueuedPod, now: Moment, event: &'static str) -> Destination {
        if let Some(gate) = self.gate_of(&queued.pod) {
            queued.gate = Some(gate);
            queued.rejectors = vec![gate];
            self.place(queued, State::Gated, event);
            return Destination::Gated;
        }

        queued.gate = None;

        match queued.ready_at(self.delays.backoff).filter(|at| *at > now) {
            None => self.activate(queued, event),
            Some(at) => {
                let rank = self.rank(&queued);
                let place = if queued.errors > 0 {
                    State::AfterError(at)
                } else {
                    State::BackingOff(at, rank)
                };
                self.place(queued, place, event);
                Destination::BackingOff
            }
        }
    }

    fn activate(&mut self, queued: QueuedPod, event: &'static str) -> Destination {
        let rank = self.rank(&queued);
        self.place(queued, State::Active(rank), event);
        Destination::Active
    }

    fn gate_of(&self, pod: &Pod) -> Option<&'static str> {
        let gates = self
            .profile(pod)
            .map(|profile| profile.pre_enqueue.as_slice())
            .unwrap_or_default();
        gates
            .iter()
            .find(|gate| gate.inner.gate(pod).is_some())
            .map(|gate| gate.plugin)
    }

    fn rank(&self, queued: &QueuedPod) -> Rank {
        let profile = self.profile(&queued.pod);
        profile.map_or((0, queued.since), |profile| {
            profile.queue_sort.rank(&queued.pod, queued.since)
        })
    }

    fn place(&mut self, queued: QueuedPod, place: State, event: &'static str) {
        self.moves.push((event, place.destination()));
        self.rejected.count(&queued, 1);
        self.last_ticket += 1;
        let sequence = Sequence(self.last_ticket);
        let uid = queued.pod.uid.clone();

        match place {
            State::Active(rank) => self.active.insert((rank, sequence)),
            State::BackingOff(at, rank) => self.backing_off.insert((at, rank, sequence)),
            State::AfterError(at) => self.after_errors.insert((at, sequence)),
            State::Parked(since) => self.parked.insert((since, sequence)),
            State::Gated => self.gated.insert(sequence),
        };

        self.tickets.insert(sequence, uid.clone());
        self.pods.insert(
            uid,
            Waiting {
                queued,
                sequence,
                place,
            },
        );
    }

    fn take(&mut self, uid: &str) -> Option<QueuedPod> {
        let Waiting {
            queued,
            sequence,
            place,
        } = self.pods.remove(uid)?;
        self.tickets.remove(&sequence);
        self.rejected.count(&queued, -1);

        match place {
            State::Active(rank) => self.active.remove(&(rank, sequence)),
            State::BackingOff(at, rank) => self.backing_off.remove(&(at, rank, sequence)),
            State::AfterError(at) => self.after_errors.remove(&(at, sequence)),
            State::Parked(since) => self.parked.remove(&(since, sequence)),
            State::Gated => self.gated.remove(&sequence),
        };

        Some(queued)
    }
}
