//! Migration from client-side to server-side apply.
//!
//! Client-side `kubectl apply` keeps the last configuration in an annotation. An object written so
//! is owned by `kubectl-client-side-apply`, so `kubectl apply --server-side` would conflict with
//! kubectl's own earlier writes. Therefore kubectl may take over fields that are in the annotation
//! and unchanged in the object. The annotation is kept up to date for clients that still read it.

use super::set::Set;
use super::types::Type;
use super::walk::{self, Duplicates, validate};
use crate::codec::json;
use crate::{Map, Value};

/// The one manager for which this is done; another field manager name opts out.
pub(super) const KUBECTL: &str = "kubectl";

/// The annotation with the last configuration.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Limit for all annotations of an object together, keys and values.
const MAX_ANNOTATIONS_SIZE: usize = 256 << 10;

/// The fields of the last configuration that are unchanged in the object. `None`: there is no such
/// configuration, or none that can be used.
pub(super) fn unchanged_fields(
    live: &Value,
    of: Type<'_>,
    api_version: &str,
    kind: &str,
) -> Option<Set> {
    let text = live
        .meta()
        .annotation(LAST_APPLIED)
        .filter(|text| !text.is_empty())?;

    validate(live, of, Duplicates::Refused).ok()?;
    let config = json::parse(text.as_bytes()).ok()?;
    let has = |name: &str, wanted: &str| config.get(name).and_then(Value::as_str) == Some(wanted);
    if !has("apiVersion", api_version) || !has("kind", kind) {
        return None;
    }

    validate(&config, of, Duplicates::Refused).ok()?;
    let comparison = walk::compare(&config, live, of).ok()?;
    let fields = walk::field_set(&config, of).difference(&comparison.modified);

    Some(
        fields
            .difference(&comparison.added)
            .difference(&comparison.removed),
    )
}

/// Updates the annotation, if there is one.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if object
        .meta()
        .annotation(LAST_APPLIED)
        .is_none_or(str::is_empty)
    {
        return;
    }

    let text = without_annotation(config);
    let others = object.meta().annotations().into_iter().flat_map(Map::iter);
    let others = others.filter(|(name, _)| *name != LAST_APPLIED);

    let size: usize = others
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    let fits = size + LAST_APPLIED.len() + text.len() <= MAX_ANNOTATIONS_SIZE;
    object
        .meta_mut()
        .set_annotation(LAST_APPLIED, fits.then_some(text.as_str()));
}

/// A configuration as stored in the annotation: without the annotation itself, and with a line feed
/// at its end.
fn without_annotation(config: &Value) -> String {
    let mut config = config.clone();
    if let Some(members) = config.as_object_mut()
        && let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata.get_mut("annotations")
    {
        match annotations.as_object_mut() {
            Some(annotations) => drop(annotations.remove(LAST_APPLIED)),
            None => drop(metadata.remove("annotations")),
        }
    }
    json::to_string(&config) + "\n"
}
