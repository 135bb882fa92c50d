//! The EndpointSlice mirroring controller: manually written Endpoints are copied to slices.
//!
//! Only for Services without a selector; everything else about slices is shared with the
//! EndpointSlice controller.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use coracle_client::ownership::Controller as Owner;
use coracle_client::{Cached, Informer, ObjectKey, Resource, Whole, WorkQueue};

use crate::endpointslice::fill::{self, Changes, Group, Slice, SliceTemplate, TRIGGER};
use crate::endpointslice::slices::Slices;
use crate::endpointslice::{MANAGED_BY, SERVICE_NAME, SliceError};
use crate::framework::{Context, Controller, Feeds, Observation, Requeue, Runner};
use crate::views::Service;

/// The service account.
pub(crate) const ACCOUNT: &str = "endpointslicemirroring-controller";

const OUR_NAME: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How Endpoints are mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of workers.
    pub workers: usize,
    /// The most addresses mirrored from one subset.
    pub max_endpoints_per_subset: usize,
    /// How long changes are batched.
    pub batch: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            workers: 5,
            max_endpoints_per_subset: 1000,
            batch: Duration::ZERO,
        }
    }
}

/// All that was observed of Endpoints.
#[derive(Debug)]
pub struct Observed {
    /// `None` if there are none, or they are not mirrored.
    endpoints: Option<Arc<Cached<Whole>>>,
    slices: Vec<Arc<Cached<Slice>>>,
    limit: usize,
}

/// The controller. Its keys are Endpoints.
pub struct Mirroring {
    services: Informer<Service>,
    endpoints: Informer<Whole>,
    slices: Slices,
    config: Config,
}

/// Runs the controller. Never returns.
pub async fn run(context: &Context, config: Config) {
    let queue = WorkQueue::new("endpoint_slice_mirroring");
    let mut feeds = Feeds::new();
    let controller = Mirroring::new(context, config, &queue, &mut feeds);
    Runner::new(controller, queue, context)
        .run(feeds, config.workers)
        .await;
}

impl Mirroring {
    /// Creates the controller; its feeds fill `queue`.
    pub fn new(
        context: &Context,
        config: Config,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> Mirroring {
        let core = |plural| Resource::builtin("", "v1", plural);
        let services: Informer<Service> = context.informers.of(&core("services"));
        let endpoints: Informer<Whole> = context.informers.of(&core("endpoints"));

        let concerned = queue.clone();
        feeds.follow(&services, move |change| {
            if let Some(service) = change.object() {
                concerned.add(service.key.clone());
            }
        });

        let concerned = queue.clone();
        feeds.follow(&endpoints, move |change| {
            if let Some(endpoints) = change.object() {
                concerned.add_after(endpoints.key.clone(), config.batch);
            }
        });

        let slices = Slices::follow(context, ACCOUNT, OUR_NAME, queue, feeds);

        Mirroring {
            services,
            endpoints,
            slices,
            config,
        }
    }
}

/// Whether Endpoints are mirrored.
fn is_mirrored(endpoints: &Value, service: &Service) -> bool {
    let meta = endpoints.meta();
    service.selector.is_none()
        && meta.label(SKIP) != Some("true")
        && meta.annotation(LEADER).is_none()
}

/// The addresses of each subset, by family.
fn groups(endpoints: &Value, limit: usize) -> Vec<Group> {
    let mut groups = Vec::new();
    let subsets = endpoints
        .get("subsets")
        .and_then(Value::as_array)
        .unwrap_or_default();

    for subset in subsets.iter().filter_map(Value::as_object) {
        for family in ["IPv4", "IPv6"] {
            let of = |name: &str, ready: bool| {
                let addresses = subset.items(name).iter().filter_map(Value::as_object);
                let fits =
                    move |address: &&Map| address.text("ip").contains(':') == (family == "IPv6");
                addresses
                    .filter(fits)
                    .map(|address| endpoint(address, ready))
                    .collect::<Vec<_>>()
            };
            let mut found = of("addresses", true);
            found.extend(of("notReadyAddresses", false));

            found.truncate(limit);

            if !found.is_empty() {
                groups.push(Group {
                    family,
                    ports: subset.items("ports").iter().map(port).collect(),
                    endpoints: found,
                });
            }
        }
    }

    groups
}

fn endpoint(address: &Map, ready: bool) -> Value {
    let mut endpoint = Map::new();
    endpoint.insert("addresses", vec![Value::from(address.text("ip"))]);
    endpoint.object_mut("conditions").insert("ready", ready);
    for name in ["hostname", "nodeName", "targetRef"] {
        if let Some(value) = address.get(name).filter(|value| !value.is_null()) {
            endpoint.insert(name, value.clone());
        }
    }
    Value::Object(endpoint)
}

/// A port of a slice always has a name.
fn port(port: &Value) -> Value {
    let mut port = port.as_object().cloned().unwrap_or_default();
    port.get_or_insert_with("name", || Value::from(""));
    Value::Object(port)
}

fn template(endpoints: &Cached<Whole>, limit: usize) -> SliceTemplate {
    let meta = endpoints.meta();
    let mut labels = meta.labels().cloned().unwrap_or_default();
    labels.insert(SERVICE_NAME, meta.name());
    labels.insert(MANAGED_BY, OUR_NAME);
    let mut annotations = meta.annotations().cloned().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    let trigger = annotations
        .remove(TRIGGER)
        .and_then(|trigger| trigger.as_str().map(Into::into));

    SliceTemplate {
        namespace: endpoints.key.namespace.clone(),
        prefix: format!("{}-", meta.name()),
        labels,
        annotations: Some(annotations),
        trigger,
        owner: Owner {
            api_version: "v1".into(),
            kind: "Endpoints".into(),
            name: endpoints.key.name.clone(),
            uid: endpoints.uid.clone(),
        },
        limit,
    }
}

#[async_trait]
impl Controller for Mirroring {
    type Key = ObjectKey;
    type Observed = Observed;
    type Plan = Changes;
    type Error = SliceError;

