//! Endpoints into slices, with as few changes as possible. Pure; it serves Services and mirrored
//! Endpoints alike.
//!
//! What is in a slice and still wanted stays there. What is new goes into slices that change
//! anyway, then into the one that it fills best, then into new ones; no slice grows past its limit.
//! A slice that would be deleted becomes one that would be made.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::{Map, Text, Value};
use coracle_client::ownership::Controller;
use coracle_client::{Cached, Projection};

/// An EndpointSlice, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice(pub Arc<Value>);

impl Projection for Slice {
    fn project(object: &Arc<Value>) -> Result<Slice, coracle_api::typed::TypedError> {
        Ok(Slice(object.clone()))
    }
}

impl Slice {
    pub(super) fn items(&self, name: &str) -> &[Value] {
        self.0
            .get(name)
            .and_then(Value::as_array)
            .unwrap_or_default()
    }

    pub(super) fn family(&self) -> &str {
        self.0
            .get("addressType")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// Endpoints with the same ports and family.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// `IPv4` or `IPv6`.
    pub family: &'static str,
    /// The ports, as they stand in a slice.
    pub ports: Vec<Value>,
    /// The endpoints, as they stand in a slice.
    pub endpoints: Vec<Value>,
}

/// What all slices of one owner have in common.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Where they are.
    pub namespace: Text,
    /// What their names begin with.
    pub prefix: String,
    /// Their labels.
    pub labels: Map,
    /// Their annotations; `None`: those are not this owner's business.
    pub annotations: Option<Map>,
    /// When that came about which made the change necessary, if that is known.
    pub trigger: Option<Text>,
    /// Whose they are.
    pub owner: Controller,
    /// How many endpoints one may hold.
    pub limit: usize,
}

/// What becomes of the slices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    pub create: Vec<Value>,
    pub update: Vec<Value>,
    /// Names.
    pub delete: Vec<Text>,
}

/// A slice on its way.
struct Draft<'a> {
    slice: &'a Cached<Slice>,
    endpoints: Vec<Value>,
    changed: bool,
}

/// What has to change so that `existing` slices hold the groups. `families` are those that are
/// wanted at all; where one has no endpoints, an empty slice says so if `placeholders`.
pub fn fill(
    existing: &[Arc<Cached<Slice>>],
    groups: &[Group],
    families: &[&'static str],
    frame: &Frame,
    placeholders: bool,
) -> Changes {
    let mut changes = Changes::default();
    for family in families {
        let groups: Vec<Group> = groups
            .iter()
            .filter(|group| group.family == *family)
            .cloned()
            .collect();

        let own: Vec<&Cached<Slice>> = existing
            .iter()
            .filter(|slice| slice.family() == *family)
            .map(Arc::as_ref)
            .collect();
        fill_family(&own, groups, family, frame, placeholders, &mut changes);
    }

    let unwanted = existing
        .iter()
        .filter(|slice| !families.contains(&slice.family()));
    changes
        .delete
        .extend(unwanted.map(|slice| slice.key.name.clone()));

    changes
}

fn fill_family(
    existing: &[&Cached<Slice>],
    groups: Vec<Group>,
    family: &'static str,
    frame: &Frame,
    placeholders: bool,
    changes: &mut Changes,
) {
    let mut by_ports: BTreeMap<Vec<u8>, Vec<&Cached<Slice>>> = BTreeMap::new();
    let mut delete: Vec<&Cached<Slice>> = Vec::new();
    for slice in existing {
        let owned = slice
            .0
            .meta()
            .owner_references()
            .any(|owner| owner.uid == frame.owner.uid);

        match owned {
            true => by_ports
                .entry(name_of(slice.items("ports")))
                .or_default()
                .push(slice),
            false => delete.push(slice),
        }
    }

    let (mut create, mut kept) = (Vec::new(), 0);
    for group in groups {
        let slices = by_ports.remove(&name_of(&group.ports)).unwrap_or_default();
        let outcome = fill_group(&slices, group, frame);
        delete.extend(outcome.delete);
        create.extend(outcome.create);
        kept += outcome.kept;
        changes.update.extend(outcome.update);
    }

    delete.extend(by_ports.into_values().flatten());

    if placeholders && kept == 0 && create.is_empty() {
        let empty = made(frame, family, Vec::new(), Vec::new());
        let as_it_is = |slice: &&Cached<Slice>| {
            slice.items("endpoints").is_empty()
                && slice.items("ports").is_empty()
                && slice.0.meta().labels() == Some(&frame.labels)
        };

        match delete.as_slice() {
            [one] if as_it_is(one) => delete.clear(),
            _ => create.push(empty),
        }
    }

    // One that goes and one that comes are one that changes.
    let mut create = create.into_iter();
    for slice in delete {
        match create.next() {
            Some(new) => changes.update.push(replaced(slice, new, frame)),
            None => changes.delete.push(slice.key.name.clone()),
        }
    }

    changes.create.extend(create);
}

#[derive(Default)]
struct Outcome<'a> {
    create: Vec<Value>,
    update: Vec<Value>,
    delete: Vec<&'a Cached<Slice>>,
    /// Slices that stay, changed or not.
    kept: usize,
}

