//! The operator: counts the pods that match a selector.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::selector::LabelSelector;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::{
    Access, Cached, Change, DeleteOptions, Error, Informer, Metadata, ObjectKey, ObjectReference,
    Patch, Recorder, Resource, Selection, Whole, WorkQueue,
};
use coracle_controllers::{Context, Controller, Feeds, Observation, Requeue, Runner};

/// The objects that ask for pods to be counted.
struct Kind {
    resource: Resource,
    /// Their label selector; empty: all.
    labels: &'static str,
    /// The object that holds `selector`.
    input: &'static str,
    /// The object that holds `count`.
    output: &'static str,
    /// The subresource through which the count is written; `None`: the object itself.
    subresource: Option<&'static str>,
}

impl Kind {
    /// ConfigMaps with a label: works on any cluster, without installing anything.
    fn config_maps() -> Kind {
        Kind {
            resource: Resource::builtin("", "v1", "configmaps"),
            labels: "example.com/pod-count=true",
            input: "data",
            output: "data",
            subresource: None,
        }
    }

    /// A custom resource with `spec` and `status`.
    #[expect(
        dead_code,
        reason = "it shows what changes when a CustomResourceDefinition is installed"
    )]
    fn custom() -> Kind {
        Kind {
            resource: Resource::new("example.com", "v1", "podcounts", "PodCount", true),
            labels: "",
            input: "spec",
            output: "status",
            subresource: Some("status"),
        }
    }
}

/// The kind that this operator reconciles. With a CustomResourceDefinition, this line is
/// `Kind::custom()`.
fn kind() -> Kind {
    Kind::config_maps()
}

/// Keeps an object until its list has been deleted.
const FINALIZER: &str = "example.com/pod-list";
/// The field manager of this operator's writes.
const MANAGER: &str = "pod-counter";

/// What is observed of one object.
struct Observed {
    object: Arc<Cached<Whole>>,
    /// The names of the selected pods, in order; `None` if the selector is invalid.
    pods: Option<Vec<String>>,
}

/// What to do with one object.
#[derive(Debug, PartialEq)]
enum Plan {
    /// It is new: add the finalizer before anything is created for it.
    Keep,
    /// Write this, unless it is there already.
    Report(Vec<String>),
    /// The selector is invalid: record an event.
    ReportInvalid,
    /// It is being deleted: delete what was created for it.
    CleanUp,
    /// It is being deleted and waits for others.
    Nothing,
}

/// Decides. Pure: it can be tested with a table of cases, without a server.
fn plan(observed: &Observed) -> Plan {
    let meta = observed.object.meta();
    match (
        meta.is_being_deleted(),
        meta.has_finalizer(FINALIZER),
        &observed.pods,
    ) {
        (true, true, _) => Plan::CleanUp,
        (true, false, _) => Plan::Nothing,
        (false, false, _) => Plan::Keep,
        (false, true, Some(names)) => Plan::Report(names.clone()),
        (false, true, None) => Plan::ReportInvalid,
    }
}

struct PodCounter {
    kind: Kind,
    objects: Informer<Whole>,
    /// Of pods only the metadata are kept, and requested from the server.
    pods: Informer<Metadata>,
    access: Access,
    lists: Access,
    recorder: Recorder,
}

/// Runs the operator. Never returns.
pub(crate) async fn run(context: &Context) {
    let (queue, mut feeds) = (WorkQueue::new("pod-counter"), Feeds::new());
    let counter = PodCounter::new(context, &queue, &mut feeds);
    Runner::new(counter, queue, context).run(feeds, 2).await;
}

impl PodCounter {
    fn new(context: &Context, queue: &WorkQueue<ObjectKey>, feeds: &mut Feeds) -> PodCounter {
        let (kind, client) = (kind(), context.client(MANAGER));
        let objects = context
            .informers
            .of(Selection::all(&kind.resource).labels(kind.labels));
        let pods = context.informers.of(&Resource::builtin("", "v1", "pods"));

        // Events only select keys; the state is read when the key is taken from the queue.
        let keys = queue.clone();
        feeds.follow(&objects, move |change: &Change<Whole>| {
            change
                .object()
                .iter()
                .for_each(|object| keys.add(object.key.clone()));
        });

        let (keys, asking) = (queue.clone(), objects.clone());
        feeds.follow(&pods, move |change: &Change<Metadata>| {
            let namespace = change
                .object()
                .map(|pod| pod.key.namespace.clone())
                .unwrap_or_default();
            asking
                .list_namespace(&namespace)
                .iter()
                .for_each(|object| keys.add(object.key.clone()));
        });

        PodCounter {
            access: client.resource(&kind.resource).manager(MANAGER),
            lists: client
                .resource(&Resource::builtin("", "v1", "configmaps"))
                .manager(MANAGER),
            recorder: context.recorder.clone().component(MANAGER),
            kind,
            objects,
            pods,
        }
    }

