//! The probe manager: startup, liveness and readiness probes.
//!
//! [`ProbeManager::follow`] is called with each pod and its state, and keeps one task per probe of
//! a running container: until the startup probe has passed it runs alone; liveness runs until it
//! fails, readiness as long as the container runs. A task probes (`prober`, `grpc`) and counts
//! (`outcome`); a result that reaches its threshold is stored here, and sent on the channel if it
//! has changed. After a restart of the kubelet the results in the pod's status apply until the next
//! probe.

mod grpc;
mod instance;
mod metrics;
mod outcome;
mod prober;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, Weak};
use std::time::Duration;

use coracle_api::Text;
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;
use coracle_client::{Recorder, World};
use coracle_cri::Runtime;
use k8s_openapi::api::core::v1::{Pod, Probe};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::host::Host;
use crate::observed::{Observed, State};
use crate::pod::{Kind, PodView as _};
use instance::Instance;
use metrics::{ProbeMetrics, ProbedContainer};
use outcome::{Outcome, Streak, event, is_settled};
use prober::Prober;

/// Bound of the result channel.
const WAITING: usize = 100;

/// The kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    Startup,
    Liveness,
    Readiness,
}

impl ProbeKind {
    /// The name in events and metrics.
    fn name(self) -> &'static str {
        match self {
            ProbeKind::Startup => "Startup",
            ProbeKind::Liveness => "Liveness",
            ProbeKind::Readiness => "Readiness",
        }
    }
}

/// A probe result that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    pub uid: Text,
    pub container: Text,
    /// The probed instance.
    pub container_id: Text,
    pub kind: ProbeKind,
    pub passed: bool,
}

/// Receives changed results.
pub type ProbeResults = mpsc::Receiver<ProbeResult>;

/// All probes of a node.
pub struct ProbeManager {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Arc<dyn Runtime>,
    events: Recorder,
    metrics: ProbeMetrics,
    world: World,
    /// Address of pods on the host network.
    host_address: String,
    /// When this kubelet started.
    begun: Timestamp,
    results: mpsc::Sender<ProbeResult>,
    pods: Mutex<BTreeMap<Text, PodProbes>>,
}

/// The probes of one pod.
struct PodProbes {
    pod: Arc<Pod>,
    address: String,
    /// Only readiness is still probed.
    is_ending: bool,
    /// Container instances with probes, by name.
    instances: BTreeMap<String, Instance>,
}

impl ProbeManager {
    /// A manager without pods, and its results.
    pub fn new(host: &Host) -> (ProbeManager, ProbeResults) {
        let (results, heard) = mpsc::channel(WAITING);
        let shared = Shared {
            runtime: host.runtime.clone(),
            events: host.events.clone(),
            metrics: ProbeMetrics::new(&host.probe_metrics),
            world: host.world,
            host_address: host
                .addresses
                .first()
                .map(ToString::to_string)
                .unwrap_or_default(),
            begun: host.now(),
            results,
            pods: Mutex::default(),
        };

        (
            ProbeManager {
                shared: Arc::new(shared),
            },
            heard,
        )
    }

    /// Starts and stops the probes of a pod. Called whenever a pod or its containers have changed.
    pub fn follow(&self, pod: &Arc<Pod>, observed: &Observed) {
        let shared = &self.shared;
        let mut pods = shared.lock();

        let probes = pods
            .entry(Text::new(pod.uid()))
            .or_insert_with(|| PodProbes {
                pod: pod.clone(),
                address: String::new(),
                is_ending: false,
                instances: BTreeMap::new(),
            });
        probes.pod = pod.clone();

        let address = observed
            .ready_sandbox()
            .and_then(|sandbox| sandbox.addresses.first().cloned());
        if let Some(address) =
            address.or_else(|| pod.is_host_network().then(|| shared.host_address.clone()))
        {
            probes.address = address;
        }

        for (kind, container) in pod
            .lasting_containers()
            .filter(|(kind, _)| *kind != Kind::Init)
        {
            let wanted = Instance::probes_of(container);
            let seen = observed
                .newest(&container.name)
                .filter(|_| !wanted.is_empty());
            let Some(seen) = seen else {
                probes.instances.remove(&container.name);
                continue;
            };

            let State::Running { since } = seen.state else {
                if let Some(instance) = probes.instances.get_mut(&container.name) {
                    instance.stop_all();
                }
                continue;
            };

            let known = probes
                .instances
                .get(&container.name)
                .is_some_and(|known| known.id == seen.id);

            if !known {
                let instance = Instance::new(kind, container.clone(), seen.id.clone(), since, pod);
                probes.instances.insert(container.name.clone(), instance);
            }

            shared.begin_due(probes, &container.name);
        }
    }

