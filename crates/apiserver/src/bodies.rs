//! How much of the bodies of requests is held at a time, of one user and of all together.
//!
//! A body is held from its first byte until its request is answered, and a client decides how
//! slowly it comes. Without a bound, any client that may send requests could fill the server's
//! memory with bodies that never end.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::handler::{BoxError, RequestBody};

/// Bytes of all bodies.
const MOST: usize = 96 << 20;

/// Bytes of one user's: eight bodies of the largest size.
const MOST_OF_ONE: usize = 24 << 20;

/// More than may be held has come.
#[derive(Debug, thiserror::Error)]
#[error("the server holds too much of requests that are under way, please try again later")]
pub(crate) struct NoRoom;

/// The bodies of all requests under way.
#[derive(Default)]
pub(crate) struct Bodies(Mutex<Held>);

#[derive(Default)]
struct Held {
    all: usize,
    of: HashMap<String, usize>,
}

/// What is held of one request.
pub(crate) struct Holding {
    bodies: Arc<Bodies>,
    user: String,
    bytes: Mutex<usize>,
}

impl Bodies {
    pub(crate) fn holding(self: &Arc<Self>, user: &str) -> Arc<Holding> {
        Arc::new(Holding {
            bodies: self.clone(),
            user: user.to_owned(),
            bytes: Mutex::default(),
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holding {
    fn add(&self, bytes: usize) -> Result<(), NoRoom> {
        let mut held = self.bodies.held();
        let of_one = held.of.get(&self.user).copied().unwrap_or_default() + bytes;
        if held.all + bytes > MOST || of_one > MOST_OF_ONE {
            return Err(NoRoom);
        }

        held.all += bytes;
        held.of.insert(self.user.clone(), of_one);
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        Ok(())
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut().unwrap_or_else(PoisonError::into_inner);
        if bytes == 0 {
            return;
        }

        let mut held = self.bodies.held();
        held.all -= bytes;
        match held.of.get_mut(&self.user) {
            Some(of_one) if *of_one > bytes => *of_one -= bytes,
            _ => drop(held.of.remove(&self.user)),
        }
    }
}

/// A body whose bytes are counted as they come.
pub(crate) struct Counted<B> {
    body: Pin<Box<B>>,
    holding: Arc<Holding>,
}

impl<B: RequestBody> Counted<B> {
    pub(crate) fn new(body: B, holding: Arc<Holding>) -> Counted<B> {
        Counted {
            body: Box::pin(body),
            holding,
        }
    }
}

impl<B: RequestBody> Body for Counted<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = match ready!(self.body.as_mut().poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other.map(|frame| frame.map_err(Into::into))),
        };
        let counted = self.holding.add(frame.data_ref().map_or(0, Bytes::len));
        Poll::Ready(Some(counted.map(|()| frame).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_a_share_and_all_have_an_end() {
        let bodies = Arc::new(Bodies::default());
        let ann = bodies.holding("ann");
        ann.add(MOST_OF_ONE).unwrap();
        assert!(ann.add(1).is_err());
        assert!(bodies.holding("ann").add(1).is_err());

        let others: Vec<_> = (1..MOST / MOST_OF_ONE)
            .map(|n| bodies.holding(&n.to_string()))
            .collect();
        others
            .iter()
            .for_each(|other| other.add(MOST_OF_ONE).unwrap());
        assert!(bodies.holding("late").add(1).is_err());

        drop(ann);
        bodies.holding("late").add(MOST_OF_ONE).unwrap();
        drop(others);
        assert_eq!(bodies.held().all, 0);
        assert!(bodies.held().of.is_empty());
    }
}