    /// Writes the number of pods as the object's status, and their names into the list.
    async fn report(&self, object: &Cached<Whole>, names: &[String]) -> Result<(), Error> {
        let list = config_map(&list_name(&object.key), &object.key.namespace, names);
        let lists = self.lists.clone().namespace(&object.key.namespace);

        let apply = Patch::Apply {
            object: list,
            manager: MANAGER.to_string(),
            force: true,
        };
        lists.patch(&list_name(&object.key), &apply).await?;

        let count = names.len().to_string();
        if object
            .at(&[self.kind.output, "count"])
            .and_then(Value::as_str)
            == Some(&count)
        {
            return Ok(()); // Skip a write that changes nothing: its event would wake us again, forever.
        }

        let mut access = self.access.clone().namespace(&object.key.namespace);
        if let Some(subresource) = self.kind.subresource {
            access = access.subresource(subresource);
        }

        let output = member(self.kind.output, member("count", count.as_str().into()));
        access
            .patch(&object.key.name, &Patch::Merge(output))
            .await
            .map(drop)
    }

    /// Deletes the list, and then removes the finalizer.
    async fn clean_up(&self, object: &Cached<Whole>) -> Result<(), Error> {
        let lists = self.lists.clone().namespace(&object.key.namespace);
        match lists
            .delete(&list_name(&object.key), &DeleteOptions::default())
            .await
        {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        let mut freed = Value::clone(&object.object);
        freed.meta_mut().remove_finalizer(FINALIZER);
        self.update(object, &freed).await
    }

    /// Writes the whole object back with the version it was read at: if it has changed since, the
    /// server reports a conflict, and the key is retried.
    async fn update(&self, object: &Cached<Whole>, changed: &Value) -> Result<(), Error> {
        let access = self.access.clone().namespace(&object.key.namespace);
        match access.update(changed).await {
            Err(error) if error.is_not_found() => Ok(()),
            done => done.map(drop),
        }
    }
}

#[async_trait]
impl Controller for PodCounter {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Plan;
    type Error = Error;

    const NAME: &'static str = "pod-counter";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(object) = self.objects.get(key) else {
            return Observation::Absent;
        };
        let input = object
            .at(&[self.kind.input, "selector"])
            .and_then(Value::as_str);

        let selector = input.and_then(|input| input.parse::<LabelSelector>().ok());
        let pods = selector.map(|selector| {
            let empty = Map::new();
            let pods = self.pods.list_namespace(&key.namespace);
            let matching = pods
                .iter()
                .filter(|pod| selector.matches(pod.meta().labels().unwrap_or(&empty)));
            matching.map(|pod| pod.key.name.to_string()).collect()
        });

        Observation::Present {
            uid: object.uid.clone(),
            observed: Observed { object, pods },
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Plan {
        plan(observed)
    }

    async fn act(&self, _: &ObjectKey, observed: Observed, plan: Plan) -> Result<Requeue, Error> {
        let object = &observed.object;
        match plan {
            Plan::Keep => {
                let mut kept = Value::clone(&object.object);
                kept.meta_mut().add_finalizer(FINALIZER);
                self.update(object, &kept).await?;
            }
            Plan::Report(names) => self.report(object, &names).await?,
            Plan::ReportInvalid => {
                let about = ObjectReference::of(&object.object);
                self.recorder
                    .warning(&about, "BadSelector", "invalid selector");
            }
            Plan::CleanUp => self.clean_up(object).await?,
            Plan::Nothing => {}
        }

        Ok(Requeue::OnEvent)
    }
}

fn list_name(key: &ObjectKey) -> String {
    format!("{}-pods", key.name)
}

fn config_map(name: &str, namespace: &str, names: &[String]) -> Value {
    let mut map = member("data", member("pods", names.join("\n").as_str().into()));
    let members = map.as_object_mut().expect("made as one");
    members.insert("apiVersion", "v1");
    members.insert("kind", "ConfigMap");
    map.meta_mut().set_name(name);
    map.meta_mut().set_namespace(namespace);
    map
}

fn member(name: &'static str, value: Value) -> Value {
    let mut map = Map::new();
    map.insert(name, value);
    Value::Object(map)
}
