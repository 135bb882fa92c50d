//! The metadata of objects only, for clients that need no more, such as the garbage collector.

use coracle_api::codec::media_type::MetaVersion;

use super::whole::write_list_metadata;
use super::{Objects, Shown, meta_api_version};
use crate::registry::List;

/// Appends a `PartialObjectMetadata`.
pub(super) fn write(
    shown: Shown<'_>,
    objects: &Objects<'_>,
    version: MetaVersion,
    out: &mut Vec<u8>,
) {
    let head = format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"{}\",\"metadata\":",
        meta_api_version(version)
    );
    out.extend_from_slice(head.as_bytes());
    shown.write_metadata(objects, out);
    out.push(b'}');
}

/// Appends the beginning of a `PartialObjectMetadataList`, up to its items.
pub(super) fn write_list_head(list: &List, version: MetaVersion, out: &mut Vec<u8>) {
    let head = format!(
        "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"{}\"",
        meta_api_version(version)
    );
    out.extend_from_slice(head.as_bytes());
    write_list_metadata(list, out);
    out.extend_from_slice(b",\"items\":[");
}

/// Appends a `PartialObjectMetadataList`. Unlike in other lists, its items have `kind` and
/// `apiVersion`.
pub(super) fn write_list(
    list: &List,
    objects: &Objects<'_>,
    version: MetaVersion,
    out: &mut Vec<u8>,
) {
    write_list_head(list, version, out);
    for (place, entry) in list.entries.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(Shown::Entry(entry), objects, version, out);
    }
    out.extend_from_slice(b"]}");
}
