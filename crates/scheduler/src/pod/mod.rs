//! The projection of a pod: the fields that decide where it goes, parsed once.
//!
//! Everything that plugins need hundreds of times in one cycle is compiled here: selectors, node
//! affinity, amounts. Objects enter through [`Pod::from_object`] and are not kept.

mod affinity;
mod requests;
#[cfg(test)]
mod tests;

use coracle_api::node_affinity::{NodeSelectorTerm, PreferredTerms, RequiredNodeAffinity};
use coracle_api::owner::controller_of;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Text, Value};

pub use affinity::{AffinityTerm, Peers, PodAffinity, SpreadConstraint, WeightedTerm};
pub use requests::Requests;

use crate::labels::Labels;
use crate::taints::OwnedToleration;

/// The fields of one Pod object.
#[derive(Clone, Debug)]
pub struct Pod {
    pub namespace: Text,
    pub name: Text,
    pub uid: Text,
    pub resource_version: Text,
    pub labels: Labels,
    pub annotations: Labels,
    /// Empty while no node is chosen.
    pub node_name: Text,
    pub nominated_node: Text,
    pub scheduler_name: Text,
    pub priority: i32,
    /// `preemptionPolicy: Never`: no pods are evicted for it.
    pub never_preempts: bool,
    pub requests: Requests,
    pub node_affinity: NodeAffinity,
    pub affinity: PodAffinity,
    pub tolerations: Vec<OwnedToleration>,
    pub spread: Vec<SpreadConstraint>,
    pub host_ports: Vec<HostPort>,
    pub images: Images,
    pub gates: Vec<Text>,
    pub claims: Claims,
    pub owner: Option<Owner>,
    pub deleting: bool,
    /// Succeeded or failed: it uses no resources of its node any more.
    pub terminal: bool,
    /// It is being deleted by preemption.
    pub preempted: bool,
    pub start_time: Option<Timestamp>,
    pub generation: i64,
    /// The condition `PodScheduled` of the object.
    pub scheduled: Option<Condition>,
    /// Why the spec is invalid; such a pod fits no node.
    pub malformed: Option<String>,
}

/// The required and preferred node affinity.
#[derive(Clone, Debug, Default)]
pub struct NodeAffinity {
    /// `None`: every node matches.
    pub required: Option<RequiredNodeAffinity>,
    /// The only matching nodes, if the terms name nodes, as for pods of a DaemonSet.
    pub names: Option<Vec<Text>>,
    pub preferred: Option<PreferredTerms>,
}

/// A host port of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    pub ip: Text,
    pub protocol: Text,
    pub port: i64,
}

/// The images of a pod, by their full names.
#[derive(Clone, Debug, Default)]
pub struct Images {
    pub names: Vec<Text>,
    /// The number of containers and init containers.
    pub containers: usize,
}

/// The claims of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Persistent volume claims; for generic ephemeral volumes, the name they will have.
    pub volumes: Vec<Text>,
    /// The number of resource claims.
    pub resources: usize,
}

/// The controller of the pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
}

/// A condition of a pod, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub status: Text,
    pub reason: Text,
    pub message: Text,
}

