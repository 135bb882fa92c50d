//! The connections to the members, and which member gets a request.
//!
//! All requests go to the preferred member until it fails; then the next one is preferred. A failed
//! request is retried where that is safe: a read always, a write only if no member can have seen
//! it.

use super::config::{ConfigError, Credentials, EtcdConfig};
use super::outcome::Fault;
use crate::wire::{Refusal, header, rpc};
use crate::{LeaseId, Revision};
use bytes::Bytes;
use rpc::{
    auth_client::AuthClient, kv_client::KvClient, lease_client::LeaseClient,
    maintenance_client::MaintenanceClient, watch_client::WatchClient, watch_request::RequestUnion,
};
use std::{
    sync::{
        RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::StreamExt;
use tonic::{
    Request, Response, Status, Streaming,
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};

/// A connection to one member.
pub(crate) type Wire = Channel;

/// When a request may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Always,
    /// Only if the first attempt certainly had no effect.
    Unsent,
}

pub(crate) struct Connection {
    members: Vec<Channel>,
    preferred: AtomicUsize,
    credentials: Option<Credentials>,
    token: RwLock<Option<MetadataValue<Ascii>>>,
    request_timeout: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) watch_patience: Duration,
}

/// Largest message accepted: etcd sends a range of any size in one message.
const MESSAGE_LIMIT: usize = 2 << 30;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// With these two a dead member is detected. etcd rejects pings more often than every 5 s.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// The flow-control window of a stream: what is buffered for a watch with a slow reader.
const STREAM_WINDOW: u32 = 2 << 20;
/// The flow-control window of a connection. The HTTP library treats many small unread frames as an
/// attack and closes the connection; its limit depends on this window. Small events of slow watches
/// are such frames.
const CONNECTION_WINDOW: u32 = 256 << 20;
/// Delay between rounds over all members.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn kv(channel: Wire) -> KvClient<Wire> {
    KvClient::new(channel)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT)
}

pub(crate) fn lease(channel: Wire) -> LeaseClient<Wire> {
    LeaseClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT)
}

pub(crate) fn watcher(channel: Wire) -> WatchClient<Wire> {
    WatchClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT)
}

