//! The projection of a node: the fields that decide where pods go.

use coracle_api::quantity::Quantity;
use coracle_api::{Map, Text, Value};

use crate::labels::Labels;
use crate::resources::{Amounts, PODS, Resources};
use crate::taints::OwnedTaint;

/// The fields of one Node object. Its pods are in [`crate::cache::NodeInfo`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub name: Text,
    pub labels: Labels,
    pub annotations: Labels,
    pub taints: Vec<OwnedTaint>,
    pub unschedulable: bool,
    pub allocatable: Resources,
    /// The most pods on the node.
    pub allowed_pods: i64,
    /// The names of its images, sorted, with their sizes.
    pub images: Vec<(Text, i64)>,
}

impl Node {
    pub fn from_object(object: &Value) -> Node {
        let empty = Map::new();
        let part = |name: &str| {
            object
                .get(name)
                .and_then(Value::as_object)
                .unwrap_or(&empty)
        };
        let (spec, status) = (part("spec"), part("status"));
        let allocatable = Amounts::from_map(status.below("allocatable"));

        Node {
            name: Text::new(object.meta().name()),
            labels: Labels::from_map(object.meta().labels()),
            annotations: Labels::from_map(object.meta().annotations()),
            taints: spec
                .items("taints")
                .iter()
                .map(OwnedTaint::from_value)
                .collect(),
            unschedulable: spec.flag("unschedulable"),
            allocatable: allocatable.rounded(),
            allowed_pods: allocatable.get(PODS).map_or(0, Quantity::value),
            images: images(status),
        }
    }

    /// A node known by name only, because pods name it.
    pub(crate) fn unknown(name: &str) -> Node {
        Node {
            name: Text::new(name),
            ..Node::default()
        }
    }

    pub fn image_size(&self, name: &str) -> Option<i64> {
        let index = self
            .images
            .binary_search_by(|(own, _)| own.as_str().cmp(name))
            .ok()?;
        Some(self.images[index].1)
    }

    /// Region and zone: the search interleaves them.
    pub(crate) fn zone(&self) -> Option<(&str, &str)> {
        let label = |name, old| {
            self.labels
                .get(name)
                .or_else(|| self.labels.get(old))
                .unwrap_or_default()
        };

        let region = label(
            "topology.kubernetes.io/region",
            "failure-domain.beta.kubernetes.io/region",
        );

        let zone = label(
            "topology.kubernetes.io/zone",
            "failure-domain.beta.kubernetes.io/zone",
        );

        (!region.is_empty() || !zone.is_empty()).then_some((region, zone))
    }
}

fn images(status: &Map) -> Vec<(Text, i64)> {
    let mut images = Vec::new();
    for image in status.items("images").iter().filter_map(Value::as_object) {
        let names = image.items("names").iter().filter_map(Value::as_str);
        images.extend(names.map(|name| (Text::new(name), image.int("sizeBytes"))));
    }
    images.sort_unstable();
    images.dedup_by(|one, other| one.0 == other.0);
    images
}
