//! The events of a watch as the bytes of its stream: lines of JSON, or protobuf messages with their
//! length in front. For a reader in the same process they are trees, and the stream has a byte for
//! each.

use std::sync::Arc;

use coracle_api::catalog::Struct;
use coracle_api::codec::media_type::{MediaType, NotAcceptable};
use coracle_api::codec::{canonical, cbor, json, protobuf};
use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};
use coracle_client::WatchEvent;
use coracle_client::transport::Trees;
use coracle_metrics::Histogram;
use coracle_store::Revision;

use super::{Objects, Rendering, Shape, Shown, not_a_list, table, to_protobuf, whole};
use crate::ApiError;
use crate::cache::{Entry, SharedTrees};
use crate::served::Served;

/// The byte in the stream for an event that was left as a tree.
const LEFT: u8 = b'.';

/// Writes the events of one watch.
pub struct EventWriter {
    rendering: Rendering,
    served: Served,
    now: fn() -> Timestamp,
    /// A table names its columns once: in the first event.
    columns_told: bool,
    /// How many events were written since the last `take_written`.
    written: u64,
    /// The bytes of each event.
    sizes: Option<Arc<Histogram>>,
    /// Where a reader in the same process takes the events from, and what it shares with others.
    trees: Option<(Trees, Arc<SharedTrees>)>,
}

impl EventWriter {
    pub fn new(
        rendering: Rendering,
        served: Served,
        now: fn() -> Timestamp,
    ) -> Result<EventWriter, ApiError> {
        match &rendering.shape {
            Shape::PartialList(_) => return Err(not_a_list(&Objects::served(&served))),
            Shape::Table { include, .. } => {
                table::Include::parse(include)?;
            }
            Shape::Whole | Shape::Partial(_) => {}
        }

        if rendering.form.media_type.stream().is_none() {
            return Err(ApiError::not_acceptable(NotAcceptable::Stream.to_string()));
        }

        Ok(EventWriter {
            rendering,
            served,
            now,
            columns_told: false,
            written: 0,
            sizes: None,
            trees: None,
        })
    }

    /// Leaves the events as trees, of which `shared` makes one for all readers of the same version
    /// of an object. Metadata-only trees would not be smaller: the reader takes what it needs.
    #[must_use]
    pub fn for_trees(mut self, left: Trees, shared: Arc<SharedTrees>) -> EventWriter {
        self.trees = Some((left, shared));
        self
    }

    /// Counts the size of each event.
    #[must_use]
    pub fn with_sizes(mut self, sizes: Arc<Histogram>) -> EventWriter {
        self.sizes = Some(sizes);
        self
    }

    /// How many events have been written since the last call.
    pub fn take_written(&mut self) -> u64 {
        std::mem::take(&mut self.written)
    }

