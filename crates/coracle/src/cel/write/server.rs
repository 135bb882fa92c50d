//! An API server of this process, over a store in a folder, and what it notes of requests.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_api::catalog::split_api_version;
use coracle_api::{Map, Value};
use coracle_apiserver::authn::User;
use coracle_apiserver::{Config, InProcess, Listeners};
use coracle_base::sync::Mutex;
use coracle_client::transport::Body;
use coracle_client::{
    Access, Client, Error, Journal, ListOptions, Mapper, Mapping, MappingError, Resource, Tasks,
    Transport, TransportError, WatchEvent,
};
use coracle_controllers::{Manager, Selected};
use coracle_metrics::Registry;
use coracle_store::embedded::Embedded;
use http::{Request, Response, header};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::WriteError;
use super::manifests::{described, namespace_of};
use super::roles;
use crate::world::WORLD;
use crate::{controllers, process};

/// The server, and a client of its administrator.
pub(super) struct Server {
    in_process: InProcess,
    mapper: Mapper,
    client: Client,
    notes: Arc<Mutex<Notes>>,
    store: Arc<Embedded>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<Result<(), coracle_apiserver::RunError>>,
    tasks: Tasks,
}

/// What the server said beside its answers.
#[derive(Clone, Default)]
pub(super) struct Notes {
    pub(super) warnings: Vec<String>,
    pub(super) audit: Vec<(String, String)>,
}

impl Server {
    pub(super) async fn start(folder: &Path) -> Result<Server, WriteError> {
        let notes = Arc::new(Mutex::new(Notes::default()));
        read_audit_annotations(&notes);

        let store = process::open_store(folder, coracle_store::embedded::Config::default())?;
        let in_process = InProcess::default();
        let listeners = Listeners {
            listener: None,
            in_process: in_process.clone(),
        };
        let (stop, stopped) = watch::channel(false);
        let (ready, is_ready) = oneshot::channel();
        let below = store.clone();
        let serving = tokio::spawn(async move {
            let config = Config::in_process();
            let ready = || ready.send(()).unwrap_or_default();
            coracle_apiserver::run(&config, listeners, below, WORLD, stopped, ready).await
        });
        if is_ready.await.is_err() {
            return Err(match serving.await {
                Ok(Err(error)) => WriteError::Server(error),
                _ => WriteError::Ended,
            });
        }

        let tasks = Tasks::new();
        let api = in_process.clone();
        tasks.spawn(async move {
            let manager = Manager {
                selected: Selected::parse(&[TYPE_CHECKS.to_owned()]).expect("it exists"),
                ..Manager::default()
            };
            controllers::run(&api, &manager, None, &Journal::new(), &Registry::default()).await;
        });

        let client = in_process.client(administrator(), WORLD);
        Ok(Server {
            mapper: Mapper::new(client.discovery()),
            client,
            in_process,
            notes,
            store,
            stop,
            serving,
            tasks,
        })
    }

    pub(super) async fn stop(self) {
        self.tasks.stop().await;
        self.stop.send_replace(true);
        if let Err(error) = self.serving.await {
            tracing::debug!(%error, "the server did not end as it should");
        }
        self.store.close();
    }

