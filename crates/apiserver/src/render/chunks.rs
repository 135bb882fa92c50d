//! A long list in chunks: its body is never in memory as a whole, in any media type and shape.
//!
//! Every encoding of a list is a beginning, the items, and an end ([`Frame`]). The items are
//! encoded as the client reads them, by `Items`. Protobuf has the length of the list in front, so
//! there everything is encoded once to be counted, and again to be sent.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::catalog::Struct;
use coracle_api::codec::media_type::MediaType;
use coracle_api::codec::{json, protobuf, yaml};
use coracle_api::time::Timestamp;
use coracle_base::sync::Mutex;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Objects, Rendering, Shape, Shown, partial, pretty, whole};
use crate::ApiError;
use crate::aside::aside;
use crate::cache::Entry;
use crate::registry::List;
use crate::served::Served;

/// A piece is about this long.
const PIECE: usize = 64 * 1024;

/// Shorter lists are sent at once, with their length.
pub(super) const LONG: usize = 2 * PIECE;

/// The pieces of a list.
pub(super) struct Pieces {
    list: List,
    items: Items,
    frame: Frame,
    /// The next item.
    place: usize,
    ended: bool,
    buffers: Buffers,
}

/// The bytes before and after the items.
struct Frame {
    before: Vec<u8>,
    after: Vec<u8>,
}

/// How an item is written.
struct Items {
    rendering: Rendering,
    served: Served,
    now: Timestamp,
}

/// The memory of pieces that have left, for those that follow: new memory costs a list as much as
/// filling it.
#[derive(Clone, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// A part of the list.
pub(super) struct Piece {
    text: Vec<u8>,
    home: Buffers,
}

impl Pieces {
    /// # Errors
    /// The list has no such form.
    pub(super) fn new(
        list: List,
        served: Served,
        rendering: Rendering,
        now: Timestamp,
    ) -> Result<Pieces, ApiError> {
        let items = Items {
            rendering,
            served,
            now,
        };

        let frame = items.frame(&list)?;
        Ok(Pieces {
            list,
            items,
            frame,
            place: 0,
            ended: false,
            buffers: Buffers::default(),
        })
    }

    fn fill(&mut self, out: &mut Vec<u8>) -> Result<(), ApiError> {
        if self.place == 0 {
            out.append(&mut self.frame.before);
        }

        let objects = Objects::served(&self.items.served);
        while out.len() < PIECE {
            let Some(entry) = self.list.entries.get(self.place) else {
                out.append(&mut self.frame.after);
                self.ended = true;
                break;
            };
            self.items.write(entry, &objects, self.place == 0, out)?;
            self.place += 1;
        }

        Ok(())
    }
}

impl Items {
    fn frame(&self, list: &List) -> Result<Frame, ApiError> {
        let objects = Objects::served(&self.served);
        let mut before = Vec::new();
        self.write_head(list, &objects, &mut before)?;

        let mut after = Vec::new();
        match self.rendering.shape {
            Shape::Whole => whole::write_list_tail(list, &objects, &mut after),
            _ => after.extend_from_slice(b"]}"),
        }

        let form = self.rendering.form;
        match form.media_type {
            MediaType::Json if form.pretty => Ok(pretty_frame(before, &after)),
            MediaType::Json => {
                after.push(b'\n');
                Ok(Frame { before, after })
            }
            MediaType::Yaml => Ok(yaml_frame(before, &after)),
            MediaType::Protobuf => aside(|| self.protobuf_frame(list, &objects, before)),
            MediaType::Cbor => Err(in_one_piece()),
        }
    }

    /// Appends the JSON before the items, with their bracket.
    fn write_head(
        &self,
        list: &List,
        objects: &Objects<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        match &self.rendering.shape {
            Shape::Whole => whole::write_list_head(list, objects, out),
            Shape::Partial(_) => return Err(super::a_list(objects)),
            Shape::PartialList(version) => partial::write_list_head(list, *version, out),
            Shape::Table { version, include } => {
                super::Table::new(objects, *version, include, self.now)?.write_list_head(list, out);
            }
        }
        Ok(())
    }

