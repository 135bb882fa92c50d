//! A long list, piece by piece: its body is never whole in memory.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Objects, whole};
use crate::registry::List;
use crate::served::Served;

/// A piece is about this long.
const PIECE: usize = 64 * 1024;

/// Shorter lists are sent at once, with their length.
pub(super) const LONG: usize = 2 * PIECE;

/// The pieces of a list of whole objects in JSON.
pub(super) struct Pieces {
    list: List,
    served: Served,
    /// The next item.
    place: usize,
    ended: bool,
    buffers: Buffers,
}

/// The memory of pieces that have left, for those that follow: new memory costs a list as much as filling it.
#[derive(Clone, Default)]
struct Buffers(Arc<Mutex<Vec<Vec<u8>>>>);

/// A part of the list.
pub(super) struct Piece {
    text: Vec<u8>,
    home: Buffers,
}

impl Pieces {
    pub(super) fn new(list: List, served: Served) -> Pieces {
        Pieces { list, served, place: 0, ended: false, buffers: Buffers::default() }
    }
}

impl Buffers {
    fn take(&self) -> Vec<u8> {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        left.unwrap_or_else(|| Vec::with_capacity(PIECE + PIECE / 8))
    }

    fn give_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
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
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.ended {
            return None;
        }
        let mut out = self.buffers.take();
        let objects = Objects::served(&self.served);
        if self.place == 0 {
            whole::write_list_head(&self.list, &objects, &mut out);
        }
        let prefix = whole::own_prefix(&objects);
        while out.len() < PIECE {
            let Some(entry) = self.list.entries.get(self.place) else {
                out.extend_from_slice(b"]}\n");
                self.ended = true;
                break;
            };
            if self.place > 0 {
                out.push(b',');
            }
            whole::write_item(entry, &objects, &prefix, &mut out);
            self.place += 1;
        }
        Some(Piece { text: out, home: self.buffers.clone() })
    }
}

/// The same pieces, compressed.
pub(super) struct Compressed<I> {
    pieces: Option<I>,
    encoder: GzEncoder<Vec<u8>>,
}

impl<I: Iterator<Item = Piece>> Compressed<I> {
    pub(super) fn new(pieces: I) -> Compressed<I> {
        Compressed { pieces: Some(pieces), encoder: GzEncoder::new(Vec::new(), Compression::fast()) }
    }
}

impl<I: Iterator<Item = Piece>> Iterator for Compressed<I> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        const INTO_MEMORY: &str = "writing into memory does not fail";
        loop {
            match self.pieces.as_mut()?.next() {
                Some(piece) => self.encoder.write_all(piece.as_ref()).expect(INTO_MEMORY),
                None => {
                    self.pieces = None;
                    self.encoder.try_finish().expect(INTO_MEMORY);
                }
            }
            let ready = std::mem::take(self.encoder.get_mut());
            if !ready.is_empty() {
                return Some(ready.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use coracle_api::catalog::BUILTIN;
    use coracle_api::codec::json;
    use coracle_store::Revision;
    use flate2::read::GzDecoder;

    use super::*;
    use crate::cache::Entry;
    use crate::served::BuiltIn;

    fn served() -> Served {
        Served::BuiltIn(BuiltIn::of(BUILTIN.resource("", "v1", "configmaps").expect("built in")))
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
            Arc::new(Entry::new(&format!("a/c{place}"), &tree, &BUILTIN, served.resource(), revision))
        };
        let entries = (0..items).map(entry).collect();
        List { revision: Revision::new(9), entries, continue_token: String::new(), remaining: None }
    }

    #[test]
    fn pieces_that_have_left_lend_their_memory_to_those_that_follow() {
        let mut pieces = Pieces::new(list(500), served());
        let (first, second) = (pieces.next().expect("long"), pieces.next().expect("long"));
        assert_ne!(first.as_ref().as_ptr(), second.as_ref().as_ptr(), "both are on their way");
        let place = second.as_ref().as_ptr();
        drop(Bytes::from(second));
        assert_eq!(pieces.next().expect("long").as_ref().as_ptr(), place);
    }

    #[test]
    fn pieces_make_the_same_list_compressed_or_not() {
        for items in [0, 1, 500] {
            let mut whole = Vec::new();
            whole::write_list(&list(items), &Objects::served(&served()), &mut whole);
            whole.push(b'\n');
            let pieces = Pieces::new(list(items), served()).map(|piece| piece.as_ref().to_vec());
            let pieces: Vec<Vec<u8>> = pieces.collect();
            assert!(pieces.iter().all(|piece| piece.len() < 2 * PIECE));
            assert_eq!(String::from_utf8_lossy(&pieces.concat()), String::from_utf8_lossy(&whole));
            let compressed: Vec<u8> = Compressed::new(Pieces::new(list(items), served())).flatten().collect();
            let mut plain = Vec::new();
            GzDecoder::new(&compressed[..]).read_to_end(&mut plain).expect("gzip");
            assert_eq!(plain, whole);
        }
    }
}
