//! The etcd engine: the store on an etcd cluster.
//!
//! A request goes to the preferred member (`connection`), which changes when a member fails;
//! requests that are safe to retry are retried there. etcd's error texts become our errors
//! (`outcome`). A watch is a task with a stream of its own (`watch`): when the stream breaks, it
//! opens another from the revision after the last one delivered, so that no event is lost or
//! repeated. Progress is requested from servers that report it correctly, and proved by reading
//! from those that do not (`progress`).

mod config;
mod connection;
mod history;
mod outcome;
mod progress;
mod watch;

pub use config::{ConfigError, Credentials, EtcdConfig, Tls};

use crate::wire::{
    decode_range_answer, decode_txn_answer, encode_range_request, encode_txn, header, rpc,
};
use crate::{
    InvalidRequest, LeaseId, LeaseStatus, Op, Put, PutLease, RangeAnswer, RangeRequest, Revision,
    Store, StoreError, StoreStatus, Txn, TxnAnswer, Watch, WatchRequest,
};
use async_trait::async_trait;
use connection::{Connection, Repeat};
use outcome::{About, Fault};
use prost::Message;
use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};
use tokio::sync::Notify;
use tonic::Request;

/// A store on an etcd cluster.
pub struct Etcd {
    connection: Arc<Connection>,
    /// Progress requests for each open watch.
    watches: Mutex<Vec<Weak<Notify>>>,
}

/// A key that need not exist, for requests about the whole store.
pub(crate) const ANY_KEY: &[u8] = b"\0";

impl Etcd {
    /// Creates the connections, which connect on first use. Must be called on a runtime.
    pub fn new(config: &EtcdConfig) -> Result<Self, ConfigError> {
        Ok(Etcd {
            connection: Arc::new(Connection::new(config)?),
            watches: Mutex::default(),
        })
    }

    async fn lease_call<M, A, F>(
        &self,
        repeat: Repeat,
        message: M,
        call: impl Fn(rpc::lease_client::LeaseClient<connection::Wire>, Request<M>) -> F,
    ) -> Result<A, Fault>
    where
        M: Clone,
        F: Future<Output = Result<tonic::Response<A>, tonic::Status>>,
    {
        let call = |channel, request| call(connection::lease(channel), request);
        self.connection.call(repeat, message, call).await
    }

    /// Converts a fault to an error, looking up the revisions that etcd's error does not contain.
    async fn error(&self, fault: Fault, about: About) -> StoreError {
        match fault {
            Fault::Refused(refusal) => match about.error(refusal) {
                Some(error) => error,
                None => history::revision_error(&self.connection, refusal, about.revision()).await,
            },
            Fault::NotReached(reason) | Fault::InDoubt(reason) | Fault::Rejected(reason) => {
                outcome::unreachable(reason)
            }
            Fault::TooLarge { limit } => InvalidRequest::TooLarge {
                bytes: about.bytes(),
                limit,
            }
            .into(),
        }
    }
}

#[async_trait]
impl Store for Etcd {
    async fn range(&self, request: RangeRequest) -> Result<RangeAnswer, StoreError> {
        let message = encode_range_request(&request);
        match self.connection.range(message).await {
            Ok(answer) => Ok(decode_range_answer(answer)),
            Err(fault) => Err(self.error(fault, About::Range(request.at)).await),
        }
    }

    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, StoreError> {
        let message = encode_txn(&txn);
        let about = About::Txn {
            lease: attached(&txn),
            at: read_at(&txn),
            ops: txn
                .compare
                .len()
                .max(txn.then.len())
                .max(txn.otherwise.len()),
            bytes: message.encoded_len(),
        };

        let call = |channel, request| async move { connection::kv(channel).txn(request).await };
        let repeat = if writes(&txn) {
            Repeat::Unsent
        } else {
            Repeat::Always
        };

        match self.connection.call(repeat, message, call).await {
            Ok(answer) => Ok(decode_txn_answer(answer)),
            Err(fault) => Err(self.error(fault, about).await),
        }
    }

    async fn watch(&self, request: WatchRequest) -> Result<Watch, StoreError> {
        // A member may lag behind: without this, a watch on it could start before an acknowledged
        // write.
        let created_at = self.current_revision().await?;
        let asked = Arc::new(Notify::new());
        let source = watch::open(self.connection.clone(), request, created_at, asked.clone()).await;
        let mut watches = self.watches.lock().expect(UNPOISONED);
        watches.retain(|watch| watch.strong_count() > 0);
        watches.push(Arc::downgrade(&asked));
        Ok(Watch::new(created_at, Box::new(source)))
    }

    async fn current_revision(&self) -> Result<Revision, StoreError> {
        match self.connection.current_revision().await {
            Ok(revision) => Ok(revision),
            Err(fault) => Err(self.error(fault, About::Other).await),
        }
    }

