//! The body of an answer: read completely, or line by line as it arrives.

use std::io;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

/// A body that may still be arriving.
pub type Body = UnsyncBoxBody<Bytes, BodyError>;

/// The connection was lost while a body was read.
#[derive(Debug, thiserror::Error)]
#[error("connection lost while reading the answer")]
pub struct BodyError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

impl From<io::Error> for BodyError {
    fn from(error: io::Error) -> BodyError {
        BodyError(error.into())
    }
}

/// Reads a body line by line.
pub(crate) fn lines(body: Body) -> Lines {
    Lines {
        body: Box::pin(body),
        held: BytesMut::new(),
        searched: 0,
        ended: false,
    }
}

/// The lines of a body, without line breaks.
pub(crate) struct Lines {
    body: Pin<Box<Body>>,
    held: BytesMut,
    /// How much of `held` is known to contain no line break.
    searched: usize,
    ended: bool,
}

impl Lines {
    /// The next line, whether or not the body ends after it; `None` at the end.
    ///
    /// # Cancellation
    /// Cancel-safe: received bytes are kept.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            if let Some(at) = self.held[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n')
            {
                let mut line = self.held.split_to(self.searched + at + 1).freeze();
                line.truncate(line.len() - 1);
                self.searched = 0;
                return Ok(Some(line));
            }

            self.searched = self.held.len();

            if self.ended {
                self.searched = 0;
                let rest = std::mem::take(&mut self.held).freeze();
                return Ok((!rest.is_empty()).then_some(rest));
            }

            match self.body.as_mut().frame().await {
                None => self.ended = true,
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.held.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::task::{Context, Poll};

    use http_body::Frame;

    use super::*;

    struct Pieces(VecDeque<Bytes>);

    impl http_body::Body for Pieces {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    #[tokio::test]
    async fn lines_do_not_depend_on_how_the_body_is_cut() {
        for pieces in [
            &["ab\ncd\n"][..],
            &["a", "b\nc", "d\n"],
            &["ab\n", "cd"],
            &["ab", "\n", "cd", "\n"],
        ] {
            let pieces = pieces
                .iter()
                .map(|piece| Bytes::from_static(piece.as_bytes()))
                .collect();
            let mut lines = lines(Pieces(pieces).boxed_unsync());
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(&b"ab"[..]));
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(&b"cd"[..]));
            assert_eq!(lines.next().await.unwrap(), None);
        }
    }
}