    const NAME: &'static str = "endpointslice-mirroring-controller";

    fn observe(&self, key: &ObjectKey) -> Observation<Observed> {
        let Some(slices) = self.slices.of(key) else {
            return Observation::Behind;
        };
        let endpoints = self.endpoints.get(key).zip(self.services.get(key));

        let endpoints = endpoints.filter(|(endpoints, service)| is_mirrored(endpoints, service));
        let Some(uid) = endpoints
            .as_ref()
            .map(|(endpoints, _)| endpoints.uid.clone())
            .or_else(|| Some(slices.first()?.uid.clone()))
        else {
            self.slices.forget(key);
            return Observation::Absent;
        };

        let limit = self.config.max_endpoints_per_subset;
        let endpoints = endpoints.map(|(endpoints, _)| endpoints);

        Observation::Present {
            uid,
            observed: Observed {
                endpoints,
                slices,
                limit,
            },
        }
    }

    fn plan(observed: &Observed, _: Timestamp) -> Changes {
        let Some(endpoints) = &observed.endpoints else {
            let delete = observed
                .slices
                .iter()
                .map(|slice| slice.key.name.clone())
                .collect();

            return Changes {
                delete,
                ..Changes::default()
            };
        };

        let groups = groups(endpoints, observed.limit);
        fill::fill(
            &observed.slices,
            &groups,
            &["IPv4", "IPv6"],
            &template(endpoints, observed.limit),
            false,
        )
    }

    async fn act(
        &self,
        key: &ObjectKey,
        _: Observed,
        changes: Changes,
    ) -> Result<Requeue, SliceError> {
        self.slices
            .write(key, &changes)
            .await
            .map(|()| Requeue::OnEvent)
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;
    use coracle_client::Projection;

    use super::*;

    fn parsed(text: &str) -> Value {
        yaml::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_manually_written_endpoints_are_mirrored() {
        let check = |meta: &str, spec: &str, expected: bool| {
            let service = Service::project(
                &parsed(&format!("{{metadata: {{name: s}}, spec: {{{spec}}}}}")).into(),
            )
            .unwrap();
            let endpoints = parsed(&format!("{{metadata: {{name: s{meta}}}}}"));
            assert_eq!(is_mirrored(&endpoints, &service), expected, "{meta} {spec}");
        };

        check("", "", true);
        check("", "selector: {app: a}", false);
        check(
            ", labels: {endpointslice.kubernetes.io/skip-mirror: 'true'}",
            "",
            false,
        );

        check(
            ", labels: {endpointslice.kubernetes.io/skip-mirror: 'false'}",
            "",
            true,
        );

        check(
            ", annotations: {control-plane.alpha.kubernetes.io/leader: x}",
            "",
            false,
        );
    }

    #[test]
    fn a_subset_is_a_group_of_each_family() {
        let endpoints = parsed(
            "{subsets: [{addresses: [{ip: 10.0.0.1, nodeName: n}, {ip: 'fd00::1'}], notReadyAddresses: [{ip: 10.0.0.2}], \
             ports: [{port: 80, protocol: TCP}]}]}",
        );

        let found = groups(&endpoints, 9);
        assert_eq!(
            found
                .iter()
                .map(|group| (group.family, group.endpoints.len()))
                .collect::<Vec<_>>(),
            [("IPv4", 2), ("IPv6", 1)]
        );

        assert_eq!(
            found[0].ports,
            [parsed("{name: '', port: 80, protocol: TCP}")]
        );

        assert_eq!(
            found[0].endpoints[0],
            parsed("{addresses: [10.0.0.1], conditions: {ready: true}, nodeName: n}")
        );

        assert_eq!(groups(&endpoints, 1)[0].endpoints.len(), 1);
    }
}
