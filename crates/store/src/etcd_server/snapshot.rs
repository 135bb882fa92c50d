//! The client side of `Maintenance.Snapshot`: a backup of a store that another process has open.

use crate::Revision;
use crate::wire::rpc;
use bytes::Bytes;
use ring::digest::{Context, SHA256};
use rpc::maintenance_client::MaintenanceClient;
use std::path::Path;
use tonic::transport::Endpoint;
use tonic::{Status, Streaming};

/// Why the snapshot failed.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot connect to {url}")]
    Connect {
        url: String,
        source: tonic::transport::Error,
    },
    #[error("the server returned an error")]
    Refused(#[from] Status),
    #[error("checksum mismatch in the received snapshot: try again")]
    Checksum,
}

/// A snapshot being received, verified against the checksum that comes last.
pub(crate) struct Snapshot {
    pieces: Streaming<rpc::SnapshotResponse>,
    digest: Context,
    /// The last chunk is held back: it is the checksum.
    last: Option<Bytes>,
    revision: Revision,
}

impl Snapshot {
    pub(crate) async fn ask(socket: &Path) -> Result<Self, SnapshotError> {
        let url = format!("unix://{}", socket.display());
        let connect = |source| SnapshotError::Connect {
            url: url.clone(),
            source,
        };

        let channel = Endpoint::from_shared(url.clone())
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

    /// The next chunk, in file order; `None` after the last one if the checksum matches.
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

    /// The revision of the snapshot, known once its first chunk was received.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }
}