    fn protobuf_frame(
        &self,
        list: &List,
        objects: &Objects<'_>,
        mut head: Vec<u8>,
    ) -> Result<Frame, ApiError> {
        head.extend_from_slice(b"]}");
        let of = self.list_type(objects)?;
        let tree = json::decode(&head, Some(of.node()))
            .expect("this server wrote it")
            .value;
        let mut message = protobuf::encode_message(&tree, of)
            .map_err(|error| ApiError::internal(error.to_string()))?;
        let mut length = message.len();

        let mut item = Vec::new();
        for entry in &list.entries {
            item.clear();
            self.write(entry, objects, true, &mut item)?;
            length += item.len();
        }

        let text = |name: &str| tree.get(name).and_then(Value::as_str).unwrap_or_default();
        let (mut before, after) = protobuf::around(text("apiVersion"), text("kind"), length);
        before.append(&mut message);

        Ok(Frame { before, after })
    }

    fn list_type(&self, objects: &Objects<'_>) -> Result<Struct<'static>, ApiError> {
        let of = match &self.rendering.shape {
            Shape::Whole => whole::list_type(objects),
            other => other.meta_type(),
        };
        of.ok_or_else(|| ApiError::internal("no protobuf form of this kind is known"))
    }

    /// Appends an item in the form of the list.
    fn write(
        &self,
        entry: &Entry,
        objects: &Objects<'_>,
        first: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        let form = self.rendering.form;
        match form.media_type {
            MediaType::Json if form.pretty => {
                let mut item = Vec::new();
                self.write_json(entry, objects, &mut item)?;
                out.extend_from_slice(if first { b"" } else { b"," });
                pretty::line_break(2, out);
                pretty::indent_at(2, &item, out);
            }
            MediaType::Json => {
                out.extend_from_slice(if first { b"" } else { b"," });
                self.write_json(entry, objects, out)?;
            }
            MediaType::Yaml => {
                let mut item = Vec::new();
                self.write_json(entry, objects, &mut item)?;
                let item = json::parse(&item).expect("this server wrote it");
                out.extend_from_slice(yaml::print(&Value::Array(vec![item])).as_bytes());
            }
            MediaType::Protobuf => self.write_protobuf(entry, objects, out)?,
            MediaType::Cbor => return Err(in_one_piece()),
        }

        Ok(())
    }

    fn write_json(
        &self,
        entry: &Entry,
        objects: &Objects<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        match &self.rendering.shape {
            Shape::Whole => whole::write_item(entry, objects, &whole::own_prefix(objects), out),
            Shape::Partial(version) | Shape::PartialList(version) => {
                partial::write(Shown::Entry(entry), objects, *version, out);
            }
            Shape::Table { version, include } => {
                super::Table::new(objects, *version, include, self.now)?.write_item(entry, out)?;
            }
        }
        Ok(())
    }

    fn write_protobuf(
        &self,
        entry: &Entry,
        objects: &Objects<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        let list = self.list_type(objects)?;
        let items = list
            .field("items")
            .and_then(|field| field.node().item()?.as_struct());
        let of = items.expect("a list has items");
        let tag = *list.tag("items").last().expect("items have a tag");

        let tree = match self.rendering.shape {
            Shape::Whole => Shown::Entry(entry).tree(objects).into_owned(),
            _ => {
                let mut item = Vec::new();
                self.write_json(entry, objects, &mut item)?;
                json::decode(&item, Some(of.node()))
                    .expect("this server wrote it")
                    .value
            }
        };
        let item = protobuf::encode_element(tag, &tree, of);
        out.extend_from_slice(&item.map_err(|error| ApiError::internal(error.to_string()))?);

        Ok(())
    }
}

/// A list without items (or a table without rows), cut open where they belong: `head` ends with
/// their bracket.
fn pretty_frame(mut head: Vec<u8>, tail: &[u8]) -> Frame {
    let closed = pretty::indent(&[head.as_slice(), b"]}"].concat()).len() - "]\n}".len();
    head.extend_from_slice(tail);
    let mut before = pretty::indent(&head);
    let rest = before.split_off(closed);

    // The bracket gets a line of its own.
    Frame {
        before,
        after: [b"\n  ", rest.as_slice()].concat(),
    }
}

/// The text around the items in YAML: members have another order there, so a placeholder marks the
/// items.
fn yaml_frame(mut head: Vec<u8>, tail: &[u8]) -> Frame {
    const STAND_IN: &str = "\n- items\n";
    head.extend_from_slice(b"\"items\"");
    head.extend_from_slice(tail);
    let text = yaml::print(&json::parse(&head).expect("this server wrote it"));
    let (before, after) = text
        .split_once(STAND_IN)
        .expect("the list is printed in lines");
    Frame {
        before: format!("{before}\n").into_bytes(),
        after: after.as_bytes().to_vec(),
    }
}

impl Buffers {
    fn take(&self) -> Vec<u8> {
        let left = self.0.lock().pop();
        left.unwrap_or_else(|| Vec::with_capacity(PIECE + PIECE / 8))
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        // A large object once is no reason to hold so much for the rest of the list.
        if buffer.capacity() > 4 * PIECE {
            return;
        }
        buffer.clear();
        self.0.lock().push(buffer);
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.text));
    }
}