impl Connection {
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self, ConfigError> {
        if config.endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint);
        }

        let members = config
            .endpoints
            .iter()
            .map(|endpoint| member(endpoint, config));

        Ok(Connection {
            members: members.collect::<Result<_, _>>()?,
            preferred: AtomicUsize::new(0),
            credentials: config.credentials.clone(),
            token: RwLock::default(),
            request_timeout: config.request_timeout,
            attempt_timeout: config.attempt_timeout,
            watch_patience: config.watch_patience,
        })
    }

    /// Sends a request until it is answered or rejected, or the timeout is over.
    pub(crate) async fn call<M: Clone, A, F>(
        &self,
        repeat: Repeat,
        message: M,
        call: impl Fn(Wire, Request<M>) -> F,
    ) -> Result<A, Fault>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let deadline = Instant::now() + self.request_timeout;
        let mut rounds = Rounds::new(self.members.len());
        loop {
            let (member, channel) = self.preferred();
            let fault = match self.attempt(channel, message.clone(), &call).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };

            if fault.is_transient() {
                self.switch_from(member);
            }

            let again = fault.had_no_effect() || repeat == Repeat::Always && fault.is_transient();
            let pause = rounds.pause();
            if !again || Instant::now() + pause >= deadline {
                return Err(fault);
            }

            sleep(pause).await;
        }
    }

    /// One attempt at one member, repeated once with a new token if the token has expired.
    async fn attempt<M: Clone, A, F>(
        &self,
        channel: Wire,
        message: M,
        call: &impl Fn(Wire, Request<M>) -> F,
    ) -> Result<A, Fault>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let fault = match self
            .attempt_once(channel.clone(), message.clone(), call)
            .await
        {
            Err(fault) if self.wants_new_token(&fault) => fault,
            outcome => return outcome,
        };

        self.discard_token();

        self.attempt_once(channel, message, call)
            .await
            .map_err(|second| match second {
                Fault::Refused(Refusal::InvalidToken) => fault,
                second => second,
            })
    }

    async fn attempt_once<M, A, F>(
        &self,
        channel: Wire,
        message: M,
        call: &impl Fn(Wire, Request<M>) -> F,
    ) -> Result<A, Fault>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let request = self.request(&channel, message).await?;
        match timeout(self.attempt_timeout, call(channel, request)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(Fault::read(&status)),
            Err(_) => Err(Fault::timed_out(self.attempt_timeout)),
        }
    }

    /// A request with the metadata that every request carries.
    pub(crate) async fn request<M>(&self, channel: &Wire, message: M) -> Result<Request<M>, Fault> {
        let mut request = Request::new(message);
        // Without a leader the member returns an error at once instead of waiting for one.
        request
            .metadata_mut()
            .insert("hasleader", MetadataValue::from_static("true"));
        if let Some(token) = self.token(channel).await? {
            request.metadata_mut().insert("token", token);
        }
        Ok(request)
    }

    /// The member that gets requests now.
    pub(crate) fn preferred(&self) -> (usize, Wire) {
        let member = self.preferred.load(Ordering::Relaxed) % self.members.len();
        (member, self.members[member].clone())
    }

    /// Prefers another member than this one, which failed. Does nothing if that has happened
    /// already.
    pub(crate) fn switch_from(&self, member: usize) {
        let next = (member + 1) % self.members.len();
        // Lost the race: another request has switched to another member already.
        self.preferred
            .compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed)
            .unwrap_or(member);
    }

    pub(crate) fn wants_new_token(&self, fault: &Fault) -> bool {
        self.credentials.is_some()
            && matches!(
                fault,
                Fault::Refused(
                    Refusal::InvalidToken | Refusal::AuthOldRevision | Refusal::UserEmpty
                )
            )
    }

    pub(crate) fn discard_token(&self) {
        *self.token.write().expect(UNPOISONED) = None;
    }

    async fn token(&self, channel: &Wire) -> Result<Option<MetadataValue<Ascii>>, Fault> {
        let Some(credentials) = &self.credentials else {
            return Ok(None);
        };

        let known = self.token.read().expect(UNPOISONED).clone();
        if known.is_some() {
            return Ok(known);
        }

        let message = rpc::AuthenticateRequest {
            name: credentials.name.clone(),
            password: credentials.password.clone(),
        };

        let mut client = AuthClient::new(channel.clone());
        let answer = match timeout(self.attempt_timeout, client.authenticate(message)).await {
            Ok(Ok(answer)) => answer.into_inner(),
            Ok(Err(status)) => {
                return match Fault::read(&status) {
                    // Authentication is disabled, so no token is needed.
                    Fault::Refused(Refusal::AuthNotEnabled) => Ok(None),
                    // The request itself has not been sent yet.
                    Fault::InDoubt(reason) => Err(Fault::NotReached(reason)),
                    fault => Err(fault),
                };
            }
            Err(_) => return Err(Fault::NotReached("authentication timed out".to_owned())),
        };

        let token = MetadataValue::try_from(answer.token)
            .map_err(|_| Fault::NotReached("the auth token is not ASCII".to_owned()))?;
        *self.token.write().expect(UNPOISONED) = Some(token.clone());

        Ok(Some(token))
    }

    pub(crate) async fn range(
        &self,
        message: rpc::RangeRequest,
    ) -> Result<rpc::RangeResponse, Fault> {
        let call = |channel, request| async move { kv(channel).range(request).await };
        self.call(Repeat::Always, message, call).await
    }

    /// The current revision of the whole cluster, not only of the member that answers.
    pub(crate) async fn current_revision(&self) -> Result<Revision, Fault> {
        let key = Bytes::from_static(super::ANY_KEY);
        let message = rpc::RangeRequest {
            key,
            count_only: true,
            ..rpc::RangeRequest::default()
        };
        Ok(header(self.range(message).await?.header.as_ref()))
    }

    pub(crate) async fn status(&self) -> Result<rpc::StatusResponse, Fault> {
        let call =
            |channel, request| async move { MaintenanceClient::new(channel).status(request).await };
        self.call(Repeat::Always, rpc::StatusRequest {}, call).await
    }

    /// The version of the one member behind `channel`.
    pub(crate) async fn version_of(&self, channel: Wire) -> Result<String, Fault> {
        let call =
            |channel, request| async move { MaintenanceClient::new(channel).status(request).await };
        Ok(self
            .attempt(channel, rpc::StatusRequest {}, &call)
            .await?
            .version)
    }

    /// Opens a watch on which no further requests are sent.
    pub(crate) async fn watch(
        &self,
        create: rpc::WatchCreateRequest,
    ) -> Result<Streaming<rpc::WatchResponse>, Fault> {
        let (_, channel) = self.preferred();
        let create = rpc::WatchRequest {
            request_union: Some(RequestUnion::CreateRequest(create)),
        };
        // The request stream stays open: its end would end the watch.
        let requests = tokio_stream::once(create).chain(tokio_stream::pending());
        let request = self.request(&channel, requests).await?;
        let answers = watcher(channel).watch(request).await;
        Ok(answers.map_err(|status| Fault::read(&status))?.into_inner())
    }

    /// Keeps a lease alive once. `None`: the member ended the stream without an answer.
    pub(crate) async fn keep_alive(
        &self,
        id: LeaseId,
    ) -> Result<Option<rpc::LeaseKeepAliveResponse>, Fault> {
        let message = rpc::LeaseKeepAliveRequest { id: id.to_wire() };
        let call = |channel, request: Request<rpc::LeaseKeepAliveRequest>| async move {
            let (metadata, extensions, message) = request.into_parts();
            let request = Request::from_parts(metadata, extensions, tokio_stream::once(message));
            let answer = lease(channel)
                .lease_keep_alive(request)
                .await?
                .into_inner()
                .message()
                .await?;

            Ok(Response::new(answer))
        };

        // Keeping alive twice is harmless.
        self.call(Repeat::Always, message, call).await
    }
}