    /// The resource of an object's kind.
    pub(super) async fn mapping(&self, object: &Value) -> Result<Mapping, Error> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = split_api_version(text("apiVersion"));
        let found = self.mapper.of_kind(group, version, text("kind")).await;
        found.map_err(|error| match error {
            MappingError::Discovery(error) => error,
            unknown => Error::Request(unknown.to_string()),
        })
    }

    /// Requests about an object by a user, or by the administrator, whose warnings are noted.
    pub(super) fn access(
        &self,
        mapping: &Mapping,
        object: &Value,
        user: Option<&str>,
        groups: &[String],
    ) -> Access {
        let user = match user {
            None => administrator(),
            Some(name) => User {
                name: name.to_owned(),
                groups: groups.to_vec(),
                ..User::default()
            }
            .authenticated(),
        };

        let noting = Noting {
            inner: self.in_process.transport(user),
            notes: self.notes.clone(),
        };
        let client = Client::new(Arc::new(noting), WORLD);
        let access = client.resource(&mapping.resource).manager("coracle-cel");
        access.namespace(namespace_of(object))
    }

    /// Creates an object of a manifest as the administrator.
    pub(super) async fn create(&self, object: &Value) -> Result<(), WriteError> {
        let refused = |error| WriteError::Manifest {
            what: described(object),
            error,
        };
        let mapping = self.mapping(object).await.map_err(refused)?;
        let access = self.client.resource(&mapping.resource);
        match access.namespace(namespace_of(object)).create(object).await {
            // Every cluster has some: the namespace `default`, a few roles.
            Err(Error::Refused(status)) if status.reason == "AlreadyExists" => {
                self.replace(&mapping, object).await.map_err(refused)
            }
            done => done.map(drop).map_err(refused),
        }
    }

    async fn replace(&self, mapping: &Mapping, object: &Value) -> Result<(), Error> {
        let access = self.client.resource(&mapping.resource);
        let access = access.namespace(namespace_of(object));
        let current = access.get(object.meta().name()).await?;
        let mut object = object.clone();
        let version = current.meta().resource_version().to_owned();
        object
            .meta_mut()
            .members()
            .insert("resourceVersion", version);
        access.update(&object).await.map(drop)
    }

    /// What users without the administrator's rights need: see [`roles`].
    pub(super) async fn aggregate_roles(&self) -> Result<(), WriteError> {
        roles::aggregate(&self.client)
            .await
            .map_err(WriteError::Read)
    }

    /// Creates a namespace with the account that its pods run as, where they are not there.
    pub(super) async fn ensure_namespace(&self, name: &str) -> Result<(), WriteError> {
        let make = |kind: &str, name: &str| {
            let mut metadata = Map::new();
            metadata.insert("name", name);
            let mut object = Map::new();
            object.insert("apiVersion", "v1");
            object.insert("kind", kind);
            object.insert("metadata", Value::Object(metadata));
            Value::Object(object)
        };
        let create = async |plural: &str, object: Value| {
            let access = self.client.resource(&Resource::builtin("", "v1", plural));
            match access.namespace(name).create(&object).await {
                Err(Error::Refused(status)) if status.reason == "AlreadyExists" => Ok(()),
                done => done.map(drop).map_err(|error| WriteError::Manifest {
                    what: described(&object),
                    error,
                }),
            }
        };
        create("namespaces", make("Namespace", name)).await?;
        create("serviceaccounts", make("ServiceAccount", "default")).await
    }

    /// Waits until the resource of a definition is served, or until its names are refused.
    pub(super) async fn wait_until_established(
        &self,
        definition: &Value,
    ) -> Result<(), WriteError> {
        let resource = Resource::builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let settled = self
            .wait_for(&resource, definition.meta().name(), |definition| {
                is_condition(definition, "Established", "True")
                    || is_condition(definition, "NamesAccepted", "False")
            })
            .await?;
        match is_condition(&settled, "Established", "True") {
            true => Ok(()),
            false => Err(WriteError::Manifest {
                what: described(definition),
                error: Error::Request("its names are those of another definition".to_owned()),
            }),
        }
    }

    /// What the server finds wrong with the types of a policy's expressions.
    pub(super) async fn type_warnings(&self, policy: &Value) -> Result<Vec<String>, WriteError> {
        if policy.get("kind").and_then(Value::as_str) != Some("ValidatingAdmissionPolicy") {
            return Ok(Vec::new());
        }
        let resource = Resource::builtin(
            "admissionregistration.k8s.io",
            "v1",
            "validatingadmissionpolicies",
        );
        let checked = self
            .wait_for(&resource, policy.meta().name(), |policy| {
                policy.at(&["status", "observedGeneration"]).is_some()
            })
            .await?;

        let warnings = checked.at(&["status", "typeChecking", "expressionWarnings"]);
        let warnings = warnings.and_then(Value::as_array).unwrap_or_default();
        let text = |of: &Value, name: &str| {
            let found = of.get(name).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let described = warnings.iter().map(|warning| {
            let (field, why) = (text(warning, "fieldRef"), text(warning, "warning"));
            format!("{}, {field}: {why}", policy.meta().name())
        });
        Ok(described.collect())
    }

    /// Waits until an object is so.
    async fn wait_for(
        &self,
        resource: &Resource,
        name: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Result<Value, WriteError> {
        let access = self.client.resource(resource);
        let found = access.get(name).await.map_err(WriteError::Read)?;
        if is_so(&found) {
            return Ok(found);
        }

        let since = ListOptions {
            field_selector: format!("metadata.name={name}"),
            resource_version: found.meta().resource_version().to_owned(),
            ..ListOptions::default()
        };
        let mut watch = access.watch(&since).await.map_err(WriteError::Read)?;
        loop {
            match watch.next().await.map_err(WriteError::Read)? {
                Some(WatchEvent::Modified(object)) if is_so(&object) => {
                    return Ok(Value::clone(&object));
                }
                Some(WatchEvent::Error(status)) => {
                    return Err(WriteError::Read(Error::Refused(status)));
                }
                None => {
                    let ended = Error::Answer("the server has ended a watch".to_owned());
                    return Err(WriteError::Read(ended));
                }
                Some(_) => {}
            }
        }
    }

    /// Forgets what it has said so far.
    pub(super) fn forget_notes(&self) {
        *self.notes.lock() = Notes::default();
    }

    pub(super) fn notes(&self) -> Notes {
        self.notes.lock().clone()
    }
}

const TYPE_CHECKS: &str = "validatingadmissionpolicy-status-controller";

fn administrator() -> User {
    User {
        name: "kubernetes-admin".to_owned(),
        groups: vec!["system:masters".to_owned()],
        ..User::default()
    }
    .authenticated()
}

fn is_condition(object: &Value, kind: &str, status: &str) -> bool {
    let conditions = object.at(&["status", "conditions"]);
    let conditions = conditions.and_then(Value::as_array).unwrap_or_default();
    let text =
        |of: &Value, name: &str, wanted: &str| of.get(name).and_then(Value::as_str) == Some(wanted);
    conditions
        .iter()
        .any(|condition| text(condition, "type", kind) && text(condition, "status", status))
}

/// A transport that notes the warnings of answers.
struct Noting {
    inner: Arc<dyn Transport>,
    notes: Arc<Mutex<Notes>>,
}

#[async_trait]
impl Transport for Noting {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let answer = self.inner.send(request).await?;
        for value in answer.headers().get_all(header::WARNING) {
            let text = String::from_utf8_lossy(value.as_bytes());
            self.notes.lock().warnings.push(warning(&text));
        }
        Ok(answer)
    }
}

