//! Pod templates: building a pod from one, comparing two, and hashing one. Pure.

use coracle_api::codec::json;
use coracle_api::owner::OwnerReference;
use coracle_api::{Map, Value};

/// Builds a pod from a template, named after `base`; `None` if the template has no labels, because
/// the pod could not be selected.
pub fn build_pod(
    template: &Value,
    namespace: &str,
    base: &str,
    owner: OwnerReference<'_>,
) -> Option<Value> {
    let from = template.meta();
    let labels = from.labels().filter(|labels| !labels.is_empty())?;
    let mut pod = Map::new();
    pod.insert("apiVersion", "v1");
    pod.insert("kind", "Pod");
    pod.insert("spec", template.get("spec").cloned().unwrap_or_default());

    let mut pod = Value::Object(pod);
    let mut meta = pod.meta_mut();
    meta.set_namespace(namespace);
    meta.set_generate_name(base);
    meta.set_labels(labels.clone());
    meta.set_annotations(from.annotations().cloned().unwrap_or_default());

    for finalizer in from.finalizers() {
        meta.add_finalizer(finalizer);
    }

    meta.set_owner_references([owner]);

    Some(pod)
}

/// A template, or an object that holds one, in the form used for comparison: empty equals absent.
pub fn comparable(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(metadata) = template
        .as_object_mut()
        .and_then(|members| members.get_mut("metadata"))
    {
        drop_empty(metadata, true);
    }
    drop_empty(&mut template, false);
    template
}

/// Drops nulls and empty lists, and empty objects too if `objects` is set.
fn drop_empty(value: &mut Value, objects: bool) {
    match value {
        Value::Object(members) => members.retain(|_, member| {
            drop_empty(member, objects);
            match member {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(members) => !(objects && members.is_empty()),
                _ => true,
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(|item| drop_empty(item, objects)),
        _ => {}
    }
}

/// A short hash of something comparable, in letters and digits that form no words. On a collision,
/// another one is derived with the number of `collisions`.
pub fn hash(comparable: &Value, collisions: Option<i64>) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

    let text = json::to_vec(comparable);
    let salt = collisions.map(i64::to_le_bytes);
    let bytes = text.iter().chain(salt.iter().flatten());
    let sum = bytes.fold(0x811c_9dc5_u32, |sum, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    let digits = sum.to_string();

    digits
        .bytes()
        .map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()]))
        .collect()
}