    /// The pod terminates: only readiness is still probed.
    pub fn end(&self, uid: &str) {
        if let Some(probes) = self.shared.lock().get_mut(uid) {
            probes.is_ending = true;
            for instance in probes.instances.values_mut() {
                instance.stop(ProbeKind::Startup);
                instance.stop(ProbeKind::Liveness);
            }
        }
    }

    /// Removes a deleted pod.
    pub fn forget(&self, uid: &str) {
        let Some(probes) = self.shared.lock().remove(uid) else {
            return;
        };
        for instance in probes.instances.values() {
            for kind in Instance::probes_of(&instance.container) {
                let name = &instance.container.name;
                self.shared.metrics.remove(&probed(&probes.pod, name, kind));
            }
        }
    }

    /// Whether a running container is ready: it has no readiness probe, or that has passed.
    pub fn is_ready(&self, uid: &str, container: &str) -> bool {
        self.shared
            .of_instance(uid, container, true, Instance::is_ready)
    }

    /// Whether a running container has started: it has no startup probe, or that has passed.
    pub fn is_started(&self, uid: &str, container: &str) -> bool {
        self.shared
            .of_instance(uid, container, true, Instance::is_started)
    }

    /// The failed probe that requires this container instance to be killed.
    pub fn has_failed(&self, uid: &str, container_id: &str) -> Option<ProbeKind> {
        let pods = self.shared.lock();
        // A terminating pod is not killed again by its probes.
        let probes = pods.get(uid).filter(|probes| !probes.is_ending)?;
        probes
            .instances
            .values()
            .find(|instance| instance.id == container_id)?
            .failed()
    }
}

impl Shared {
    /// Starts the probes of a container that should run and do not yet.
    fn begin_due(self: &Arc<Shared>, probes: &mut PodProbes, container: &str) {
        let Some(instance) = probes.instances.get_mut(container) else {
            return;
        };
        for kind in instance.due(probes.is_ending) {
            let Some(probe) = instance.probe(kind) else {
                continue;
            };

            let pod = &probes.pod;
            let prober = Prober {
                runtime: self.runtime.clone(),
                container: instance.container.clone(),
                container_id: instance.id.clone(),
                pod: format!("{}_{}({})", pod.name(), pod.namespace(), pod.uid()),
                address: probes.address.clone(),
            };

            let task = Task {
                shared: Arc::downgrade(self),
                uid: Text::new(pod.uid()),
                kind,
                probe,
                delay: self.delay(instance, kind),
                probed: probed(pod, &instance.container.name, kind),
                prober,
            };
            instance.begin(kind, task.run());
        }
    }

    /// The delay of the first probe. After a restart of the kubelet, probes are spread over their
    /// period.
    fn delay(&self, instance: &Instance, kind: ProbeKind) -> Duration {
        let now = self.world.now();
        let probe = instance.probe(kind).unwrap_or_default();
        let initial = i64::from(probe.initial_delay_seconds.unwrap_or(0));
        let until = instance
            .since
            .plus_seconds(initial)
            .since(now)
            .to_std()
            .unwrap_or_default();

        let period = period(&probe);
        let running = now.since(self.begun).to_std().unwrap_or_default();
        let inherited = instance.since < self.begun;
        let spread = if inherited && period > running {
            period.mul_f64(self.world.fraction())
        } else {
            Duration::ZERO
        };

        until.max(spread)
    }

