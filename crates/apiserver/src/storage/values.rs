//! Values: objects in upstream's storage format.

use std::collections::BTreeMap;

use bytes::Bytes;
use coracle_api::Text;
use coracle_api::codec::{json, protobuf};
use coracle_store::PutValue;
use tracing::warn;

use crate::storage_version::StorageVersion;

/// `--storage-media-type`: the format of objects that have both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    Json,
    Protobuf,
}

pub(super) struct Values {
    /// By prefix below `/registry/`: resources that are stored as protobuf.
    protobuf: BTreeMap<Text, StorageVersion<'static>>,
}

impl Values {
    pub(super) fn new(media: Media) -> Values {
        let kept = coracle_api::catalog::BUILTIN
            .resources()
            .iter()
            .filter_map(|resource| {
                let storage = resource.storage.as_ref()?;
                (media == Media::Protobuf && !storage.json)
                    .then(|| (storage.prefix.clone(), StorageVersion::of(resource)))
            });
        Values {
            protobuf: kept.collect(),
        }
    }

    pub(super) fn stored(&self, key: &Bytes, value: PutValue) -> PutValue {
        match value {
            PutValue::Set(bytes) => PutValue::Set(self.encoded(key, bytes)),
            PutValue::Keep => PutValue::Keep,
        }
    }

    fn encoded(&self, key: &[u8], bytes: Bytes) -> Bytes {
        let Some(storage_version) = self.place(key) else {
            return json_line(bytes);
        };
        let tree = match json::decode(&bytes, Some(storage_version.of.node())) {
            Ok(decoded) => decoded.value,
            Err(error) => {
                warn!(%error, "value to store is not JSON; storing it unchanged");
                return bytes;
            }
        };

        match protobuf::encode(&tree, storage_version.of) {
            Ok(encoded) => encoded.into(),
            Err(error) => {
                warn!(%error, "cannot encode value to store as protobuf; storing it as JSON");
                bytes
            }
        }
    }

    fn place(&self, key: &[u8]) -> Option<&StorageVersion<'static>> {
        let path = std::str::from_utf8(key).ok()?.strip_prefix("/registry/")?;
        // Prefixes have one or two parts: `pods`, `services/specs`.
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .take(2)
            .collect::<Vec<_>>();
        ends.into_iter()
            .rev()
            .find_map(|end| self.protobuf.get(&path[..end]))
    }
}

/// An object in JSON, as upstream's encoder ends it: an unchanged object is the same bytes, whichever
/// server writes it. What is no object (allocations, leases of servers) has a form of its own.
fn json_line(bytes: Bytes) -> Bytes {
    let is_object = bytes.starts_with(b"{\"kind\"") || bytes.starts_with(b"{\"apiVersion\"");
    match is_object {
        true => [&bytes, &b"\n"[..]].concat().into(),
        false => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(media: Media, key: &'static str, starts_with: &[u8]) {
        let object = br#"{"kind":"X","apiVersion":"v1","metadata":{"name":"a","uid":"u"}}"#;
        let stored = Values::new(media).encoded(key.as_bytes(), Bytes::from_static(object));
        assert!(stored.starts_with(starts_with), "{key}: {stored:?}");
    }

    #[test]
    fn objects_are_kept_as_upstream_keeps_them() {
        check(Media::Protobuf, "/registry/configmaps/default/a", b"k8s\0");
        check(
            Media::Protobuf,
            "/registry/services/specs/default/a",
            b"k8s\0",
        );

        check(
            Media::Protobuf,
            "/registry/apiregistration.k8s.io/apiservices/a",
            b"{",
        );

        check(Media::Protobuf, "/registry/masterleases/10.0.0.1", b"{");
        check(Media::Json, "/registry/configmaps/default/a", b"{");
    }

    #[test]
    fn an_object_in_json_is_a_line() {
        let custom = br#"{"apiVersion":"a.b/v1","kind":"Boat","metadata":{"name":"a","uid":"u"}}"#;
        let stored = Values::new(Media::Protobuf)
            .encoded(b"/registry/a.b/boats/default/a", Bytes::from_static(custom));
        assert_eq!(stored, [&custom[..], b"\n"].concat());

        let other = Bytes::from_static(br#"{"range":"10.0.0.0/24"}"#);
        let key = b"/registry/ranges/serviceips";
        assert_eq!(
            Values::new(Media::Protobuf).encoded(key, other.clone()),
            other
        );
    }
}