    async fn progress(&self) -> Result<(), StoreError> {
        let watches = self.watches.lock().expect(UNPOISONED);
        watches
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|asked| asked.notify_one());
        Ok(())
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        let message = rpc::CompactionRequest {
            revision: revision.to_wire(),
            physical: false,
        };
        let call = |channel, request| async move { connection::kv(channel).compact(request).await };
        match self.connection.call(Repeat::Unsent, message, call).await {
            Ok(_) => Ok(()),
            Err(fault) => Err(self.error(fault, About::Range(Some(revision))).await),
        }
    }

    async fn grant_lease(
        &self,
        ttl: Duration,
        id: Option<LeaseId>,
    ) -> Result<LeaseStatus, StoreError> {
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let message = rpc::LeaseGrantRequest {
            ttl: i64::try_from(seconds.max(1)).unwrap_or(i64::MAX),
            id: id.map_or(0, LeaseId::to_wire),
        };

        let call = |mut client: rpc::lease_client::LeaseClient<_>, request| async move {
            client.lease_grant(request).await
        };
        match self.lease_call(Repeat::Unsent, message, call).await {
            Ok(answer) => {
                let granted = outcome::seconds(answer.ttl);
                let id = LeaseId::from_wire(answer.id).ok_or_else(outcome::invalid_response)?;
                Ok(LeaseStatus {
                    id,
                    granted,
                    remaining: granted,
                    keys: Vec::new(),
                })
            }
            Err(fault) => Err(self.error(fault, About::Lease(id)).await),
        }
    }

    async fn keep_lease_alive(&self, id: LeaseId) -> Result<Duration, StoreError> {
        match self.connection.keep_alive(id).await {
            Ok(Some(answer)) if answer.ttl > 0 => Ok(outcome::seconds(answer.ttl)),
            Ok(_) => Err(StoreError::LeaseNotFound(id)),
            Err(fault) => Err(self.error(fault, About::Lease(Some(id))).await),
        }
    }

    async fn revoke_lease(&self, id: LeaseId) -> Result<Revision, StoreError> {
        let message = rpc::LeaseRevokeRequest { id: id.to_wire() };
        let call = |mut client: rpc::lease_client::LeaseClient<_>, request| async move {
            client.lease_revoke(request).await
        };
        match self.lease_call(Repeat::Unsent, message, call).await {
            Ok(answer) => Ok(header(answer.header.as_ref())),
            Err(fault) => Err(self.error(fault, About::Lease(Some(id))).await),
        }
    }

    async fn lease_status(&self, id: LeaseId) -> Result<LeaseStatus, StoreError> {
        let message = rpc::LeaseTimeToLiveRequest {
            id: id.to_wire(),
            keys: true,
        };

        let call = |mut client: rpc::lease_client::LeaseClient<_>, request| async move {
            client.lease_time_to_live(request).await
        };
        match self.lease_call(Repeat::Always, message, call).await {
            // A missing lease is reported as a negative TTL, not as an error.
            Ok(answer) if answer.ttl < 0 => Err(StoreError::LeaseNotFound(id)),
            Ok(mut answer) => {
                answer.keys.sort_unstable();
                Ok(LeaseStatus {
                    id,
                    granted: outcome::seconds(answer.granted_ttl),
                    remaining: outcome::seconds(answer.ttl),
                    keys: answer.keys,
                })
            }
            Err(fault) => Err(self.error(fault, About::Lease(Some(id))).await),
        }
    }

    async fn leases(&self) -> Result<Vec<LeaseId>, StoreError> {
        let message = rpc::LeaseLeasesRequest {};
        let call = |mut client: rpc::lease_client::LeaseClient<_>, request| async move {
            client.lease_leases(request).await
        };
        match self.lease_call(Repeat::Always, message, call).await {
            Ok(answer) => Ok(answer
                .leases
                .into_iter()
                .filter_map(|lease| LeaseId::from_wire(lease.id))
                .collect()),
            Err(fault) => Err(self.error(fault, About::Other).await),
        }
    }

    async fn status(&self) -> Result<StoreStatus, StoreError> {
        let answer = match self.connection.status().await {
            Ok(answer) => answer,
            Err(fault) => return Err(self.error(fault, About::Other).await),
        };
        Ok(StoreStatus {
            revision: self.current_revision().await?,
            compacted: history::compacted(&self.connection).await?,
            file_bytes: u64::try_from(answer.db_size).unwrap_or_default(),
            used_bytes: u64::try_from(answer.db_size_in_use).unwrap_or_default(),
            version: answer.version,
        })
    }
}

const UNPOISONED: &str = "the list of watches is never held across a panic";

/// Whether a transaction could write.
fn writes(txn: &Txn) -> bool {
    txn.then.iter().chain(&txn.otherwise).any(|op| match op {
        Op::Range(_) => false,
        Op::Put(_) | Op::Delete(_) => true,
        Op::Txn(txn) => writes(txn),
    })
}

/// A lease that the transaction attaches: the one that is missing when etcd reports "lease not
/// found".
fn attached(txn: &Txn) -> Option<LeaseId> {
    txn.then
        .iter()
        .chain(&txn.otherwise)
        .find_map(|op| match op {
            Op::Put(Put {
                lease: PutLease::Attach(id),
                ..
            }) => Some(*id),
            Op::Txn(txn) => attached(txn),
            Op::Put(_) | Op::Range(_) | Op::Delete(_) => None,
        })
}

/// A revision that the transaction reads at.
fn read_at(txn: &Txn) -> Option<Revision> {
    txn.then
        .iter()
        .chain(&txn.otherwise)
        .find_map(|op| match op {
            Op::Range(request) => request.at,
            Op::Txn(txn) => read_at(txn),
            Op::Put(_) | Op::Delete(_) => None,
        })
}
