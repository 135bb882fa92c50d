//! A watch: a task that reads one stream after another and forwards the items.
//!
//! The task knows the next revision to deliver. Every stream starts there, at any member; a message
//! that was received only in part is discarded. So a reader does not notice the change from one
//! stream to another. The task is owned by the watch and ends with it.

use super::connection::{Connection, Rounds, Wire, watcher};
use super::history;
use super::outcome::{Fault, unreachable};
use super::progress::{Proof, answers_progress, prove};
use crate::wire::{Refusal, decode_event, encode_range, header, rpc};
use crate::{Event, Revision, StoreError, Unavailable, WatchItem, WatchRequest, WatchSource};
use async_trait::async_trait;
use rpc::watch_request::RequestUnion;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Items buffered for the reader before reading from the stream pauses.
const ITEMS: usize = 32;
/// Requests buffered for the server: the watch, and progress requests.
const REQUESTS: usize = 4;
/// A server that is not ready to report progress drops the request; it is repeated after this time.
const PROGRESS_RETRY: Duration = Duration::from_millis(100);
/// How long opening a watch waits for the server's confirmation.
const OPENED_WITHIN: Duration = Duration::from_secs(2);

/// The reader's side of a watch.
pub(crate) struct EtcdWatch {
    items: mpsc::Receiver<Result<WatchItem, StoreError>>,
    asked: Arc<Notify>,
    ended: Option<StoreError>,
    _task: JoinSet<()>,
}

/// Opens a watch on a store that is at `current`. A message on `asked` requests progress.
///
/// The watch is open when the server confirms it: a later compaction then no longer affects it. If
/// the confirmation takes too long, the watch is returned without it.
pub(crate) async fn open(
    connection: Arc<Connection>,
    request: WatchRequest,
    current: Revision,
    asked: Arc<Notify>,
) -> EtcdWatch {
    let (sender, items) = mpsc::channel(ITEMS);
    let (created, opened) = oneshot::channel();
    let follower = Follower {
        next: request.from.unwrap_or(current.next()).max(Revision::FIRST),
        asked: asked.clone(),
        wanted: false,
        last_item: Instant::now(),
        on_its_way: None,
        created: Some(created),
        items: sender,
        connection,
        request,
    };

    let mut task = JoinSet::new();
    task.spawn(follower.run());

    // On a timeout or an early end of the watch, its reader sees the result.
    timeout(OPENED_WITHIN, opened).await.ok();

    EtcdWatch {
        items,
        asked,
        ended: None,
        _task: task,
    }
}

#[async_trait]
impl WatchSource for EtcdWatch {
    async fn next(&mut self) -> Result<WatchItem, StoreError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }

        // The task reports why it ends; only a runtime shutdown drops it without an error.
        let item = self
            .items
            .recv()
            .await
            .unwrap_or(Err(Unavailable::Closed.into()));

        if let Err(error) = &item {
            self.ended = Some(error.clone());
        }

        item
    }

    fn request_progress(&mut self) {
        self.asked.notify_one();
    }
}

struct Follower {
    connection: Arc<Connection>,
    request: WatchRequest,
    /// The first revision that has not been delivered.
    next: Revision,
    items: mpsc::Sender<Result<WatchItem, StoreError>>,
    asked: Arc<Notify>,
    /// Progress was requested.
    wanted: bool,
    last_item: Instant,
    /// What the last proof of progress found to be outstanding.
    on_its_way: Option<Revision>,
    /// The caller that waits for the watch to be open.
    created: Option<oneshot::Sender<()>>,
}

/// Why reading from a stream ended.
enum End {
    /// Continue with another stream.
    Broken(String),
    /// The watch has ended.
    Over(StoreError),
    /// The reader was dropped.
    Unheard,
}

/// One stream of one member.
struct Stream {
    member: usize,
    channel: Wire,
    requests: mpsc::Sender<rpc::WatchRequest>,
    answers: Streaming<rpc::WatchResponse>,
    /// The first revision requested on it.
    start: Revision,
    /// Whether anything was received on it.
    spoken: bool,
    /// Fragments of an incomplete message.
    parts: Vec<Event>,
    /// Whether the member reports progress correctly, once that is known.
    tells_progress: Option<bool>,
    /// When progress is requested again.
    ask_at: Option<Instant>,
}