    fn of_instance<T>(
        &self,
        uid: &str,
        container: &str,
        otherwise: T,
        ask: impl Fn(&Instance) -> T,
    ) -> T {
        let pods = self.lock();
        let instance = pods
            .get(uid)
            .and_then(|probes| probes.instances.get(container));
        instance.map_or(otherwise, ask)
    }

    /// Stores a result, if the instance is still the one that was probed. Returns whether it has
    /// changed.
    fn store_result(self: &Arc<Shared>, task: &Task, passed: bool) -> bool {
        let mut pods = self.lock();
        let Some(probes) = pods.get_mut(&task.uid) else {
            return false;
        };
        let name = &task.prober.container.name;
        let is_ending = probes.is_ending;

        let Some(instance) = probes.instances.get_mut(name) else {
            return false;
        };
        if instance.id != task.prober.container_id
            || (is_ending && task.kind != ProbeKind::Readiness)
        {
            return false;
        }

        let changed = instance.store(task.kind, passed);

        if is_settled(task.kind, passed) {
            self.begin_due(probes, name);
        }

        changed
    }

    fn record_event(&self, task: &Task, outcome: &Outcome) {
        let Some((reason, text)) = event(task.kind, outcome) else {
            return;
        };
        let pods = self.lock();
        let Some(probes) = pods.get(&task.uid) else {
            return;
        };

        let Some(instance) = probes.instances.get(&task.prober.container.name) else {
            return;
        };
        let about = probes
            .pod
            .container_reference(instance.kind, &instance.container.name);
        self.events.warning(&about, reason, text);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Text, PodProbes>> {
        self.pods.lock()
    }
}

/// One probe of one instance of a container.
struct Task {
    shared: Weak<Shared>,
    uid: Text,
    kind: ProbeKind,
    probe: Probe,
    delay: Duration,
    probed: ProbedContainer,
    prober: Prober,
}

/// A probe, as metrics name it.
fn probed(pod: &Pod, container: &str, kind: ProbeKind) -> ProbedContainer {
    ProbedContainer {
        container: Text::new(container),
        namespace: Text::new(pod.namespace()),
        pod: Text::new(pod.name()),
        uid: Text::new(pod.uid()),
        kind,
    }
}

impl Task {
    async fn run(self) {
        let mut streak = Streak::default();
        let mut ticks = interval_at(Instant::now() + self.delay, period(&self.probe));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);

        loop {
            ticks.tick().await;
            let began = Instant::now();
            let outcome = self.prober.probe(&self.probe).await;
            let Some(shared) = self.shared.upgrade() else {
                return;
            };
            let took = began.elapsed();
            shared.metrics.probed(&self.probed, &outcome, took);
            shared.record_event(&self, &outcome);

            let passed = match outcome {
                Outcome::Passed | Outcome::Warned(_) => true,
                Outcome::Failed(_) => false,
                Outcome::Error { .. } => continue,
            };

            let Some(passed) = streak.add(passed, &self.probe) else {
                continue;
            };

            let changed = shared.store_result(&self, passed);
            if changed {
                self.report(&shared, passed).await;
            }
            if is_settled(self.kind, passed) {
                return;
            }
        }
    }

    async fn report(&self, shared: &Shared, passed: bool) {
        let result = ProbeResult {
            uid: self.uid.clone(),
            container: Text::new(&self.prober.container.name),
            container_id: Text::new(&self.prober.container_id),
            kind: self.kind,
            passed,
        };
        if shared.results.send(result).await.is_err() {
            tracing::debug!(uid = %self.uid, "probe result dropped: the kubelet is stopping");
        }
    }
}

fn period(probe: &Probe) -> Duration {
    let seconds = probe
        .period_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    Duration::from_secs(seconds.unwrap_or(10).max(1))
}