impl Pod {
    pub fn from_object(object: &Value) -> Pod {
        let empty = Map::new();
        let part = |name: &str| {
            object
                .get(name)
                .and_then(Value::as_object)
                .unwrap_or(&empty)
        };
        let (meta, spec, status) = (object.meta(), part("spec"), part("status"));
        let labels = Labels::from_map(meta.labels());

        let affinity = PodAffinity::of(spec, meta.namespace());
        let constraints = spec
            .items("topologySpreadConstraints")
            .iter()
            .filter_map(Value::as_object);

        let spread: Result<Vec<_>, _> = constraints
            .map(|constraint| SpreadConstraint::of(constraint, &labels))
            .collect();
        let node_affinity = NodeAffinity::of(object.get("spec"), spec);

        let malformed = affinity
            .as_ref()
            .err()
            .map(|error| format!("parsing pod: {error}"));
        let malformed = malformed.or_else(|| spread.as_ref().err().map(ToString::to_string));
        let malformed = malformed.or_else(|| node_affinity.as_ref().err().cloned());

        Pod {
            namespace: Text::new(meta.namespace()),
            name: Text::new(meta.name()),
            uid: Text::new(meta.uid()),
            resource_version: Text::new(meta.resource_version()),
            annotations: annotations(meta.annotations()),
            node_name: Text::new(spec.text("nodeName")),
            nominated_node: Text::new(status.text("nominatedNodeName")),
            scheduler_name: Text::new(spec.text("schedulerName")),
            priority: i32::try_from(spec.int("priority")).unwrap_or_default(),
            never_preempts: spec.text("preemptionPolicy") == "Never",
            requests: Requests::of(spec, status),
            node_affinity: node_affinity.unwrap_or_default(),
            affinity: affinity.unwrap_or_default(),
            tolerations: spec
                .items("tolerations")
                .iter()
                .map(OwnedToleration::from_value)
                .collect(),
            spread: spread.unwrap_or_default(),
            host_ports: host_ports(spec),
            images: Images::of(spec),
            gates: names(spec.items("schedulingGates")),
            claims: Claims::of(meta.name(), spec),
            owner: controller_of(meta).map(|owner| Owner {
                api_version: Text::new(owner.api_version),
                kind: Text::new(owner.kind),
                name: Text::new(owner.name),
            }),
            deleting: meta.is_being_deleted(),
            terminal: matches!(status.text("phase"), "Succeeded" | "Failed"),
            preempted: condition(status, "DisruptionTarget").is_some_and(|condition| {
                condition.text("status") == "True"
                    && condition.text("reason") == "PreemptionByScheduler"
            }),
            start_time: Time::parse(status.text("startTime"))
                .ok()
                .map(|time| time.0),
            generation: meta.generation(),
            scheduled: condition(status, "PodScheduled").map(Condition::of),
            malformed,
            labels,
        }
    }

    /// The pod with `node` as its node.
    pub fn on(&self, node: &str) -> Pod {
        Pod {
            node_name: Text::new(node),
            nominated_node: Text::default(),
            ..self.clone()
        }
    }

    pub fn is_assigned(&self) -> bool {
        !self.node_name.is_empty()
    }

    /// Whether it is on a node or nominated to one.
    pub fn is_placed(&self) -> bool {
        self.is_assigned() || !self.nominated_node.is_empty()
    }
}

/// The annotation of `kubectl apply` is as large as the object and is dropped.
fn annotations(all: Option<&Map>) -> Labels {
    let all = Labels::from_map(all);
    all.iter()
        .filter(|(key, _)| *key != "kubectl.kubernetes.io/last-applied-configuration")
        .collect()
}

fn names(items: &[Value]) -> Vec<Text> {
    items
        .iter()
        .filter_map(Value::as_object)
        .map(|item| Text::new(item.text("name")))
        .collect()
}

fn condition<'s>(status: &'s Map, kind: &str) -> Option<&'s Map> {
    status
        .items("conditions")
        .iter()
        .filter_map(Value::as_object)
        .find(|condition| condition.text("type") == kind)
}

impl Condition {
    fn of(condition: &Map) -> Condition {
        let text = |name| Text::new(condition.text(name));
        Condition {
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
        }
    }
}

