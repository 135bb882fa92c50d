//! `Watch`: one stream, many watches.
//!
//! A session belongs to a stream. It reads the client's requests and has a pump for each watch, a
//! task that takes items from the engine and sends them as answers. All pumps send into the same
//! channel as the session, which keeps the order: a watch is said to be created before its first
//! event, nothing comes after it is said to be cancelled. When the client asks for progress, every
//! pump is asked, and the session answers for all of them with the least they report: by then
//! everything before it is in the channel.

use super::pump::{Filter, Outlet, Report, answer, cancelled, decode_create};
use super::stream::{AnswerStream, Answers};
use super::{Served, stopped};
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

/// What pumps have to say before the session listens.
const REPORTS: usize = 64;
/// The watch that an answer to all of them names.
const ALL: i64 = -1;
const DUPLICATE: &str = "mvcc: duplicate watch ID provided on the WatchStream";

#[async_trait]
impl rpc::watch_server::Watch for Served {
    type WatchStream = AnswerStream<rpc::WatchResponse>;

    async fn watch(
        &self,
        request: Request<Streaming<rpc::WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (served, requests) = (self.clone(), request.into_inner());
        Ok(Response::new(AnswerStream::new(|answers| {
            Session::new(served, answers).run(requests)
        })))
    }
}

struct Session {
    served: Served,
    answers: Answers<rpc::WatchResponse>,
    pumps: BTreeMap<i64, Pump>,
    next_id: i64,
    /// The pumps that have not reported yet, and the least revision of those that have.
    round: Option<(BTreeSet<i64>, Revision)>,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
}

/// The session's hold on a pump: it ends with it.
struct Pump {
    ask: Arc<Notify>,
    task: JoinSet<()>,
}

/// The client is gone.
struct Gone;

impl Session {
    fn new(served: Served, answers: Answers<rpc::WatchResponse>) -> Self {
        let (pumps, reports) = (BTreeMap::new(), mpsc::channel(REPORTS));
        Session {
            served,
            answers,
            pumps,
            next_id: 0,
            round: None,
            reports,
        }
    }

    async fn run(mut self, mut requests: Streaming<rpc::WatchRequest>) {
        let stopped = stopped(self.served.stopping.clone());
        tokio::pin!(stopped);

        loop {
            let heard = tokio::select! {
                biased;
                () = &mut stopped => {
                    // A client that is gone needs no word.
                    return self.answers.send(Err(Refusal::Stopped.into())).await.unwrap_or_default();
                }
                Some(report) = self.reports.1.recv() => self.reported(report).await,
                request = requests.message() => match request {
                    Ok(Some(request)) => self.requested(request).await,
                    // A client that asks nothing more may still listen.
                    Ok(None) if !self.pumps.is_empty() => self.listen().await,
                    Ok(None) | Err(_) => return,
                },
            };

            if heard.is_err() {
                return;
            }
        }
    }

    /// The client has sent its last request; go on until it hangs up.
    async fn listen(&mut self) -> Result<(), Gone> {
        while !self.pumps.is_empty() {
            tokio::select! {
                biased;
                () = stopped(self.served.stopping.clone()) => return Err(Gone),
                () = self.answers.closed() => return Err(Gone),
                Some(report) = self.reports.1.recv() => self.reported(report).await?,
            }
        }
        Err(Gone)
    }

    async fn requested(&mut self, request: rpc::WatchRequest) -> Result<(), Gone> {
        match request.request_union {
            Some(RequestUnion::CreateRequest(create)) => self.create(create).await,
            Some(RequestUnion::CancelRequest(cancel)) => self.cancel(cancel.watch_id).await,
            Some(RequestUnion::ProgressRequest(_)) => self.ask_all().await,
            None => Ok(()),
        }
    }

    async fn create(&mut self, create: rpc::WatchCreateRequest) -> Result<(), Gone> {
        let Some(id) = self.new_id(create.watch_id) else {
            let refused = rpc::WatchResponse {
                created: true,
                canceled: true,
                cancel_reason: DUPLICATE.to_owned(),
                ..self.answer(ALL)
            };
            return self.send(refused).await;
        };

        let (request, filter) = decode_create(&create, &self.served);
        let opened = self.served.store.watch(request.clone()).await;
        let revision = opened
            .as_ref()
            .map_or(self.served.store.revision(), Watch::created_at);

        let header = Some(self.served.header(revision));
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
        let outlet = Outlet {
            id,
            from,
            filter,
            ask: ask.clone(),
            served: self.served.clone(),
            answers: self.answers.clone(),
            reports: self.reports.0.clone(),
        };

        let mut task = JoinSet::new();
        task.spawn(outlet.run(watch));
        self.pumps.insert(id, Pump { ask, task });
    }

    async fn cancel(&mut self, id: i64) -> Result<(), Gone> {
        let Some(mut pump) = self.pumps.remove(&id) else {
            return Ok(());
        };
        // Waits for its end, so that no event follows the word that there are no more.
        pump.task.shutdown().await;
        self.send(rpc::WatchResponse {
            canceled: true,
            ..self.answer(id)
        })
        .await?;
        self.done(id, None).await
    }

    async fn ask_all(&mut self) -> Result<(), Gone> {
        if self.round.is_some() {
            return Ok(()); // its answer comes, and a client asks again where it is too old
        }
        self.pumps.values().for_each(|pump| pump.ask.notify_one());
        self.round = Some((
            self.pumps.keys().copied().collect(),
            self.served.store.revision(),
        ));
        self.end_round().await
    }

    async fn reported(&mut self, report: Report) -> Result<(), Gone> {
        match report {
            Report::Progress(id, revision) => self.done(id, Some(revision)).await,
            Report::Ended(id) => {
                self.pumps.remove(&id);
                self.done(id, None).await
            }
        }
    }

    /// One pump has come so far, or is not asked any more.
    async fn done(&mut self, id: i64, revision: Option<Revision>) -> Result<(), Gone> {
        let Some((waiting, least)) = &mut self.round else {
            return Ok(());
        };
        if waiting.remove(&id) {
            *least = revision.map_or(*least, |revision| revision.min(*least));
        }
        self.end_round().await
    }

    async fn end_round(&mut self) -> Result<(), Gone> {
        match self.round.take_if(|(waiting, _)| waiting.is_empty()) {
            Some((_, least)) => {
                let header = Some(self.served.header(least));
                self.send(rpc::WatchResponse {
                    header,
                    ..self.answer(ALL)
                })
                .await
            }
            None => Ok(()),
        }
    }

    /// The id that the client chose, unless it is taken; or one of ours.
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
        answer(&self.served, watch_id)
    }

    async fn send(&self, answer: rpc::WatchResponse) -> Result<(), Gone> {
        self.answers.send(Ok(answer)).await.map_err(|_| Gone)
    }
}
