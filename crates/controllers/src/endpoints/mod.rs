//! The Endpoints controller: the addresses behind each Service in the old API.

pub mod plan;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use coracle_base::sync::Mutex;
use coracle_client::{
    Access, Cached, DeleteOptions, Error, Informer, ObjectKey, ObjectReference, Recorder, Resource,
    Whole, WorkQueue,
};

use crate::endpointslice::fill::TRIGGER;
use crate::endpointslice::trigger::Triggers;
use crate::endpointslice::{HEADLESS, follow_services_and_pods};
use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::own_writes::OwnWrites;
use crate::views::{Pod, Service};

/// The service account.
pub(crate) const ACCOUNT: &str = "endpoint-controller";

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const OUR_NAME: &str = "endpoint-controller";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

/// All that was observed of a Service.
#[derive(Debug)]
pub struct Observed {
    service: Option<Arc<Cached<Service>>>,
    pods: Vec<Arc<Cached<Pod>>>,
    endpoints: Option<Arc<Cached<Whole>>>,
    triggers: Triggers,
}

/// What to do.
#[derive(Debug)]
pub struct Plan {
    write: Write,
    triggers: Triggers,
}

#[derive(Debug)]
enum Write {
    Nothing,
    Create(Value),
    Update(Value),
    /// The Service was deleted.
    Delete,
}

/// The controller. Its keys are Services, and with them the Endpoints of the same name.
pub struct Endpoints {
    services: Informer<Service>,
    pods: Informer<Pod>,
    endpoints: Informer<Whole>,
    access: Access,
    recorder: Recorder,
    triggers: Mutex<BTreeMap<ObjectKey, Triggers>>,
    written: OwnWrites,
}

/// The resource name under which own writes are noted.
const ENDPOINTS: &str = "endpoints";

