//! Bounds on the bytes that the server holds for clients: of one user, and of all together.
//!
//! A client decides how slowly a request's body is sent and how slowly an answer is read. Without a
//! bound, any client that may send requests could fill the server's memory with bodies that never
//! end or answers that are never read.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use coracle_base::sync::Mutex;
use http_body::{Body, Frame, SizeHint};

use crate::request::{BoxError, RequestBody};

/// The budget is used up.
#[derive(Debug, thiserror::Error)]
#[error("the server holds too many bytes of requests in flight, please try again later")]
pub(crate) struct OverBudget;

/// How many bytes may be held, and how many are.
pub(crate) struct ByteBudget {
    total: usize,
    per_user: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    total: usize,
    by_user: HashMap<String, usize>,
}

/// Bytes held for one request; given back on drop.
pub(crate) struct Reservation {
    budget: Arc<ByteBudget>,
    user: String,
    bytes: Mutex<usize>,
}

impl ByteBudget {
    /// For the bodies of requests; a user may have eight of the largest size.
    pub(crate) fn of_bodies() -> ByteBudget {
        ByteBudget::new(96 << 20, 24 << 20)
    }

    /// For responses that clients have not read yet.
    pub(crate) fn of_answers() -> ByteBudget {
        ByteBudget::new(384 << 20, 128 << 20)
    }

    fn new(total: usize, per_user: usize) -> ByteBudget {
        ByteBudget {
            total,
            per_user,
            held: Mutex::default(),
        }
    }

    /// An empty reservation of a user.
    pub(crate) fn reservation(self: &Arc<Self>, user: &str) -> Arc<Reservation> {
        Arc::new(Reservation {
            budget: self.clone(),
            user: user.to_owned(),
            bytes: Mutex::default(),
        })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}

impl Reservation {
    /// Reserves more bytes, if both the user and all users together stay within the budget.
    pub(crate) fn add(&self, bytes: usize) -> Result<(), OverBudget> {
        let budget = &self.budget;
        let mut held = budget.held();
        let of_user = held.by_user.get(&self.user).copied().unwrap_or_default() + bytes;
        if held.total + bytes > budget.total || of_user > budget.per_user {
            return Err(OverBudget);
        }

        held.total += bytes;
        held.by_user.insert(self.user.clone(), of_user);
        *self.bytes.lock() += bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        if bytes == 0 {
            return;
        }

        let mut held = self.budget.held();
        held.total -= bytes;
        match held.by_user.get_mut(&self.user) {
            Some(of_user) if *of_user > bytes => *of_user -= bytes,
            _ => drop(held.by_user.remove(&self.user)),
        }
    }
}

/// A body whose bytes are counted as they come.
pub(crate) struct Counted<B> {
    body: Pin<Box<B>>,
    reservation: Arc<Reservation>,
}

impl<B: RequestBody> Counted<B> {
    pub(crate) fn new(body: B, reservation: Arc<Reservation>) -> Counted<B> {
        Counted {
            body: Box::pin(body),
            reservation,
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
        let counted = self.reservation.add(frame.data_ref().map_or(0, Bytes::len));
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
    fn a_user_and_all_users_together_have_a_limit() {
        let budget = Arc::new(ByteBudget::new(400, 100));
        let ann = budget.reservation("ann");
        ann.add(100).unwrap();
        assert!(ann.add(1).is_err());
        assert!(budget.reservation("ann").add(1).is_err());

        let others: Vec<_> = (1..4).map(|n| budget.reservation(&n.to_string())).collect();
        others.iter().for_each(|other| other.add(100).unwrap());
        assert!(budget.reservation("late").add(1).is_err());

        drop(ann);
        budget.reservation("late").add(100).unwrap();
        drop(others);
        assert_eq!(budget.held().total, 0);
        assert!(budget.held().by_user.is_empty());
    }
}