impl Follower {
    async fn run(mut self) {
        let mut broken_since: Option<Instant> = None;
        let mut rounds = self.connection.rounds();
        loop {
            let end = match self.open_stream().await {
                Ok(mut stream) => {
                    let end = self.follow(&mut stream).await;
                    if matches!(end, End::Broken(_)) {
                        self.connection.switch_from(stream.member);
                    }
                    // A stream on which nothing was received counts as a failed attempt.
                    if stream.spoken {
                        (broken_since, rounds) = (None, self.connection.rounds());
                    }

                    end
                }
                Err(end) => end,
            };

            let over = match end {
                End::Unheard => return,
                End::Over(error) => error,
                End::Broken(reason) => {
                    let since = *broken_since.get_or_insert_with(Instant::now);
                    if since.elapsed() < self.connection.watch_patience {
                        self.pause(&mut rounds).await;
                        continue;
                    }
                    unreachable(reason)
                }
            };

            // A send error means that the reader was dropped; the watch ends either way.
            return self.items.send(Err(over)).await.unwrap_or_default();
        }
    }

    async fn pause(&self, rounds: &mut Rounds) {
        tokio::select! {
            biased;
            () = self.items.closed() => {}
            () = sleep(rounds.pause()) => {}
        }
    }

    async fn open_stream(&mut self) -> Result<Stream, End> {
        let (member, channel) = self.connection.preferred();
        let (requests, outgoing) = mpsc::channel(REQUESTS);

        let (key, range_end) = encode_range(&self.request.range);
        let create = rpc::WatchCreateRequest {
            key,
            range_end,
            start_revision: self.next.to_wire(),
            progress_notify: true,
            prev_kv: self.request.previous,
            fragment: true,
            ..rpc::WatchCreateRequest::default()
        };

        let create = rpc::WatchRequest {
            request_union: Some(RequestUnion::CreateRequest(create)),
        };
        requests
            .try_send(create)
            .expect("the channel is new and not full");
        let opened = async {
            let request = self
                .connection
                .request(&channel, ReceiverStream::new(outgoing))
                .await?;
            watcher(channel.clone())
                .watch(request)
                .await
                .map_err(|status| Fault::read(&status))
        };

        let fault = match timeout(self.connection.attempt_timeout, opened).await {
            Ok(Ok(answers)) => {
                return Ok(Stream {
                    member,
                    channel,
                    requests,
                    answers: answers.into_inner(),
                    start: self.next,
                    spoken: false,
                    parts: Vec::new(),
                    tells_progress: None,
                    ask_at: None,
                });
            }
            Ok(Err(fault)) => fault,
            Err(_) => Fault::timed_out(self.connection.attempt_timeout),
        };

        self.connection.switch_from(member);

        Err(self.end(fault))
    }

    /// Forwards the items of a stream until it breaks.
    async fn follow(&mut self, stream: &mut Stream) -> End {
        loop {
            let period = self.request.progress_every;
            tokio::select! {
                biased;
                () = self.items.closed() => return End::Unheard,
                answer = stream.answers.message() => match self.received(stream, answer).await {
                    Ok(()) => {}
                    Err(end) => return end,
                },
                () = self.asked.notified() => self.request_progress_from(stream),
                () = until(period.map(|period| self.last_item + period)), if !self.wanted => {
                    self.request_progress_from(stream);
                }
                () = until(stream.ask_at), if self.wanted => match self.ask(stream).await {
                    Ok(()) => {}
                    Err(end) => return end,
                },
            }

            if self.wanted && stream.ask_at.is_none() {
                stream.ask_at = Some(Instant::now());
            }
        }
    }

    fn request_progress_from(&mut self, stream: &mut Stream) {
        self.wanted = true;
        stream.ask_at = Some(Instant::now());
    }

    async fn received(
        &mut self,
        stream: &mut Stream,
        answer: Result<Option<rpc::WatchResponse>, tonic::Status>,
    ) -> Result<(), End> {
        let answer = match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => return Err(End::Broken("the server ended the watch".to_owned())),
            Err(status) => return Err(self.end(Fault::read(&status))),
        };

        stream.spoken = true;

        if answer.canceled {
            return Err(self.cancelled(&answer));
        }

        if answer.created {
            // The caller may have stopped waiting.
            self.created
                .take()
                .and_then(|created| created.send(()).ok());
            return Ok(());
        }

        if answer.events.is_empty() && !answer.fragment && stream.parts.is_empty() {
            let here = header(answer.header.as_ref());

            // From a member that reports its own revision instead of the watch's, only events
            // count.
            let believed = answer.watch_id >= 0 || stream.tells_progress == Some(true);
            return if believed {
                self.progress(stream, here).await
            } else {
                Ok(())
            };
        }

