//! Whole objects: the bytes of the cache, without decoding.

use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::protobuf;

use super::shown::ROOM;
use super::{Objects, Shown};
use crate::ApiError;
use crate::cache::Entry;
use crate::registry::List;

/// One object as protobuf, straight from its tree.
pub(super) fn protobuf(shown: Shown<'_>, objects: &Objects<'_>) -> Result<Vec<u8>, ApiError> {
    let of = shown.of(objects);
    let encoded = protobuf::encode(&shown.tree(objects), of);
    encoded.map_err(|error| ApiError::internal(error.to_string()))
}

/// Appends a list of objects, whose members do not repeat their kind.
pub(super) fn write_list(list: &List, objects: &Objects<'_>, out: &mut Vec<u8>) {
    out.reserve(size(list));
    write_list_head(list, objects, out);
    let prefix = own_prefix(objects);
    for (place, entry) in list.entries.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_item(entry, objects, &prefix, out);
    }
    write_list_tail(list, objects, out);
}

/// About how long a list is.
pub(super) fn size(list: &List) -> usize {
    256 + list
        .entries
        .iter()
        .map(|entry| entry.bytes().len() + ROOM)
        .sum::<usize>()
}

/// Appends the part before the items.
pub(super) fn write_list_head(list: &List, objects: &Objects<'_>, out: &mut Vec<u8>) {
    let (kind, api_version) = (objects.list_kind(), objects.kind.api_version());
    let head = match objects.custom {
        // Upstream has no type for them: their members are in alphabetical order.
        Some(_) => format!("{{\"apiVersion\":\"{api_version}\""),
        None => format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{api_version}\""),
    };
    out.extend_from_slice(head.as_bytes());
    if objects.custom.is_none() {
        write_list_metadata(list, out);
    }
    out.extend_from_slice(b",\"items\":[");
}

/// Appends the part behind the items.
pub(super) fn write_list_tail(list: &List, objects: &Objects<'_>, out: &mut Vec<u8>) {
    out.push(b']');
    if objects.custom.is_some() {
        out.extend_from_slice(format!(",\"kind\":\"{}\"", objects.list_kind()).as_bytes());
        write_untyped_list_metadata(list, out);
    }
    out.push(b'}');
}

/// The `kind` and `apiVersion` of an object, which a list has once for all its items.
pub(super) fn own_prefix(objects: &Objects<'_>) -> String {
    format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",",
        objects.kind.name,
        objects.kind.api_version()
    )
}

/// Appends one item without its kind.
pub(super) fn write_item(entry: &Entry, objects: &Objects<'_>, prefix: &str, out: &mut Vec<u8>) {
    // Upstream has no type for lists of custom resources, so their items have `kind` and
    // `apiVersion`.
    if objects.custom.is_some() {
        return Shown::Entry(entry).write(objects, out);
    }

    if objects.storage_version.keeps(objects.kind) && entry.bytes().starts_with(prefix.as_bytes()) {
        out.push(b'{');
        entry.write_after(prefix.len(), out);
        return;
    }

    let start = out.len();
    Shown::Entry(entry).write(objects, out);

    if out[start..].starts_with(prefix.as_bytes()) {
        out.drain(start + 1..start + prefix.len());
    }
}

/// The type of a list of the resource's objects.
pub(super) fn list_type(objects: &Objects<'_>) -> Option<Struct<'static>> {
    let name = format!("{}List", objects.kind.name);
    BUILTIN
        .kind(&objects.kind.group, &objects.kind.version, &name)
        .map(|kind| BUILTIN.root(kind))
}

/// The same of a list without a type, which always has `continue`.
fn write_untyped_list_metadata(list: &List, out: &mut Vec<u8>) {
    let token = &list.continue_token;
    out.extend_from_slice(format!(",\"metadata\":{{\"continue\":\"{token}\"").as_bytes());
    if let Some(remaining) = list.remaining {
        out.extend_from_slice(format!(",\"remainingItemCount\":{remaining}").as_bytes());
    }
    out.extend_from_slice(format!(",\"resourceVersion\":\"{}\"}}", list.revision).as_bytes());
}

/// Appends the member `metadata` of a list, behind another one.
pub(super) fn write_list_metadata(list: &List, out: &mut Vec<u8>) {
    out.extend_from_slice(
        format!(",\"metadata\":{{\"resourceVersion\":\"{}\"", list.revision).as_bytes(),
    );
    if !list.continue_token.is_empty() {
        out.extend_from_slice(format!(",\"continue\":\"{}\"", list.continue_token).as_bytes());
    }
    if let Some(remaining) = list.remaining {
        out.extend_from_slice(format!(",\"remainingItemCount\":{remaining}").as_bytes());
    }
    out.push(b'}');
}
