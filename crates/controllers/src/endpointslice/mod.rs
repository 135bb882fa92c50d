//! The EndpointSlice controller: the addresses behind each Service.
//!
//! `desired` computes the endpoints from pods and nodes, `fill` distributes them over slices with
//! as few changes as possible, `slices` writes them; own writes must be observed before the Service
//! is reconciled again.

pub(crate) mod desired;
pub mod fill;
pub(crate) mod slices;
#[cfg(test)]
mod tests;
pub mod topology;
pub(crate) mod trigger;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use coracle_base::error_chain;
use coracle_base::sync::Mutex;
use coracle_client::ownership::Controller as Owner;
use coracle_client::{
    Cached, Change, Informer, ObjectKey, ObjectReference, Recorder, Resource, WorkQueue,
};

use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::{Node, Pod, Service};
use desired::{Desired, Nodes};
use fill::{Changes, Slice, SliceTemplate};
pub use slices::SliceError;
use slices::Slices;
use topology::{Allocated, Zones};
use trigger::Triggers;

/// The service account.
pub(crate) const ACCOUNT: &str = "endpointslice-controller";

pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const OUR_NAME: &str = "endpointslice-controller.k8s.io";
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";

/// How slices are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of workers.
    pub workers: usize,
    /// The most endpoints of a slice.
    pub max_endpoints_per_slice: usize,
    /// How long changes of pods are batched.
    pub batch: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            workers: 5,
            max_endpoints_per_slice: 100,
            batch: Duration::ZERO,
        }
    }
}

/// All that was observed of a Service.
#[derive(Debug)]
pub struct Observed {
    service: Arc<Cached<Service>>,
    pods: Vec<Arc<Cached<Pod>>>,
    nodes: Nodes,
    slices: Vec<Arc<Cached<Slice>>>,
    triggers: Triggers,
    limit: usize,
    /// The zones, if the Service uses topology hints.
    zones: Zones,
    /// Whether it had such hints before.
    is_hinted: bool,
}

/// What to do.
#[derive(Debug)]
pub struct Plan {
    changes: Changes,
    triggers: Triggers,
    /// Pods that were omitted because their nodes are unknown.
    without_node: usize,
    hints: Hints,
}

/// The result of the topology hints.
#[derive(Debug, Default)]
struct Hints {
    /// How many endpoints each zone has, of each family with hints.
    allocated: BTreeMap<&'static str, Allocated>,
    /// The message of the event.
    enabled: Option<String>,
    disabled: Vec<String>,
}

/// The controller. Its keys are Services.
pub struct EndpointSlices {
    services: Informer<Service>,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    slices: Slices,
    recorder: Recorder,
    config: Config,
    remembered: Memory,
}

type Memory = Arc<Mutex<BTreeMap<ObjectKey, Remembered>>>;

#[derive(Clone, Default)]
struct Remembered {
    triggers: Triggers,
    hinted: BTreeMap<&'static str, Allocated>,
}

/// Why slices could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Slices(#[from] SliceError),
    #[error("{0} pods are on unknown nodes")]
    Homeless(usize),
}

/// Runs the controller. Never returns.
pub async fn run(context: &Context, config: Config) {
    let queue = WorkQueue::new("endpoint_slice");
    let mut feeds = Feeds::new();
    let controller = EndpointSlices::new(context, config, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, config.workers)
        .await;
}

impl EndpointSlices {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        config: Config,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> EndpointSlices {
        let core = |plural| Resource::builtin("", "v1", plural);
        let services: Informer<Service> = context.informers.of(&core("services"));
        let pods: Informer<Pod> = context.informers.of(&core("pods"));
        let nodes: Informer<Node> = context.informers.of(&core("nodes"));
        follow_services_and_pods(feeds, &services, &pods, queue, config.batch);
        let remembered = Memory::default();
        follow_nodes(feeds, &nodes, remembered.clone(), queue.clone());

        EndpointSlices {
            slices: Slices::follow(context, ACCOUNT, OUR_NAME, queue, feeds),
            recorder: context
                .recorder
                .clone()
                .component("endpoint-slice-controller"),
            remembered,
            config,
            services,
            pods,
            nodes,
        }
    }

