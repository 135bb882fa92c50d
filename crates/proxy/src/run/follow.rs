//! Applies API changes to the state.

use coracle_api::Value;
use coracle_api::time::{Time, Timestamp};
use coracle_api::typed::TypedError;
use coracle_client::informer::{Change, Informers, Projection, Selection, Subscription};
use coracle_client::{ObjectKey, Resource};
use ipnet::IpNet;
use std::sync::Arc;

use crate::facts::{HEADLESS, Node, OTHER_PROXY, Service, Slice};
use crate::metrics::Changed;
use crate::rules::Family;
use crate::state::State;

/// The fields that the proxy uses of an object, if it is relevant.
#[derive(Debug)]
struct Relevant<T>(Option<T>);

impl Projection for Relevant<Service> {
    fn project(object: &Arc<Value>) -> Result<Relevant<Service>, TypedError> {
        Ok(Relevant(Service::read(object)))
    }
}

/// A slice, and when the change happened that it was last written for.
#[derive(Debug)]
struct WrittenSlice {
    slice: Slice,
    triggered: Option<Trigger>,
}

/// When a change happened that endpoints of a family follow from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trigger {
    pub(super) family: Family,
    pub(super) at: Timestamp,
}

/// Upstream's annotation of that time.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

impl Trigger {
    fn of(object: &Value) -> Option<Trigger> {
        let family = match object.get("addressType").and_then(Value::as_str)? {
            "IPv4" => Family::V4,
            "IPv6" => Family::V6,
            _ => return None,
        };
        let at = Time::parse(object.meta().annotation(TRIGGER)?).ok()?.0;
        Some(Trigger { family, at })
    }
}

impl Projection for Relevant<WrittenSlice> {
    fn project(object: &Arc<Value>) -> Result<Relevant<WrittenSlice>, TypedError> {
        let written = Slice::read(object).map(|slice| WrittenSlice {
            slice,
            triggered: Trigger::of(object),
        });
        Ok(Relevant(written))
    }
}

impl Projection for Relevant<Node> {
    fn project(object: &Arc<Value>) -> Result<Relevant<Node>, TypedError> {
        Ok(Relevant(Some(Node::read(object))))
    }
}

/// The ranges of a ServiceCIDR.
#[derive(Debug)]
struct Ranges(Vec<IpNet>);

impl Projection for Relevant<Ranges> {
    fn project(object: &Arc<Value>) -> Result<Relevant<Ranges>, TypedError> {
        let spec = object.get("spec").and_then(Value::as_object);
        let texts = spec.map(|spec| spec.items("cidrs")).unwrap_or_default();
        let ranges = texts
            .iter()
            .filter_map(|text| text.as_str()?.parse().ok())
            .collect();
        Ok(Relevant(Some(Ranges(ranges))))
    }
}

/// Follows the API.
pub(super) struct Follower {
    services: Subscription<Relevant<Service>>,
    slices: Subscription<Relevant<WrittenSlice>>,
    nodes: Subscription<Relevant<Node>>,
    ranges: Subscription<Relevant<Ranges>>,
    /// How many of the first three are synced. ServiceCIDRs are not required: older servers do not
    /// have them.
    synced: u8,
}

impl Follower {
    pub(super) fn new(informers: &Informers, node: &str) -> Follower {
        let all = |group, plural| Selection::all(&Resource::builtin(group, "v1", plural));
        let services = all("", "services").labels(&format!("!{OTHER_PROXY}"));
        let slices = all("discovery.k8s.io", "endpointslices")
            .labels(&format!("!{OTHER_PROXY},!{HEADLESS}"));
        let nodes = all("", "nodes").fields(&format!("metadata.name={node}"));

        Follower {
            services: informers.of(services).subscribe(),
            slices: informers.of(slices).subscribe(),
            nodes: informers.of(nodes).subscribe(),
            ranges: informers
                .of(all("networking.k8s.io", "servicecidrs"))
                .subscribe(),
            synced: 0,
        }
    }

    pub(super) fn has_synced(&self) -> bool {
        self.synced == 3
    }

    /// Applies one change to the state; returns what kind of object changed, and why endpoints did.
    ///
    /// # Cancellation
    /// Cancel safe.
    pub(super) async fn next(&mut self, state: &mut State) -> (Changed, Option<Trigger>) {
        tokio::select! {
            biased;
            change = self.services.next() => match state_of(&change) {
                Some((key, service)) => {
                    state.set_service(key, service);
                    return (Changed::Service, None);
                }
                None => self.synced += 1,
            },
            change = self.slices.next() => match state_of(&change) {
                Some((key, written)) => {
                    state.set_slice(key, written.map(|written| &written.slice));
                    let trigger = written.and_then(|written| written.triggered);
                    return (Changed::Endpoints, trigger);
                }
                None => self.synced += 1,
            },
            change = self.nodes.next() => match state_of(&change) {
                Some((_, node)) => state.set_node(node.cloned()),
                None => self.synced += 1,
            },
            change = self.ranges.next() => if let Some((key, ranges)) = state_of(&change) {
                state.set_service_ranges(key, ranges.map(|ranges| ranges.0.clone()));
            },
        }

        (Changed::Other, None)
    }
}

/// The object of a change and its new state. `None`: synced.
fn state_of<T>(change: &Change<Relevant<T>>) -> Option<(&ObjectKey, Option<&T>)> {
    match change {
        Change::Added { object, .. } | Change::Updated { new: object, .. } => {
            Some((&object.key, object.object.0.as_ref()))
        }
        Change::Deleted { object, .. } => Some((&object.key, None)),
        Change::Synced => None,
    }
}
