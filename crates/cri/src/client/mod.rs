//! A gRPC client of a runtime on a unix socket.

mod images;
mod runtime;

use std::path::Path;

use tonic::transport::{Channel, Endpoint};

use crate::error::{Error, Result};
use crate::v1::image_service_client::ImageServiceClient;
use crate::v1::runtime_service_client::RuntimeServiceClient;

/// Upstream's limit of a response: lists of a full node are long.
const MOST_BYTES: usize = 16 << 20;

/// A client of a remote runtime. Connects on the first call, and reconnects after failures.
#[derive(Clone)]
pub struct Client {
    runtime: RuntimeServiceClient<Channel>,
    images: ImageServiceClient<Channel>,
}

impl Client {
    /// A client of the runtime that listens at `socket`. Must be called within a tokio runtime.
    pub fn new(socket: &Path) -> Result<Self> {
        let address = format!("unix://{}", socket.display());
        let endpoint = Endpoint::from_shared(address).map_err(|error| {
            Error::InvalidArgument(format!("socket {}: {error}", socket.display()))
        })?;
        let channel = endpoint.connect_lazy();
        Ok(Self {
            runtime: RuntimeServiceClient::new(channel.clone())
                .max_decoding_message_size(MOST_BYTES),
            images: ImageServiceClient::new(channel).max_decoding_message_size(MOST_BYTES),
        })
    }
}