    /// The `Content-Type` of the stream.
    pub fn content_type(&self) -> &'static str {
        match self.rendering.form.media_type {
            MediaType::Json | MediaType::Yaml => "application/json",
            MediaType::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            MediaType::Cbor => "application/cbor-seq",
        }
    }

    /// Writes the event of an object; `change` is the event's type.
    pub fn write(&mut self, change: &str, entry: &Entry, out: &mut Vec<u8>) {
        let Some((left, shared)) = &self.trees else {
            return self.event(change, Shown::Entry(entry), out);
        };
        self.written += 1;
        self.count_size(entry.bytes().len());
        let objects = Objects::served(&self.served);
        let tree = match objects.storage_version.keeps(objects.kind) {
            true => shared.of(entry, objects.storage_version.of),
            false => Arc::new(Shown::Entry(entry).tree(&objects).into_owned()),
        };

        left.leave(match change {
            "ADDED" => WatchEvent::Added(tree),
            "DELETED" => WatchEvent::Deleted(tree),
            _ => WatchEvent::Modified(tree),
        });

        out.push(LEFT);
    }

    /// A bookmark: the client has all events up to `revision`; `initial`: and all initial events.
    pub fn bookmark(&mut self, revision: Revision, initial: bool, out: &mut Vec<u8>) {
        if let Some((left, _)) = &self.trees {
            let resource_version = Text::new(revision.to_string());
            left.leave(WatchEvent::Bookmark {
                resource_version,
                initial_events_end: initial,
            });
            self.written += 1;
            return out.push(LEFT);
        }

        let served = self.served.clone();
        let (kind, of) = (served.kind(), served.of());
        let mut object = Value::object();
        if let Some(map) = object.as_object_mut() {
            map.insert("kind", kind.name.clone());
            map.insert("apiVersion", kind.api_version());
        }

        let mut meta = object.meta_mut();
        meta.members()
            .insert("resourceVersion", revision.to_string().as_str());

        if initial {
            meta.set_annotation("k8s.io/initial-events-end", Some("true"));
        }

        canonical::canonicalize(&mut object, of.node());
        self.event("BOOKMARK", Shown::Tree(&object), out);
    }

    /// The watch cannot go on.
    pub fn error(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        let status = error.to_status();
        if let Some((left, _)) = &self.trees
            && let Some(status) = coracle_client::Status::from_value(&status)
        {
            left.leave(WatchEvent::Error(Box::new(status)));
            return out.push(LEFT);
        }

        let objects = Objects::served(&self.served);
        match self.rendering.form.media_type {
            MediaType::Json | MediaType::Yaml => {
                line("ERROR", out, |out| {
                    Shown::Tree(&status).write(&objects, out)
                });
            }
            MediaType::Cbor => {
                let of = Shown::Tree(&status).of(&objects);
                let object = cbor::encode(&status, Some(of.node()));
                cbor::encode_event("ERROR", &object, out);
            }
            MediaType::Protobuf => {
                let of = Shown::Tree(&status).of(&objects);
                frame(
                    "ERROR",
                    &protobuf::encode(&status, of).expect("a Status has a protobuf form"),
                    out,
                );
            }
        }
    }

    fn count_size(&self, bytes: usize) {
        if let Some(sizes) = &self.sizes {
            sizes.observe(bytes as u64);
        }
    }

    fn event(&mut self, change: &str, shown: Shown<'_>, out: &mut Vec<u8>) {
        let before = out.len();
        self.encode(change, shown, out);
        self.written += 1;
        self.count_size(out.len() - before);
    }

    fn encode(&mut self, change: &str, shown: Shown<'_>, out: &mut Vec<u8>) {
        match (&self.rendering.shape, self.rendering.form.media_type) {
            (Shape::Whole, MediaType::Json | MediaType::Yaml) => {
                line(change, out, |out| {
                    shown.write(&Objects::served(&self.served), out)
                });
            }
            (_, MediaType::Json | MediaType::Yaml) => match self.shaped(shown) {
                Ok(object) => line(change, out, |out| out.extend_from_slice(&object)),
                Err(error) => self.error(&error, out),
            },
            (shape, MediaType::Cbor) => {
                let meta = shape.meta_type().map(Struct::node);
                let objects = Objects::served(&self.served);
                let encoded = match shape {
                    Shape::Whole => {
                        let node = shown.of(&objects).node();
                        Ok(cbor::encode(&shown.tree(&objects), Some(node)))
                    }
                    _ => self.shaped(shown).map(|object| {
                        let tree = json::decode(&object, meta).expect("this server wrote it");
                        cbor::encode(&tree.value, meta)
                    }),
                };
                match encoded {
                    Ok(object) => cbor::encode_event(change, &object, out),
                    Err(error) => self.error(&error, out),
                }
            }
            (shape, MediaType::Protobuf) => {
                let of = shape.meta_type();
                let encoded = match shape {
                    Shape::Whole => whole::protobuf(shown, &Objects::served(&self.served)),
                    _ => self
                        .shaped(shown)
                        .and_then(|object| to_protobuf(&object, of)),
                };

                match encoded {
                    Ok(object) => frame(change, &object, out),
                    Err(error) => self.error(&error, out),
                }
            }
        }
    }

    /// The JSON of an object in the requested shape.
    fn shaped(&mut self, shown: Shown<'_>) -> Result<Vec<u8>, ApiError> {
        let mut out = Vec::new();
        let objects = Objects::served(&self.served);
        self.rendering
            .shape
            .write(shown, &objects, (self.now)(), !self.columns_told, &mut out)?;
        self.columns_told = true;
        Ok(out)
    }
}

fn line(change: &str, out: &mut Vec<u8>, object: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(change.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    object(out);
    out.extend_from_slice(b"}\n");
}

fn frame(change: &str, object: &[u8], out: &mut Vec<u8>) {
    let event = protobuf::encode_event(change, object);
    let length = u32::try_from(event.len()).expect("no object comes near 4 GiB");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&event);
}