    fn remembered(&self, key: &ObjectKey) -> Remembered {
        let remembered = self.remembered.lock();
        remembered.get(key).cloned().unwrap_or_default()
    }

    fn remember(&self, key: &ObjectKey, with: impl FnOnce(&mut Remembered)) {
        with(self.remembered.lock().entry(key.clone()).or_default());
    }
}

/// Wakes the Services whose hints no longer match the zones. Other fields of nodes are read when
/// slices are computed.
fn follow_nodes(
    feeds: &mut Feeds,
    nodes: &Informer<Node>,
    memory: Memory,
    queue: WorkQueue<ObjectKey>,
) {
    let all = nodes.clone();
    feeds.follow(nodes, move |change| {
        if matches!(&change, Change::Updated { old, new } if topology::is_same(old, new)) {
            return;
        }

        let memory = memory.lock();
        let mut hinted = memory
            .iter()
            .filter(|(_, remembered)| !remembered.hinted.is_empty())
            .peekable();

        if hinted.peek().is_none() {
            return;
        }

        let zones = zones(&all);
        for (service, remembered) in hinted {
            if remembered
                .hinted
                .values()
                .any(|allocated| topology::is_overloaded(allocated, &zones))
            {
                queue.add(service.clone());
            }
        }
    });
}

fn zones(nodes: &Informer<Node>) -> Zones {
    let nodes = nodes.list();
    Zones::of(nodes.iter().map(|node| &node.object))
}

/// Wakes the Services concerned by a change of a Service or a pod.
pub(crate) fn follow_services_and_pods(
    feeds: &mut Feeds,
    services: &Informer<Service>,
    pods: &Informer<Pod>,
    queue: &WorkQueue<ObjectKey>,
    batch: Duration,
) {
    let concerned = queue.clone();
    feeds.follow(services, move |change| {
        if let Some(service) = change.object() {
            concerned.add(service.key.clone());
        }
    });

    let (concerned, services) = (queue.clone(), services.clone());
    feeds.follow(pods, move |change| {
        let Some(pod) = change.object() else { return };
        let before = match change {
            Change::Updated { old, new } if is_same_endpoint(old, new) => return,
            Change::Updated { old, new } if old.labels != new.labels => Some(old),
            _ => None,
        };

        for service in services.list_namespace(&pod.key.namespace) {
            let chosen = service.selects(&pod.labels)
                || before.is_some_and(|old| service.selects(&old.labels));
            if chosen && service.chooses_pods() {
                concerned.add_after(service.key.clone(), batch);
            }
        }
    });
}

/// Whether nothing changed that endpoints show.
fn is_same_endpoint(old: &Pod, new: &Pod) -> bool {
    let ended = |pod: &Pod| !desired::is_endpoint(pod);
    (old.labels == new.labels
        && old.is_being_deleted == new.is_being_deleted
        && ended(old) == ended(new))
        && (old.ips == new.ips && old.is_ready() == new.is_ready() && old.node == new.node)
        && (old.hostname == new.hostname
            && old.subdomain == new.subdomain
            && old.ports == new.ports)
}

impl Observed {
    /// Sets the topology hints of a family's endpoints, if the Service uses them.
    fn hint(&self, family: &'static str, desired: &mut Desired, hints: &mut Hints) {
        if !topology::wants(&self.service) {
            if self.is_hinted && hints.disabled.is_empty() {
                let why = format!("Topology Aware Hints has been disabled, addressType: {family}");
                hints.disabled.push(why);
            }
            return;
        }

        let own = self.slices.iter().filter(|slice| slice.family() == family);
        let existing: Vec<&[Value]> = own.map(|slice| slice.items("endpoints")).collect();
        let mut endpoints: Vec<&mut Value> = desired
            .groups
            .iter_mut()
            .flat_map(|group| &mut group.endpoints)
            .collect();

        match topology::assign(&mut endpoints, &existing, &self.zones) {
            Ok(allocated) => {
                if !self.is_hinted && hints.allocated.is_empty() {
                    let message =
                        format!("Topology Aware Hints has been enabled, addressType: {family}");
                    hints.enabled = Some(message);
                }
                hints.allocated.insert(family, allocated);
            }
            Err(why) => hints.disabled.push(format!("{why}, addressType: {family}")),
        }
    }
}

