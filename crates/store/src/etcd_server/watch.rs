//! `Watch`: many watches on one stream.
//!
//! A session belongs to a stream. It reads the client's requests and has a pump for each watch: a
//! task that takes items from the engine and sends them as responses. Session and pumps send into
//! the same channel, which keeps the order: `created` comes before the first event of a watch, and
//! nothing comes after `canceled`. When the client requests progress, every pump is asked, and the
//! session answers with the lowest revision that they report: everything before it is in the
//! channel by then.

use super::pump::{Filter, PumpTask, Report, answer, cancelled, decode_create};
use super::stream::{AnswerStream, Answers};
use super::{ServerState, stopped};
use crate::wire::{Refusal, rpc};
use crate::{Revision, Store, Watch};
use async_trait::async_trait;
use rpc::watch_request::RequestUnion;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};
use tonic::{Request, Response, Status, Streaming};

/// How many reports of pumps are buffered.
const REPORTS: usize = 64;
/// The watch id of a response that concerns all watches of the stream.
const ALL: i64 = -1;
const DUPLICATE: &str = "mvcc: duplicate watch ID provided on the WatchStream";

#[async_trait]
impl rpc::watch_server::Watch for ServerState {
    type WatchStream = AnswerStream<rpc::WatchResponse>;

    async fn watch(
        &self,
        request: Request<Streaming<rpc::WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (state, requests) = (self.clone(), request.into_inner());
        Ok(Response::new(AnswerStream::new(|answers| {
            Session::new(state, answers).run(requests)
        })))
    }
}

struct Session {
    state: ServerState,
    answers: Answers<rpc::WatchResponse>,
    pumps: BTreeMap<i64, Pump>,
    next_id: i64,
    /// The pumps that have not reported yet, and the lowest revision of those that have.
    round: Option<(BTreeSet<i64>, Revision)>,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
}

/// The session's handle of a pump, which ends when it is dropped.
struct Pump {
    ask: Arc<Notify>,
    task: JoinSet<()>,
}

/// The client disconnected.
struct Disconnected;

impl Session {
    fn new(state: ServerState, answers: Answers<rpc::WatchResponse>) -> Self {
        let (pumps, reports) = (BTreeMap::new(), mpsc::channel(REPORTS));
        Session {
            state,
            answers,
            pumps,
            next_id: 0,
            round: None,
            reports,
        }
    }

    async fn run(mut self, mut requests: Streaming<rpc::WatchRequest>) {
        let stopped = stopped(self.state.stopping.clone());
        tokio::pin!(stopped);

        loop {
            let heard = tokio::select! {
                biased;
                () = &mut stopped => {
                    // `Disconnected` means that the client disconnected.
                    return self.answers.send(Err(Refusal::Stopped.into())).await.unwrap_or_default();
                }
                Some(report) = self.reports.1.recv() => self.reported(report).await,
                request = requests.message() => match request {
                    Ok(Some(request)) => self.requested(request).await,
                    // A client that sends no more requests may still read.
                    Ok(None) if !self.pumps.is_empty() => self.listen().await,
                    Ok(None) | Err(_) => return,
                },
            };

            if heard.is_err() {
                return;
            }
        }
    }

    /// The client has sent its last request: continue until it disconnects.
    async fn listen(&mut self) -> Result<(), Disconnected> {
        while !self.pumps.is_empty() {
            tokio::select! {
                biased;
                () = stopped(self.state.stopping.clone()) => return Err(Disconnected),
                () = self.answers.closed() => return Err(Disconnected),
                Some(report) = self.reports.1.recv() => self.reported(report).await?,
            }
        }
        Err(Disconnected)
    }

    async fn requested(&mut self, request: rpc::WatchRequest) -> Result<(), Disconnected> {
        match request.request_union {
            Some(RequestUnion::CreateRequest(create)) => self.create(create).await,
            Some(RequestUnion::CancelRequest(cancel)) => self.cancel(cancel.watch_id).await,
            Some(RequestUnion::ProgressRequest(_)) => self.ask_all().await,
            None => Ok(()),
        }
    }