impl From<Piece> for Bytes {
    fn from(piece: Piece) -> Bytes {
        Bytes::from_owner(piece)
    }
}

impl Iterator for Pieces {
    /// An item may turn out to have no such form: the list breaks off.
    type Item = Result<Piece, ApiError>;

    fn next(&mut self) -> Option<Result<Piece, ApiError>> {
        if self.ended {
            return None;
        }

        let mut text = self.buffers.take();
        if let Err(error) = self.fill(&mut text) {
            self.ended = true;
            return Some(Err(error));
        }

        Some(Ok(Piece {
            text,
            home: self.buffers.clone(),
        }))
    }
}

/// The same pieces, compressed.
pub(super) struct Compressed<I> {
    pieces: Option<I>,
    encoder: GzEncoder<Vec<u8>>,
}

impl<I: Iterator<Item = Result<Piece, ApiError>>> Compressed<I> {
    pub(super) fn new(pieces: I) -> Compressed<I> {
        Compressed {
            pieces: Some(pieces),
            encoder: GzEncoder::new(Vec::new(), Compression::fast()),
        }
    }
}

impl<I: Iterator<Item = Result<Piece, ApiError>>> Iterator for Compressed<I> {
    type Item = Result<Bytes, ApiError>;

    fn next(&mut self) -> Option<Result<Bytes, ApiError>> {
        const INTO_MEMORY: &str = "writing into memory does not fail";

        loop {
            match self.pieces.as_mut()?.next() {
                Some(Ok(piece)) => self.encoder.write_all(piece.as_ref()).expect(INTO_MEMORY),
                Some(Err(error)) => {
                    self.pieces = None;
                    return Some(Err(error));
                }
                None => {
                    self.pieces = None;
                    self.encoder.try_finish().expect(INTO_MEMORY);
                }
            }

            let ready = std::mem::take(self.encoder.get_mut());
            if !ready.is_empty() {
                return Some(Ok(ready.into()));
            }
        }
    }
}