const UNPOISONED: &str = "the token lock is never held across a panic";

fn member(url: &str, config: &EtcdConfig) -> Result<Channel, ConfigError> {
    let refuse = |error: tonic::transport::Error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        ConfigError::Endpoint {
            endpoint: url.to_owned(),
            reason: format!("{error}{}", cause.unwrap_or_default()),
        }
    };

    let endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(refuse)?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);

    let endpoint = match &config.tls {
        None => endpoint,
        Some(tls) => {
            let mut settings =
                ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.authority));
            if let Some((certificate, key)) = &tls.identity {
                settings = settings.identity(Identity::from_pem(certificate, key));
            }
            if let Some(name) = &tls.server_name {
                settings = settings.domain_name(name);
            }

            endpoint.tls_config(settings).map_err(refuse)?
        }
    };

    Ok(endpoint.connect_lazy())
}

/// The delay before the next attempt: none until every member was tried, then longer every round.
pub(crate) struct Rounds {
    members: usize,
    tries: usize,
    pause: Duration,
}

impl Rounds {
    pub(crate) fn new(members: usize) -> Self {
        Rounds {
            members,
            tries: 0,
            pause: PAUSE,
        }
    }

    pub(crate) fn pause(&mut self) -> Duration {
        self.tries += 1;
        if !self.tries.is_multiple_of(self.members) {
            return Duration::ZERO;
        }
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

impl Connection {
    pub(crate) fn rounds(&self) -> Rounds {
        Rounds::new(self.members.len())
    }
}
