//! One watch of a stream: reads items from the engine and sends them to the client.

use super::ServerState;
use super::stream::Answers;
use crate::wire::{decode_range, encode_event, mvccpb, rpc};
use crate::{Event, EventKind, Revision, StoreError, Watch, WatchItem, WatchRequest};
use bytes::Bytes;
use prost::Message;
use rpc::watch_create_request::FilterType;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use tonic::Status;

/// A response larger than this is sent in fragments if the client supports it: etcd's request
/// limit.
const FRAGMENT: usize = 1536 << 10;

/// Which events of a watch the client wants, and in which form.
#[derive(Clone, Copy)]
pub(super) struct Filter {
    puts: bool,
    deletes: bool,
    fragment: bool,
    progress: bool,
}

pub(super) fn decode_create(
    create: &rpc::WatchCreateRequest,
    state: &ServerState,
) -> (WatchRequest, Filter) {
    let without = |filter: FilterType| create.filters().any(|given| given == filter);
    let filter = Filter {
        puts: !without(FilterType::Noput),
        deletes: !without(FilterType::Nodelete),
        fragment: create.fragment,
        progress: create.progress_notify,
    };

    // An empty key means the smallest key.
    let key = if create.key.is_empty() {
        Bytes::from_static(b"\0")
    } else {
        create.key.clone()
    };

    let request = WatchRequest {
        range: decode_range(key, create.range_end.clone()),
        from: Revision::from_wire(create.start_revision).filter(|from| *from > Revision::ZERO),
        previous: create.prev_kv,
        progress_every: create.progress_notify.then_some(state.progress_every),
    };

    (request, filter)
}

pub(super) fn answer(state: &ServerState, watch_id: i64) -> rpc::WatchResponse {
    rpc::WatchResponse {
        header: Some(state.header_now()),
        watch_id,
        ..rpc::WatchResponse::default()
    }
}

pub(super) fn cancelled(answer: rpc::WatchResponse, error: &StoreError) -> rpc::WatchResponse {
    match error {
        StoreError::Compacted { compacted, .. } => rpc::WatchResponse {
            header: answer.header,
            canceled: true,
            compact_revision: compacted.to_wire(),
            ..answer
        },
        other => rpc::WatchResponse {
            canceled: true,
            cancel_reason: Status::from(other.clone()).message().to_owned(),
            ..answer
        },
    }
}

/// What a pump reports to its session.
pub(super) enum Report {
    /// Everything through this revision has been sent.
    Progress(i64, Revision),
    Ended(i64),
}

/// A pump's context: the client's stream, the session, and the watch's options.
pub(super) struct PumpTask {
    pub(super) id: i64,
    pub(super) from: Option<Revision>,
    pub(super) filter: Filter,
    /// Receives progress requests.
    pub(super) ask: Arc<Notify>,
    pub(super) state: ServerState,
    pub(super) answers: Answers<rpc::WatchResponse>,
    pub(super) reports: mpsc::Sender<Report>,
}

impl PumpTask {
    /// Sends the items of `watch` until it ends or the client disconnects.
    pub(super) async fn run(self, mut watch: Watch) {
        let mut asked = false;
        loop {
            let item = tokio::select! {
                biased;
                () = self.ask.notified() => {
                    match self.waits_until_it_begins() {
                        Some(here) => self.report(Report::Progress(self.id, here)).await,
                        None => {
                            watch.request_progress();
                            asked = true;
                            true
                        }
                    };
                    continue;
                }
                item = watch.next() => item,
            };

            let sent = match item {
                Ok(WatchItem::Events(events)) => self.send_events(events).await,
                Ok(WatchItem::Progress(revision)) if asked => {
                    asked = false;
                    self.report(Report::Progress(self.id, revision)).await
                }
                Ok(WatchItem::Progress(revision)) => self.send_progress(revision).await,
                Err(error) => {
                    let over = cancelled(answer(&self.state, self.id), &error);
                    if self.send(over).await {
                        self.report(Report::Ended(self.id)).await;
                    }
                    false
                }
            };

            if !sent {
                return;
            }
        }
    }

    /// A watch that starts at a future revision has no events yet and is at the store's revision.
    fn waits_until_it_begins(&self) -> Option<Revision> {
        let here = self.state.store.revision();
        self.from
            .is_some_and(|from| from > here.next())
            .then_some(here)
    }

    async fn send_events(&self, events: Vec<Event>) -> bool {
        let last = events
            .last()
            .map_or(Revision::ZERO, |event| event.kv.mod_revision);
        let wanted = |event: &Event| match event.kind {
            EventKind::Put => self.filter.puts,
            EventKind::Delete => self.filter.deletes,
        };

        let events: Vec<_> = events
            .into_iter()
            .filter(wanted)
            .map(encode_event)
            .collect();

        if events.is_empty() {
            return true;
        }

        let limit = if self.filter.fragment {
            FRAGMENT
        } else {
            usize::MAX
        };

        let mut pieces = fragments(events, limit).into_iter().peekable();
        while let Some(events) = pieces.next() {
            let fragment = pieces.peek().is_some();
            let header = Some(self.state.header(last));
            if !self
                .send(rpc::WatchResponse {
                    header,
                    events,
                    fragment,
                    ..answer(&self.state, self.id)
                })
                .await
            {
                return false;
            }
        }

        true
    }

    async fn send_progress(&self, revision: Revision) -> bool {
        if !self.filter.progress {
            return true;
        }
        let header = Some(self.state.header(revision));
        self.send(rpc::WatchResponse {
            header,
            ..answer(&self.state, self.id)
        })
        .await
    }

    async fn send(&self, answer: rpc::WatchResponse) -> bool {
        self.answers.send(Ok(answer)).await.is_ok()
    }

    async fn report(&self, report: Report) -> bool {
        self.reports.send(report).await.is_ok()
    }
}

/// Splits events into pieces of at most `limit` bytes; a larger event is a piece of its own.
fn fragments(events: Vec<mvccpb::Event>, limit: usize) -> Vec<Vec<mvccpb::Event>> {
    let mut pieces = vec![Vec::new()];
    let mut bytes = 0_usize;
    for event in events {
        let size = event.encoded_len();
        let piece = pieces.last_mut().expect("there is always a piece");
        if piece.is_empty() || bytes.saturating_add(size) <= limit {
            bytes += size;
            piece.push(event);
        } else {
            bytes = size;
            pieces.push(vec![event]);
        }
    }

    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_no_larger_than_they_may_be_and_keep_the_order() {
        let event = |size: usize| mvccpb::Event {
            kv: Some(mvccpb::KeyValue {
                value: vec![0; size].into(),
                ..mvccpb::KeyValue::default()
            }),
            ..mvccpb::Event::default()
        };

        let check = |sizes: &[usize], limit: usize, expected: &[&[usize]]| {
            let cut = fragments(sizes.iter().map(|size| event(*size)).collect(), limit);
            let found: Vec<Vec<_>> = cut
                .iter()
                .map(|piece| {
                    piece
                        .iter()
                        .map(|event| event.kv.as_ref().unwrap().value.len())
                        .collect()
                })
                .collect();
            assert_eq!(found, expected, "{sizes:?}");
        };

        check(&[10, 20, 30], usize::MAX, &[&[10, 20, 30]]);
        check(&[10, 20, 30], 50, &[&[10, 20], &[30]]);
        check(&[100, 1, 100], 50, &[&[100], &[1], &[100]]);
    }
}
