//! A body that ends at its deadline, however slowly its server sends it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::time::{Instant, Sleep};

use crate::answer::{self, Answer, BrokenOff};

/// Marks an answer that another server is still sending: it has the deadline of its request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forwarded;

struct Limited {
    body: answer::Body,
    over: Pin<Box<Sleep>>,
}

/// The answer, which breaks off when the time is over.
pub(crate) fn until(answer: Answer, deadline: Instant) -> Answer {
    if answer.body().is_end_stream() {
        return answer;
    }
    let over = Box::pin(tokio::time::sleep_until(deadline));
    answer.map(|body| Limited { body, over }.boxed_unsync())
}

impl Body for Limited {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err("the answer did not end in time".into())));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