/// CBOR lists are written whole.
fn in_one_piece() -> ApiError {
    ApiError::internal("a list in CBOR is sent at once")
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use coracle_api::catalog::BUILTIN;
    use coracle_api::codec::media_type::Endpoint;
    use coracle_store::Revision;
    use flate2::read::GzDecoder;

    use super::*;
    use crate::request::Query;
    use crate::served::BuiltIn;

    fn served() -> Served {
        Served::BuiltIn(BuiltIn::of(
            BUILTIN.resource("", "v1", "configmaps").expect("built in"),
        ))
    }

    fn list(items: usize) -> List {
        let served = served();
        let entry = |place: usize| {
            let text = format!(
                r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"c{place}","uid":"u{place}"}},"data":{{"k":"{}"}}}}"#,
                "x".repeat(place % 3000)
            );
            let tree = json::parse(text.as_bytes()).expect("JSON");

            let revision = Revision::new(place as u64 + 1);
            Arc::new(Entry::new(
                &format!("a/c{place}"),
                &tree,
                &BUILTIN,
                served.resource(),
                revision,
            ))
        };

        let entries = (0..items).map(entry).collect();
        List {
            revision: Revision::new(9),
            entries,
            continue_token: String::new(),
            remaining: None,
        }
    }

    #[test]
    fn pieces_that_have_left_lend_their_memory_to_those_that_follow() {
        let mut pieces = Pieces::new(
            list(500),
            served(),
            rendering("application/json", ""),
            noon(),
        )
        .unwrap();
        let mut next = || pieces.next().expect("long").unwrap();

        let (first, second) = (next(), next());
        assert_ne!(
            first.as_ref().as_ptr(),
            second.as_ref().as_ptr(),
            "both are on their way"
        );

        let place = second.as_ref().as_ptr();
        drop(Bytes::from(second));
        assert_eq!(next().as_ref().as_ptr(), place);
    }

    fn rendering(accept: &str, query: &str) -> Rendering {
        Rendering::negotiate(accept, &Query::parse(query), "", Endpoint::BuiltIn).unwrap()
    }

    fn noon() -> Timestamp {
        Timestamp::from_unix(1_772_366_400, 0)
    }

    #[test]
    fn pieces_make_the_same_list_compressed_or_not() {
        const META: &str = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

        let table = "application/json;as=Table;g=meta.k8s.io;v=v1".to_owned();
        let protobuf = "application/vnd.kubernetes.protobuf";
        let forms = [
            ("application/json".to_owned(), ""),
            ("application/json".to_owned(), "pretty=true"),
            ("application/yaml".to_owned(), ""),
            (protobuf.to_owned(), ""),
            (format!("application/json;{META}"), ""),
            (format!("application/json;{META}"), "pretty=true"),
            (format!("application/yaml;{META}"), ""),
            (format!("{protobuf};{META}"), ""),
            (table.clone(), ""),
            (table.clone(), "pretty=true&includeObject=Object"),
            (table.replace("json", "yaml"), "includeObject=None"),
        ];

        for (items, (accept, query)) in [1, 500]
            .into_iter()
            .flat_map(|items| forms.iter().map(move |form| (items, form)))
        {
            let rendering = rendering(accept, query);
            let whole = rendering
                .list_of(&list(items), &Objects::served(&served()), noon())
                .unwrap();

            let pieces = || Pieces::new(list(items), served(), rendering.clone(), noon()).unwrap();
            let parts: Vec<Vec<u8>> = pieces()
                .map(|piece| piece.unwrap().as_ref().to_vec())
                .collect();
            assert!(
                parts.iter().all(|piece| piece.len() < 2 * PIECE),
                "{accept} {query}"
            );

            let together = parts.concat();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(
                together == whole,
                "{accept} {query}:\n{}\n{}",
                text(&together),
                text(&whole)
            );

            let compressed: Vec<u8> = Compressed::new(pieces()).flat_map(Result::unwrap).collect();
            let mut plain = Vec::new();
            GzDecoder::new(&compressed[..])
                .read_to_end(&mut plain)
                .expect("gzip");
            assert_eq!(plain, whole);
        }
    }
}