fn fill_group<'a>(slices: &[&'a Cached<Slice>], group: Group, frame: &Frame) -> Outcome<'a> {
    let Group {
        family,
        ports,
        endpoints,
    } = group;

    let mut wanted: BTreeMap<String, Value> = endpoints
        .into_iter()
        .map(|endpoint| (identity(&endpoint), endpoint))
        .collect();

    let mut outcome = Outcome::default();
    let mut drafts: Vec<Draft<'a>> = Vec::new();
    for slice in slices {
        let had = slice.items("endpoints");
        let stays: Vec<Value> = had
            .iter()
            .filter_map(|endpoint| wanted.remove(&identity(endpoint)))
            .collect();

        let relabelled =
            slice.0.meta().labels() != Some(&frame.labels) || !annotations_match(slice, frame);
        if stays.is_empty() && !had.is_empty() {
            outcome.delete.push(slice);
        } else {
            let changed = stays != had || relabelled;
            drafts.push(Draft {
                slice,
                endpoints: stays,
                changed,
            });
        }
    }

    // A slice that changes anyway takes as much as it can; those that are fullest first.
    drafts.sort_by_key(|draft| std::cmp::Reverse(draft.endpoints.len()));

    for draft in drafts.iter_mut().filter(|draft| draft.changed) {
        while draft.endpoints.len() < frame.limit
            && let Some((_, endpoint)) = wanted.pop_first()
        {
            draft.endpoints.push(endpoint);
        }
    }

    let mut left: Vec<Value> = wanted.into_values().collect();
    while !left.is_empty() {
        let room = |draft: &Draft<'a>| frame.limit.checked_sub(left.len() + draft.endpoints.len());
        let fits = drafts
            .iter_mut()
            .filter(|draft| !draft.changed && room(draft).is_some());

        let best = fits.min_by_key(|draft| room(draft));
        if let Some(draft) = best {
            draft.endpoints.append(&mut left);
            draft.changed = true;
        } else {
            let rest = left.split_off(frame.limit.min(left.len()));
            outcome.create.push(made(
                frame,
                family,
                ports.clone(),
                std::mem::replace(&mut left, rest),
            ));
        }
    }

    outcome.kept = drafts.len();
    outcome.update.extend(
        drafts
            .into_iter()
            .filter(|draft| draft.changed)
            .map(|draft| {
                let mut object = Value::clone(&draft.slice.0);
                dress(&mut object, frame);
                if let Some(object) = object.as_object_mut() {
                    object.insert("endpoints", draft.endpoints);
                }
                object
            }),
    );

    outcome
}

/// By what an endpoint is known again.
pub(super) fn identity(endpoint: &Value) -> String {
    let addresses = endpoint
        .get("addresses")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let addresses: Vec<&str> = addresses.iter().filter_map(Value::as_str).collect();

    let uid = endpoint
        .at(&["targetRef", "uid"])
        .and_then(Value::as_str)
        .unwrap_or_default();

    let hostname = endpoint
        .get("hostname")
        .and_then(Value::as_str)
        .unwrap_or_default();

    format!("{} {uid} {hostname}", addresses.join(","))
}

/// Ports as a name: the same ports in another order are the same.
fn name_of(ports: &[Value]) -> Vec<u8> {
    let mut ports: Vec<Vec<u8>> = ports.iter().map(json::to_vec).collect();
    ports.sort();
    ports.concat()
}

/// When that came about which made the last change necessary.
pub(crate) const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Whether the annotations are as they should be; when the last change came about is told with
/// changes only.
fn annotations_match(slice: &Slice, frame: &Frame) -> bool {
    let Some(wanted) = &frame.annotations else {
        return true;
    };
    let had = slice
        .0
        .meta()
        .annotations()
        .into_iter()
        .flat_map(|annotations| annotations.iter());
    had.filter(|(key, _)| *key != TRIGGER)
        .eq(wanted.iter().filter(|(key, _)| *key != TRIGGER))
}

fn dress(object: &mut Value, frame: &Frame) {
    let mut meta = object.meta_mut();
    meta.set_labels(frame.labels.clone());
    if let Some(annotations) = &frame.annotations {
        meta.set_annotations(annotations.clone());
    }
    meta.set_annotation(TRIGGER, frame.trigger.as_deref());
    let is_empty = |annotations: &Value| annotations.as_object().is_some_and(Map::is_empty);
    if meta.members().get("annotations").is_some_and(is_empty) {
        meta.members().remove("annotations");
    }
}

/// A new slice.
fn made(frame: &Frame, family: &str, ports: Vec<Value>, endpoints: Vec<Value>) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion", "discovery.k8s.io/v1");
    object.insert("kind", "EndpointSlice");
    object.insert("addressType", family);
    object.insert("ports", ports);
    object.insert("endpoints", endpoints);

    let mut object = Value::Object(object);
    let mut meta = object.meta_mut();
    meta.set_generate_name(&frame.prefix);
    meta.set_namespace(&frame.namespace);
    meta.set_owner_references([frame.owner.reference()]);
    dress(&mut object, frame);

    object
}

/// A slice that becomes what a new one would have been, under its own name.
fn replaced(slice: &Cached<Slice>, new: Value, frame: &Frame) -> Value {
    let mut object = Value::clone(&slice.0);
    let Value::Object(mut new) = new else {
        return object;
    };
    if let Some(members) = object.as_object_mut() {
        for name in ["ports", "endpoints"] {
            members.insert(name, new.remove(name).unwrap_or_default());
        }
    }

    object
        .meta_mut()
        .set_owner_references([frame.owner.reference()]);
    dress(&mut object, frame);

    object
}
