//! `Maintenance`: status, alarms, defragmentation, hashes, snapshots.

use super::cluster::one_member;
use super::stream::{AnswerStream, Answers};
use super::{ServerState, TERM};
use crate::embedded::Backup;
use crate::wire::{Refusal, rpc};
use crate::{Revision, Store};
use async_trait::async_trait;
use bytes::Bytes;
use ring::digest::{Context, SHA256};
use tonic::{Request, Response, Status};

/// `etcdctl` accepts a snapshot only if its length is a multiple of this plus a SHA-256.
const PAGE: usize = 512;

#[async_trait]
impl rpc::maintenance_server::Maintenance for ServerState {
    type SnapshotStream = AnswerStream<rpc::SnapshotResponse>;

    async fn status(
        &self,
        _request: Request<rpc::StatusRequest>,
    ) -> Result<Response<rpc::StatusResponse>, Status> {
        let status = self.store.status().await?;
        let size = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Ok(Response::new(rpc::StatusResponse {
            header: Some(self.header(status.revision)),
            db_size: size(status.file_bytes),
            db_size_in_use: size(status.used_bytes),
            leader: self.member_id(),
            // There is no raft; every revision counts as one log entry.
            raft_index: status.revision.get(),
            raft_applied_index: status.revision.get(),
            raft_term: TERM,
            storage_version: minor(&status.version),
            version: status.version,
            ..rpc::StatusResponse::default()
        }))
    }

    async fn alarm(
        &self,
        _request: Request<rpc::AlarmRequest>,
    ) -> Result<Response<rpc::AlarmResponse>, Status> {
        // Writes fail while the disk is full and succeed again afterwards; there is no alarm to
        // disarm.
        Ok(Response::new(rpc::AlarmResponse {
            header: Some(self.header_now()),
            alarms: Vec::new(),
        }))
    }

    async fn defragment(
        &self,
        _request: Request<rpc::DefragmentRequest>,
    ) -> Result<Response<rpc::DefragmentResponse>, Status> {
        self.store.defragment().await?;
        Ok(Response::new(rpc::DefragmentResponse {
            header: Some(self.header_now()),
        }))
    }

    async fn hash(
        &self,
        _request: Request<rpc::HashRequest>,
    ) -> Result<Response<rpc::HashResponse>, Status> {
        let found = self.store.hash(None).await?;
        Ok(Response::new(rpc::HashResponse {
            header: Some(self.header(found.revision)),
            hash: found.hash,
        }))
    }

    async fn hash_kv(
        &self,
        request: Request<rpc::HashKvRequest>,
    ) -> Result<Response<rpc::HashKvResponse>, Status> {
        let at = Revision::from_wire(request.get_ref().revision).filter(|at| *at > Revision::ZERO);
        let found = self.store.hash(at).await?;
        Ok(Response::new(rpc::HashKvResponse {
            header: Some(self.header_now()),
            hash: found.hash,
            compact_revision: found.compacted.to_wire(),
            hash_revision: found.revision.to_wire(),
        }))
    }

    async fn snapshot(
        &self,
        _request: Request<rpc::SnapshotRequest>,
    ) -> Result<Response<Self::SnapshotStream>, Status> {
        let (state, backup) = (self.clone(), self.store.backup());
        Ok(Response::new(AnswerStream::new(|answers| {
            state.send_snapshot(backup, answers)
        })))
    }

    async fn move_leader(
        &self,
        _request: Request<rpc::MoveLeaderRequest>,
    ) -> Result<Response<rpc::MoveLeaderResponse>, Status> {
        Err(one_member())
    }

    async fn downgrade(
        &self,
        _request: Request<rpc::DowngradeRequest>,
    ) -> Result<Response<rpc::DowngradeResponse>, Status> {
        Err(Status::unimplemented(
            "the embedded store cannot be downgraded",
        ))
    }
}

impl ServerState {
    /// Sends a backup of the store in the format of `coracle`'s restore, followed by the checksum
    /// that `etcdctl` expects.
    async fn send_snapshot(self, mut backup: Backup, answers: Answers<rpc::SnapshotResponse>) {
        let mut digest = Context::new(&SHA256);
        let mut length = 0_usize;

        let header = Some(self.header(backup.revision()));
        let send = async |blob: Bytes| {
            let remaining_bytes = 0; // not known in advance
            let part = rpc::SnapshotResponse {
                header,
                remaining_bytes,
                blob,
                version: String::new(),
            };
            answers.send(Ok(part)).await.is_ok()
        };

        loop {
            let piece = tokio::task::spawn_blocking(move || {
                let piece = backup.next_piece();
                (piece, backup)
            });

            let piece = match piece.await {
                Ok((Ok(piece), rest)) => {
                    backup = rest;
                    piece
                }
                Ok((Err(error), _)) => {
                    return answers.send(Err(error.into())).await.unwrap_or_default();
                }
                Err(_) => {
                    return answers
                        .send(Err(Refusal::Stopped.into()))
                        .await
                        .unwrap_or_default();
                }
            };
            let last = piece.is_none();

            let blob = piece
                .unwrap_or_else(|| Bytes::from(vec![0; length.next_multiple_of(PAGE) - length]));
            digest.update(&blob);
            length += blob.len();

            if !send(blob).await {
                return;
            }
            if last {
                break;
            }
        }

        // A send error means that the client disconnected.
        send(Bytes::copy_from_slice(digest.finish().as_ref())).await;
    }
}

/// `3.6` of `3.6.0`.
pub(super) fn minor(version: &str) -> String {
    version
        .rsplit_once('.')
        .map_or(version, |(minor, _)| minor)
        .to_owned()
}