/// What all slices of a Service have in common.
fn template(service: &Cached<Service>, trigger: Option<Timestamp>, limit: usize) -> SliceTemplate {
    let meta = service.object.object.meta();
    let mut labels = Map::new();
    for (key, value) in meta.labels().into_iter().flat_map(|labels| labels.iter()) {
        if !matches!(key, MANAGED_BY | SERVICE_NAME | HEADLESS) {
            labels.insert(key, value.clone());
        }
    }

    if service.is_headless() {
        labels.insert(HEADLESS, "");
    }

    labels.insert(SERVICE_NAME, meta.name());
    labels.insert(MANAGED_BY, OUR_NAME);

    SliceTemplate {
        namespace: service.key.namespace.clone(),
        prefix: format!("{}-", meta.name()),
        labels,
        annotations: None,
        trigger: trigger.map(|trigger| Time(trigger).text()),
        owner: Owner {
            api_version: "v1".into(),
            kind: "Service".into(),
            name: service.key.name.clone(),
            uid: service.uid.clone(),
        },
        limit,
    }
}

#[async_trait]
impl Controller for EndpointSlices {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "endpointslice-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(service) = self.services.get(key) else {
            // Its slices are garbage collected: it owns them.
            self.remembered.lock().remove(key);
            self.slices.forget(key);
            return Observation::Absent;
        };

        if !service.chooses_pods() || service.object.object.meta().is_being_deleted() {
            return Observation::Absent;
        }

        let Some(slices) = self.slices.of(key) else {
            return Observation::Behind;
        };
        let remembered = self.remembered(key);
        let pods: Vec<_> = self
            .pods
            .list_namespace(&key.namespace)
            .into_iter()
            .filter(|pod| service.selects(&pod.labels))
            .collect();

        let node = |pod: &Arc<Cached<Pod>>| {
            Some((
                pod.node.clone(),
                self.nodes.get(&ObjectKey::cluster(&pod.node))?,
            ))
        };

        let observed = Observed {
            nodes: pods.iter().filter_map(node).collect(),
            triggers: remembered.triggers,
            limit: self.config.max_endpoints_per_slice,
            zones: if topology::wants(&service) {
                zones(&self.nodes)
            } else {
                Zones::default()
            },
            is_hinted: !remembered.hinted.is_empty(),
            slices,
            pods,
            service,
        };

        Observation::Present {
            uid: observed.service.uid.clone(),
            observed,
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        let Observed {
            service,
            pods,
            nodes,
            slices,
            ..
        } = observed;

        let mut triggers = observed.triggers.clone();
        let trigger = triggers.advance(service, pods);
        let families = service.families();
        let mut groups = Vec::new();

        let (mut without_node, mut hints) = (0, Hints::default());
        for family in &families {
            let mut desired = desired::desired(service, pods, nodes, family);
            observed.hint(family, &mut desired, &mut hints);
            groups.extend(desired.groups);
            without_node = without_node.max(desired.without_node);
        }

        let template = template(service, trigger, observed.limit);
        Plan {
            changes: fill::fill(slices, &groups, &families, &template, true),
            triggers,
            without_node,
            hints,
        }
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        if let Err(error) = self.slices.write(key, &plan.changes).await {
            let about = ObjectReference::of(&observed.service.object.object);
            let message = format!(
                "Error updating Endpoint Slices for Service {key}: {}",
                error_chain(&error)
            );
            self.recorder
                .warning(&about, "FailedToUpdateEndpointSlices", message);
            return Err(error.into());
        }

        let about = ObjectReference::of(&observed.service.object.object);
        for why in plan.hints.disabled {
            self.recorder
                .warning(&about, "TopologyAwareHintsDisabled", why);
        }

        if let Some(enabled) = plan.hints.enabled {
            self.recorder
                .normal(&about, "TopologyAwareHintsEnabled", enabled);
        }

        self.remember(key, |remembered| {
            remembered.triggers = plan.triggers;
            remembered.hinted = plan.hints.allocated;
        });

        if plan.without_node > 0 {
            return Err(ActError::Homeless(plan.without_node));
        }

        Ok(Requeue::OnEvent)
    }
}
