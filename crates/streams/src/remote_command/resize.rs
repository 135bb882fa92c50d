//! Terminal sizes: a sequence of JSON objects.

use bytes::BytesMut;
use serde::{Deserialize, Serialize};

use crate::pipe::Receiver;

/// The maximum length of an incomplete object.
const LONGEST_OBJECT: usize = 4096;

/// In characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Size {
    pub width: u16,
    pub height: u16,
}

/// The terminal sizes that a client sends.
pub struct Sizes {
    receiver: Receiver,
    held: BytesMut,
}

impl Sizes {
    pub(super) fn new(receiver: Receiver) -> Sizes {
        Sizes {
            receiver,
            held: BytesMut::new(),
        }
    }

    /// The next size; `None` at the end or after invalid data.
    pub async fn next(&mut self) -> Option<Size> {
        loop {
            let mut objects = serde_json::Deserializer::from_slice(&self.held).into_iter::<Size>();
            match objects.next() {
                Some(Ok(size)) => {
                    let read = objects.byte_offset();
                    drop(self.held.split_to(read));
                    return Some(size);
                }
                Some(Err(error)) if !error.is_eof() => return None,
                _ if self.held.len() > LONGEST_OBJECT => return None,
                _ => self.held.extend_from_slice(&self.receiver.next().await?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::pipe::inlet;

    async fn check(pieces: &[&[u8]], expected: &[(u16, u16)]) {
        let (inlet, receiver) = inlet();
        for piece in pieces {
            inlet.put(Bytes::copy_from_slice(piece)).await;
        }
        drop(inlet);
        let (mut sizes, mut found) = (Sizes::new(receiver), Vec::new());
        while let Some(size) = sizes.next().await {
            found.push((size.width, size.height));
        }
        assert_eq!(found, expected, "{pieces:?}");
    }

    #[tokio::test]
    async fn sizes_are_read_in_any_chunks() {
        let text = b"{\"Width\":80,\"Height\":24}\n{\"Width\":100,\"Height\":30}\n";
        for at in 0..text.len() {
            let (first, second) = text.split_at(at);
            check(&[first, second], &[(80, 24), (100, 30)]).await;
        }
    }

    #[tokio::test]
    async fn invalid_data_ends_the_stream() {
        check(&[b"{\"Width\":80,\"Height\":24}x"], &[(80, 24)]).await;
        check(&[b"{\"Width\":-1}"], &[]).await;
        check(&[&vec![b' '; 5000], b"{\"Width\":80,\"Height\":24}"], &[]).await;
    }
}