/// The text of a warning header: `299 - "text"`.
fn warning(header: &str) -> String {
    let quoted = header.split_once('"').map_or(header, |(_, text)| text);
    let text = quoted.strip_suffix('"').unwrap_or(quoted);
    let mut plain = String::with_capacity(text.len());
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => plain.extend(signs.next()),
            other => plain.push(other),
        }
    }
    plain
}

/// Audit annotations are in the debug log alone, so that is where they are read.
fn read_audit_annotations(notes: &Arc<Mutex<Notes>>) {
    let layer = AuditLayer {
        notes: notes.clone(),
    };
    let subscriber = tracing_subscriber::registry::Registry::default().with(layer);
    if tracing::subscriber::set_global_default(subscriber).is_err() {
        tracing::debug!("logging is already set up");
    }
}

struct AuditLayer {
    notes: Arc<Mutex<Notes>>,
}

impl<S: Subscriber> Layer<S> for AuditLayer {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target() == "coracle_apiserver::admission::notes"
            && *metadata.level() == tracing::Level::DEBUG
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut annotation = Annotation::default();
        event.record(&mut annotation);
        if let (Some(key), Some(value)) = (annotation.key, annotation.value) {
            self.notes.lock().audit.push((key, value));
        }
    }
}

#[derive(Default)]
struct Annotation {
    key: Option<String>,
    value: Option<String>,
}

impl Visit for Annotation {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "key" => self.key = Some(value.to_owned()),
            "value" => self.value = Some(value.to_owned()),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

#[cfg(test)]
mod tests {
    use super::warning;

    #[test]
    fn a_warning_is_read_from_its_header() {
        assert_eq!(
            warning(r#"299 - "say \"no\" \\ more""#),
            r#"say "no" \ more"#
        );
        assert_eq!(warning("odd"), "odd");
    }
}
