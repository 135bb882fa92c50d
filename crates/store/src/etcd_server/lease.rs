//! `Lease`: grant, keep alive, revoke, query.

use super::stream::{AnswerStream, Answers};
use super::{ServerState, stopped};
use crate::wire::{Refusal, rpc};
use crate::{LeaseId, Store, StoreError};
use async_trait::async_trait;
use std::time::Duration;
use tonic::{Request, Response, Status, Streaming};

#[async_trait]
impl rpc::lease_server::Lease for ServerState {
    type LeaseKeepAliveStream = AnswerStream<rpc::LeaseKeepAliveResponse>;

    async fn lease_grant(
        &self,
        request: Request<rpc::LeaseGrantRequest>,
    ) -> Result<Response<rpc::LeaseGrantResponse>, Status> {
        let request = request.get_ref();
        let ttl = Duration::from_secs(u64::try_from(request.ttl).unwrap_or_default());
        let lease = self
            .store
            .grant_lease(ttl, LeaseId::from_wire(request.id))
            .await?;

        Ok(Response::new(rpc::LeaseGrantResponse {
            header: Some(self.header_now()),
            id: lease.id.to_wire(),
            ttl: seconds(lease.granted),
            error: String::new(),
        }))
    }

    async fn lease_revoke(
        &self,
        request: Request<rpc::LeaseRevokeRequest>,
    ) -> Result<Response<rpc::LeaseRevokeResponse>, Status> {
        let revision = self.store.revoke_lease(id(request.get_ref().id)?).await?;
        Ok(Response::new(rpc::LeaseRevokeResponse {
            header: Some(self.header(revision)),
        }))
    }

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<rpc::LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let (state, requests) = (self.clone(), request.into_inner());
        Ok(Response::new(AnswerStream::new(|answers| {
            state.keep_alive(requests, answers)
        })))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<rpc::LeaseTimeToLiveRequest>,
    ) -> Result<Response<rpc::LeaseTimeToLiveResponse>, Status> {
        let request = request.get_ref();
        let header = Some(self.header_now());
        let gone = rpc::LeaseTimeToLiveResponse {
            header,
            id: request.id,
            ttl: -1,
            granted_ttl: 0,
            keys: vec![],
        };

        let Some(id) = LeaseId::from_wire(request.id) else {
            return Ok(Response::new(gone));
        };

        Ok(Response::new(match self.store.lease_status(id).await {
            Ok(lease) => rpc::LeaseTimeToLiveResponse {
                ttl: seconds(lease.remaining),
                granted_ttl: seconds(lease.granted),
                keys: if request.keys { lease.keys } else { Vec::new() },
                ..gone
            },
            // Not an error: a TTL of -1 tells clients that the lease does not exist.
            Err(StoreError::LeaseNotFound(_)) => gone,
            Err(error) => return Err(error.into()),
        }))
    }

    async fn lease_leases(
        &self,
        _request: Request<rpc::LeaseLeasesRequest>,
    ) -> Result<Response<rpc::LeaseLeasesResponse>, Status> {
        let leases = self.store.leases().await?;
        let leases = leases
            .into_iter()
            .map(|id| rpc::LeaseStatus { id: id.to_wire() })
            .collect();
        Ok(Response::new(rpc::LeaseLeasesResponse {
            header: Some(self.header_now()),
            leases,
        }))
    }
}

impl ServerState {
    async fn keep_alive(
        self,
        mut requests: Streaming<rpc::LeaseKeepAliveRequest>,
        answers: Answers<rpc::LeaseKeepAliveResponse>,
    ) {
        loop {
            let request = tokio::select! {
                biased;
                () = stopped(self.stopping.clone()) => {
                    // A send error means that the client disconnected.
                    return answers.send(Err(Refusal::Stopped.into())).await.unwrap_or_default();
                }
                request = requests.message() => request,
            };
            let Ok(Some(request)) = request else { return };
            let answer = self.kept_alive(request.id).await;

            let over = answer.is_err();
            if answers.send(answer).await.is_err() || over {
                return;
            }
        }
    }

    async fn kept_alive(&self, wire: i64) -> Result<rpc::LeaseKeepAliveResponse, Status> {
        let kept = self.store.keep_lease_alive(id(wire)?).await;
        let ttl = match kept {
            Ok(ttl) => seconds(ttl),
            // A TTL of 0 means that the lease does not exist.
            Err(StoreError::LeaseNotFound(_)) => 0,
            Err(error) => return Err(error.into()),
        };

        Ok(rpc::LeaseKeepAliveResponse {
            header: Some(self.header_now()),
            id: wire,
            ttl,
        })
    }
}

fn id(wire: i64) -> Result<LeaseId, Refusal> {
    LeaseId::from_wire(wire).ok_or(Refusal::LeaseNotFound)
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