        stream
            .parts
            .extend(answer.events.into_iter().map(decode_event));

        if answer.fragment {
            return Ok(());
        }

        let events = std::mem::take(&mut stream.parts);
        self.events(stream, events).await
    }

    async fn events(&mut self, stream: &mut Stream, mut events: Vec<Event>) -> Result<(), End> {
        events.retain(|event| event.kv.mod_revision >= self.next);
        let Some(last) = events.last() else {
            return Ok(());
        };
        let last = last.kv.mod_revision;
        self.next = last.next();
        self.deliver(WatchItem::Events(events)).await?;

        // Events are ordered: nothing before them is outstanding.
        match self.on_its_way.take_if(|revision| last >= *revision) {
            Some(_) => self.progress(stream, last).await,
            None => Ok(()),
        }
    }

    async fn progress(&mut self, stream: &mut Stream, here: Revision) -> Result<(), End> {
        // A member that lags behind the previous one reports nothing new.
        if here.next() < self.next {
            return Ok(());
        }
        self.next = here.next();
        self.wanted = false;
        self.on_its_way = None;
        stream.ask_at = None;
        self.deliver(WatchItem::Progress(here)).await
    }

    async fn deliver(&mut self, item: WatchItem) -> Result<(), End> {
        self.last_item = Instant::now();
        self.items.send(Ok(item)).await.map_err(|_| End::Unheard)
    }

    /// Requests progress from the member, or proves it if the member reports it incorrectly.
    async fn ask(&mut self, stream: &mut Stream) -> Result<(), End> {
        stream.ask_at = Some(Instant::now() + PROGRESS_RETRY);
        let tells = match stream.tells_progress {
            Some(tells) => tells,
            None => {
                let version = self.connection.version_of(stream.channel.clone()).await;
                let version = version.map_err(|fault| self.end(fault))?;
                *stream.tells_progress.insert(answers_progress(&version))
            }
        };

        if tells {
            let ask = RequestUnion::ProgressRequest(rpc::WatchProgressRequest {});
            // A full queue contains such a request already; a closed one is noticed when the stream
            // is read.
            drop(stream.requests.try_send(rpc::WatchRequest {
                request_union: Some(ask),
            }));
            return self.nothing_since(stream).await;
        }

        match prove(&self.connection, &self.request.range, self.next).await {
            Ok(Proof::Through(here)) => self.progress(stream, here).await,
            Ok(Proof::OnItsWay(revision)) => {
                self.on_its_way.get_or_insert(revision);
                Ok(())
            }
            Ok(Proof::Nothing) => Ok(()),
            Ok(Proof::Forgotten) => {
                let gone = history::revision_error(&self.connection, Refusal::Compacted, self.next);
                Err(End::Over(gone.await))
            }
            Err(fault) => Err(self.end(fault)),
        }
    }

    /// A member reports no progress before it has reached the first revision of the stream. If it
    /// never does, because nothing was written, everything has been delivered.
    async fn nothing_since(&mut self, stream: &mut Stream) -> Result<(), End> {
        if stream.start < self.next {
            return Ok(());
        }

        let current = self
            .connection
            .current_revision()
            .await
            .map_err(|fault| self.end(fault))?;

        if current.next() == self.next {
            self.progress(stream, current).await
        } else {
            Ok(())
        }
    }

    fn cancelled(&self, answer: &rpc::WatchResponse) -> End {
        if answer.compact_revision > 0 {
            let compacted = Revision::from_wire(answer.compact_revision).unwrap_or_default();
            return End::Over(StoreError::Compacted {
                requested: self.next,
                compacted,
            });
        }
        match Refusal::read_text(&answer.cancel_reason) {
            Some(refusal) => self.end(Fault::Refused(refusal)),
            None => End::Broken(answer.cancel_reason.clone()),
        }
    }

    fn end(&self, fault: Fault) -> End {
        if self.connection.wants_new_token(&fault) {
            self.connection.discard_token();
            return End::Broken(fault.reason());
        }

        match fault {
            Fault::Refused(
                refusal @ (Refusal::PermissionDenied | Refusal::AuthFailed | Refusal::UserEmpty),
            ) => End::Over(
                Unavailable::AccessDenied {
                    reason: refusal.text().to_owned(),
                }
                .into(),
            ),
            fault => End::Broken(fault.reason()),
        }
    }
}

/// Waits until `moment`; without one, forever.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