impl NodeAffinity {
    fn of(object: Option<&Value>, spec: &Map) -> Result<NodeAffinity, String> {
        let affinity = spec
            .below("affinity")
            .and_then(|affinity| affinity.below("nodeAffinity"));
        let demands = affinity
            .and_then(|affinity| affinity.below("requiredDuringSchedulingIgnoredDuringExecution"));

        let selects = spec
            .below("nodeSelector")
            .is_some_and(|labels| !labels.is_empty());
        let preferences = affinity
            .map(|affinity| affinity.items("preferredDuringSchedulingIgnoredDuringExecution"));

        let Some(object) = object else {
            return Ok(NodeAffinity::default());
        };
        let preferred = match preferences {
            None | Some([]) => None,
            Some(_) => {
                Some(PreferredTerms::from_pod_spec(object).map_err(|errors| errors.to_string())?)
            }
        };

        Ok(NodeAffinity {
            required: (demands.is_some() || selects)
                .then(|| RequiredNodeAffinity::from_pod_spec(object)),
            names: demands.and_then(named_nodes),
            preferred,
        })
    }
}

/// The nodes that terms name, if every term names some.
fn named_nodes(demands: &Map) -> Option<Vec<Text>> {
    let terms = demands.items("nodeSelectorTerms");
    let mut all = Vec::new();
    for term in terms.iter().map(NodeSelectorTerm::from_value) {
        let mut named: Option<Vec<&str>> = None;
        for field in term.match_fields {
            if field.key == "metadata.name" && field.operator == "In" {
                named = Some(match named {
                    None => field.values,
                    Some(so_far) => so_far
                        .into_iter()
                        .filter(|name| field.values.contains(name))
                        .collect(),
                });
            }
        }

        all.extend(named?.into_iter().map(Text::new));
    }

    all.sort_unstable();
    all.dedup();

    (!terms.is_empty()).then_some(all)
}

fn host_ports(spec: &Map) -> Vec<HostPort> {
    let sidecars = spec
        .items("initContainers")
        .iter()
        .filter_map(Value::as_object);
    let sidecars = sidecars.filter(|container| container.text("restartPolicy") == "Always");
    let containers = sidecars.chain(spec.items("containers").iter().filter_map(Value::as_object));
    let ports = containers
        .flat_map(|container| container.items("ports"))
        .filter_map(Value::as_object);

    let or = |text: &str, default: &'static str| {
        if text.is_empty() {
            Text::const_new(default)
        } else {
            Text::new(text)
        }
    };

    let wanted = ports.filter(|port| port.int("hostPort") > 0);
    wanted
        .map(|port| HostPort {
            ip: or(port.text("hostIP"), "0.0.0.0"),
            protocol: or(port.text("protocol"), "TCP"),
            port: port.int("hostPort"),
        })
        .collect()
}

impl Images {
    fn of(spec: &Map) -> Images {
        let containers: Vec<&Map> = ["initContainers", "containers"]
            .iter()
            .flat_map(|list| spec.items(list))
            .filter_map(Value::as_object)
            .collect();

        let volumes = spec.items("volumes").iter().filter_map(Value::as_object);
        let volumes = volumes.filter_map(|volume| Some(volume.below("image")?.text("reference")));
        let names = containers
            .iter()
            .map(|container| container.text("image"))
            .chain(volumes);

        Images {
            names: names.map(full_image_name).collect(),
            containers: containers.len(),
        }
    }
}

/// The name that nodes report: without a tag it is `latest`.
fn full_image_name(name: &str) -> Text {
    if name.rfind(':') > name.rfind('/') {
        Text::new(name)
    } else {
        Text::from(format!("{name}:latest"))
    }
}

impl Claims {
    fn of(pod: &str, spec: &Map) -> Claims {
        let volumes = spec.items("volumes").iter().filter_map(Value::as_object);
        let claim = |volume: &Map| {
            let named = volume
                .below("persistentVolumeClaim")
                .map(|claim| Text::new(claim.text("claimName")));
            named.or_else(|| {
                volume
                    .below("ephemeral")
                    .map(|_| Text::from(format!("{pod}-{}", volume.text("name"))))
            })
        };

        Claims {
            volumes: volumes.filter_map(claim).collect(),
            resources: spec.items("resourceClaims").len(),
        }
    }
}