    async fn create(&mut self, create: rpc::WatchCreateRequest) -> Result<(), Disconnected> {
        let Some(id) = self.new_id(create.watch_id) else {
            let refused = rpc::WatchResponse {
                created: true,
                canceled: true,
                cancel_reason: DUPLICATE.to_owned(),
                ..self.answer(ALL)
            };
            return self.send(refused).await;
        };

        let (request, filter) = decode_create(&create, &self.state);
        let opened = self.state.store.watch(request.clone()).await;
        let revision = opened
            .as_ref()
            .map_or(self.state.store.revision(), Watch::created_at);

        let header = Some(self.state.header(revision));
        self.send(rpc::WatchResponse {
            created: true,
            header,
            ..self.answer(id)
        })
        .await?;

        match opened {
            Ok(watch) => self.pump(id, watch, request.from, filter),
            Err(error) => self.send(cancelled(self.answer(id), &error)).await?,
        }

        Ok(())
    }

    fn pump(&mut self, id: i64, watch: Watch, from: Option<Revision>, filter: Filter) {
        let ask = Arc::new(Notify::new());
        let outlet = PumpTask {
            id,
            from,
            filter,
            ask: ask.clone(),
            state: self.state.clone(),
            answers: self.answers.clone(),
            reports: self.reports.0.clone(),
        };

        let mut task = JoinSet::new();
        task.spawn(outlet.run(watch));
        self.pumps.insert(id, Pump { ask, task });
    }

    async fn cancel(&mut self, id: i64) -> Result<(), Disconnected> {
        let Some(mut pump) = self.pumps.remove(&id) else {
            return Ok(());
        };
        // Waits for the task's end, so that no event follows the cancellation.
        pump.task.shutdown().await;
        self.send(rpc::WatchResponse {
            canceled: true,
            ..self.answer(id)
        })
        .await?;
        self.done(id, None).await
    }

    async fn ask_all(&mut self) -> Result<(), Disconnected> {
        if self.round.is_some() {
            return Ok(()); // one is in progress; the client asks again if its revision is too old
        }
        self.pumps.values().for_each(|pump| pump.ask.notify_one());
        self.round = Some((
            self.pumps.keys().copied().collect(),
            self.state.store.revision(),
        ));
        self.end_round().await
    }

    async fn reported(&mut self, report: Report) -> Result<(), Disconnected> {
        match report {
            Report::Progress(id, revision) => self.done(id, Some(revision)).await,
            Report::Ended(id) => {
                self.pumps.remove(&id);
                self.done(id, None).await
            }
        }
    }

    /// A pump reported its revision, or ended.
    async fn done(&mut self, id: i64, revision: Option<Revision>) -> Result<(), Disconnected> {
        let Some((waiting, least)) = &mut self.round else {
            return Ok(());
        };
        if waiting.remove(&id) {
            *least = revision.map_or(*least, |revision| revision.min(*least));
        }
        self.end_round().await
    }

    async fn end_round(&mut self) -> Result<(), Disconnected> {
        match self.round.take_if(|(waiting, _)| waiting.is_empty()) {
            Some((_, least)) => {
                let header = Some(self.state.header(least));
                self.send(rpc::WatchResponse {
                    header,
                    ..self.answer(ALL)
                })
                .await
            }
            None => Ok(()),
        }
    }

    /// The id that the client chose, unless it is in use, or a generated one.
    fn new_id(&mut self, chosen: i64) -> Option<i64> {
        if chosen != 0 {
            return Some(chosen).filter(|id| !self.pumps.contains_key(id));
        }
        while self.pumps.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        Some(self.next_id - 1)
    }

    fn answer(&self, watch_id: i64) -> rpc::WatchResponse {
        answer(&self.state, watch_id)
    }

    async fn send(&self, answer: rpc::WatchResponse) -> Result<(), Disconnected> {
        self.answers
            .send(Ok(answer))
            .await
            .map_err(|_| Disconnected)
    }
}
