//! Distributes endpoints over slices with as few changes as possible. Pure; used for Services and
//! for mirrored Endpoints.
//!
//! An endpoint that is in a slice and still desired stays there. New ones go into slices that
//! change anyway, then into the slice that they fill best, then into new slices; no slice grows
//! past its limit. A slice that would be deleted is reused for one that would be created.

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
    /// The ports, as in a slice.
    pub ports: Vec<Value>,
    /// The endpoints, as in a slice.
    pub endpoints: Vec<Value>,
}

/// What all slices of one owner have in common.
#[derive(Clone, Debug)]
pub struct SliceTemplate {
    /// Their namespace.
    pub namespace: Text,
    /// The prefix of their names.
    pub prefix: String,
    /// Their labels.
    pub labels: Map,
    /// Their annotations; `None` if they are not managed.
    pub annotations: Option<Map>,
    /// When the change that caused this one happened, if known.
    pub trigger: Option<Text>,
    /// Their owner.
    pub owner: Controller,
    /// The most endpoints of a slice.
    pub limit: usize,
}

/// Slices to create, update and delete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    pub create: Vec<Value>,
    pub update: Vec<Value>,
    /// Names.
    pub delete: Vec<Text>,
}

/// A slice being filled.
struct Draft<'a> {
    slice: &'a Cached<Slice>,
    endpoints: Vec<Value>,
    changed: bool,
}

/// The changes after which the slices hold the groups. `families` are the desired ones; with
/// `placeholders`, a family without endpoints gets an empty slice.
pub fn fill(
    existing: &[Arc<Cached<Slice>>],
    groups: &[Group],
    families: &[&'static str],
    template: &SliceTemplate,
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
        fill_family(&own, groups, family, template, placeholders, &mut changes);
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
    template: &SliceTemplate,
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
            .any(|owner| owner.uid == template.owner.uid);

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
        let outcome = fill_group(&slices, group, template);
        delete.extend(outcome.delete);
        create.extend(outcome.create);
        kept += outcome.kept;
        changes.update.extend(outcome.update);
    }

    delete.extend(by_ports.into_values().flatten());

    if placeholders && kept == 0 && create.is_empty() {
        let empty = new_slice(template, family, Vec::new(), Vec::new());
        let as_it_is = |slice: &&Cached<Slice>| {
            slice.items("endpoints").is_empty()
                && slice.items("ports").is_empty()
                && slice.0.meta().labels() == Some(&template.labels)
        };

        match delete.as_slice() {
            [one] if as_it_is(one) => delete.clear(),
            _ => create.push(empty),
        }
    }

    // A deletion and a creation become an update.
    let mut create = create.into_iter();
    for slice in delete {
        match create.next() {
            Some(new) => changes.update.push(reuse_slice(slice, new, template)),
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
    /// Slices that remain, changed or not.
    kept: usize,
}

fn fill_group<'a>(
    slices: &[&'a Cached<Slice>],
    group: Group,
    template: &SliceTemplate,
) -> Outcome<'a> {
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

        let relabelled = slice.0.meta().labels() != Some(&template.labels)
            || !annotations_match(slice, template);
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

    // Slices that change anyway are filled up, the fullest first.
    drafts.sort_by_key(|draft| std::cmp::Reverse(draft.endpoints.len()));

    for draft in drafts.iter_mut().filter(|draft| draft.changed) {
        while draft.endpoints.len() < template.limit
            && let Some((_, endpoint)) = wanted.pop_first()
        {
            draft.endpoints.push(endpoint);
        }
    }

    let mut left: Vec<Value> = wanted.into_values().collect();
    while !left.is_empty() {
        let room = |draft: &Draft<'a>| {
            template
                .limit
                .checked_sub(left.len() + draft.endpoints.len())
        };
        let fits = drafts
            .iter_mut()
            .filter(|draft| !draft.changed && room(draft).is_some());

        let best = fits.min_by_key(|draft| room(draft));
        if let Some(draft) = best {
            draft.endpoints.append(&mut left);
            draft.changed = true;
        } else {
            let rest = left.split_off(template.limit.min(left.len()));
            outcome.create.push(new_slice(
                template,
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
                apply_template(&mut object, template);
                if let Some(object) = object.as_object_mut() {
                    object.insert("endpoints", draft.endpoints);
                }
                object
            }),
    );

    outcome
}

/// The identity of an endpoint.
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

/// A key for ports, independent of their order.
fn name_of(ports: &[Value]) -> Vec<u8> {
    let mut ports: Vec<Vec<u8>> = ports.iter().map(json::to_vec).collect();
    ports.sort();
    ports.concat()
}

/// When the change happened that caused the last update.
pub(crate) const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Whether the annotations are as desired; the trigger time is only written along with changes.
fn annotations_match(slice: &Slice, template: &SliceTemplate) -> bool {
    let Some(wanted) = &template.annotations else {
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

fn apply_template(object: &mut Value, template: &SliceTemplate) {
    let mut meta = object.meta_mut();
    meta.set_labels(template.labels.clone());
    if let Some(annotations) = &template.annotations {
        meta.set_annotations(annotations.clone());
    }
    meta.set_annotation(TRIGGER, template.trigger.as_deref());
    let is_empty = |annotations: &Value| annotations.as_object().is_some_and(Map::is_empty);
    if meta.members().get("annotations").is_some_and(is_empty) {
        meta.members().remove("annotations");
    }
}

/// Builds a new slice.
fn new_slice(
    template: &SliceTemplate,
    family: &str,
    ports: Vec<Value>,
    endpoints: Vec<Value>,
) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion", "discovery.k8s.io/v1");
    object.insert("kind", "EndpointSlice");
    object.insert("addressType", family);
    object.insert("ports", ports);
    object.insert("endpoints", endpoints);

    let mut object = Value::Object(object);
    let mut meta = object.meta_mut();
    meta.set_generate_name(&template.prefix);
    meta.set_namespace(&template.namespace);
    meta.set_owner_references([template.owner.reference()]);
    apply_template(&mut object, template);

    object
}

/// Turns an existing slice into what a new one would be, keeping its name.
fn reuse_slice(slice: &Cached<Slice>, new: Value, template: &SliceTemplate) -> Value {
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
        .set_owner_references([template.owner.reference()]);
    apply_template(&mut object, template);

    object
}