/// Why Endpoints could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error("cannot write endpoints")]
    Write(#[source] Error),
    #[error("cannot delete endpoints")]
    Delete(#[source] Error),
}

/// Runs the controller with `workers` workers; changes of pods are batched for `batch`. Never
/// returns.
pub async fn run(context: &Context, workers: usize, batch: Duration) {
    let queue = WorkQueue::new("endpoint");
    let mut feeds = Feeds::new();
    let controller = Endpoints::new(context, batch, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, workers)
        .await;
}

impl Endpoints {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        batch: Duration,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> Endpoints {
        let core = |plural| Resource::builtin("", "v1", plural);
        let services: Informer<Service> = context.informers.of(&core("services"));
        let pods: Informer<Pod> = context.informers.of(&core("pods"));
        let endpoints: Informer<Whole> = context.informers.of(&core("endpoints"));
        follow_services_and_pods(feeds, &services, &pods, queue, batch);

        let concerned = queue.clone();
        feeds.follow(&endpoints, move |change| {
            if let Some(endpoints) = change.object() {
                concerned.add(endpoints.key.clone());
            }
        });

        Endpoints {
            access: context.client(ACCOUNT).resource(&core("endpoints")),
            recorder: context.recorder.clone().component("endpoint-controller"),
            triggers: Mutex::default(),
            written: OwnWrites::default(),
            services,
            pods,
            endpoints,
        }
    }
}

/// The desired Endpoints, based on the existing ones; `None` if nothing changes.
fn changed(
    observed: &Observed,
    service: &Cached<Service>,
    trigger: Option<Timestamp>,
) -> Option<Value> {
    let (subsets, truncated) = plan::subsets(service, &observed.pods, plan::CAPACITY);
    let held = observed
        .endpoints
        .as_ref()
        .map(|endpoints| &*endpoints.object);

    let labels = labels(service);
    let is_marked = |held: &Value| held.meta().annotation(OVER_CAPACITY).is_some();
    if let Some(held) = held {
        let had = held
            .get("subsets")
            .and_then(Value::as_array)
            .unwrap_or_default();
        let same_labels = held.meta().labels().cloned().unwrap_or_default() == labels;
        if had == subsets && same_labels && is_marked(held) == truncated {
            return None;
        }
    }

    let mut object = held.cloned().unwrap_or_else(|| {
        let mut object = Map::new();
        object.insert("apiVersion", "v1");
        object.insert("kind", "Endpoints");
        Value::Object(object)
    });
    let mut meta = object.meta_mut();
    meta.set_name(&service.key.name);

    meta.set_namespace(&service.key.namespace);
    meta.set_labels(labels);
    meta.set_annotation(
        TRIGGER,
        trigger.map(|trigger| Time(trigger).text()).as_deref(),
    );

    meta.set_annotation(OVER_CAPACITY, truncated.then_some("truncated"));

    if let Some(members) = object.as_object_mut() {
        members.insert("subsets", subsets);
    }

    Some(object)
}

fn labels(service: &Cached<Service>) -> Map {
    let mut labels = service
        .object
        .object
        .meta()
        .labels()
        .cloned()
        .unwrap_or_default();

    match service.is_headless() {
        true => drop(labels.insert(HEADLESS, "")),
        false => drop(labels.remove(HEADLESS)),
    }

    labels.insert(MANAGED_BY, OUR_NAME);

    labels
}

#[async_trait]
impl Controller for Endpoints {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = ActError;

    const NAME: &'static str = "endpoints-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let endpoints = self.endpoints.get(key);
        let mut triggers = self.triggers.lock();
        let Some(service) = self.services.get(key) else {
            triggers.remove(key);
            self.written.forget(key);

            // Endpoints of other managers are left alone.
            let ours = |endpoints: &Arc<Cached<Whole>>| {
                endpoints.meta().label(MANAGED_BY) == Some(OUR_NAME)
            };
            let Some(endpoints) = endpoints.filter(ours) else {
                return Observation::Absent;
            };
            let uid = endpoints.uid.clone();

            let observed = Observed {
                service: None,
                pods: Vec::new(),
                endpoints: Some(endpoints),
                triggers: Triggers::default(),
            };

            return Observation::Present { uid, observed };
        };

        if !service.chooses_pods() || service.object.object.meta().is_being_deleted() {
            return Observation::Absent;
        }

        // An own write may not be observed yet: writing again would conflict.
        if self
            .written
            .is_behind(key, &[(ENDPOINTS, self.endpoints.version())])
        {
            return Observation::Behind;
        }

        let pods = self.pods.list_namespace(&key.namespace).into_iter();
        let observed = Observed {
            pods: pods.filter(|pod| service.selects(&pod.labels)).collect(),
            triggers: triggers.get(key).cloned().unwrap_or_default(),
            service: Some(service.clone()),
            endpoints,
        };

        Observation::Present {
            uid: service.uid.clone(),
            observed,
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        let mut triggers = observed.triggers.clone();
        let Some(service) = &observed.service else {
            return Plan {
                write: Write::Delete,
                triggers,
            };
        };

        let trigger = triggers.advance(service, &observed.pods);
        let write = match (changed(observed, service, trigger), &observed.endpoints) {
            (None, _) => Write::Nothing,
            (Some(object), None) => Write::Create(object),
            (Some(object), Some(_)) => Write::Update(object),
        };

        Plan { write, triggers }
    }

    async fn act(
        &self,
        key: &ObjectKey,
        observed: Observed,
        plan: Plan,
    ) -> Result<Requeue, ActError> {
        let access = self.access.clone().namespace(&key.namespace);
        let (written, verb) = match &plan.write {
            Write::Nothing => (Ok(None), ""),
            Write::Create(object) => (access.create(object).await.map(Some), "Create"),
            Write::Update(object) => (access.update(object).await.map(Some), "Update"),
            Write::Delete => {
                let deleted = access.delete(&key.name, &DeleteOptions::default()).await;
                let gone = deleted.map(drop).or_else(|error| {
                    if error.is_not_found() {
                        Ok(())
                    } else {
                        Err(error)
                    }
                });

                return gone.map(|()| Requeue::OnEvent).map_err(ActError::Delete);
            }
        };

        match written {
            Ok(None) => {}
            Ok(Some(written)) => self.written.note(key, ENDPOINTS, &written),
            Err(error) if error.has_cause("NamespaceTerminating") => return Ok(Requeue::OnEvent),
            Err(error) => {
                if let Some(service) = &observed.service {
                    let about = ObjectReference::of(&service.object.object);
                    let reason = format!("FailedTo{verb}Endpoint");
                    let message =
                        format!("Failed to {} endpoint {key}: {error}", verb.to_lowercase());
                    self.recorder.warning(&about, &reason, message);
                }
                return Err(ActError::Write(error));
            }
        }

        self.triggers.lock().insert(key.clone(), plan.triggers);

        Ok(Requeue::OnEvent)
    }
}
