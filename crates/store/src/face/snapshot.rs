//! The other side of a face's snapshots: a backup of a store that another process has open.

use crate::Revision;
use crate::wire::rpc;
use bytes::Bytes;
use ring::digest::{Context, SHA256};
use rpc::maintenance_client::MaintenanceClient;
use std::path::Path;
use tonic::transport::Endpoint;
use tonic::{Status, Streaming};

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot be reached at {place}")]
    Connect {
        place: String,
        source: tonic::transport::Error,
    },
    #[error("it answered")]
    Refused(#[from] Status),
    #[error("what it sent is not what it meant to send: try again")]
    Checksum,
}

/// A snapshot on its way, checked against the checksum that comes last.
pub(crate) struct Snapshot {
    pieces: Streaming<rpc::SnapshotResponse>,
    digest: Context,
    /// Held back: the last one is the checksum.
    last: Option<Bytes>,
    revision: Revision,
}

impl Snapshot {
    pub(crate) async fn ask(socket: &Path) -> Result<Self, SnapshotError> {
        let place = format!("unix://{}", socket.display());
        let connect = |source| SnapshotError::Connect {
            place: place.clone(),
            source,
        };

        let channel = Endpoint::from_shared(place.clone())
            .map_err(connect)?
            .connect()
            .await
            .map_err(connect)?;

        let answer = MaintenanceClient::new(channel)
            .snapshot(rpc::SnapshotRequest {})
            .await?;
        let (pieces, digest) = (answer.into_inner(), Context::new(&SHA256));

        Ok(Snapshot {
            pieces,
            digest,
            last: None,
            revision: Revision::ZERO,
        })
    }

    /// The next piece, in the order they belong in the file; `None` after the last, if all of them
    /// are right.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, SnapshotError> {
        while let Some(answer) = self.pieces.message().await? {
            if let Some(header) = answer.header {
                self.revision = Revision::from_wire(header.revision).unwrap_or_default();
            }
            if let Some(piece) = self.last.replace(answer.blob) {
                self.digest.update(&piece);
                return Ok(Some(piece));
            }
        }

        match self.last.take() {
            None => Ok(None),
            Some(checksum) if checksum == self.digest.clone().finish().as_ref() => {
                Ok(Some(checksum))
            }
            Some(_) => Err(SnapshotError::Checksum),
        }
    }

    /// The revision that it is of, once its first piece is here.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }
}
