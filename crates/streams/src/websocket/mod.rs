//! WebSocket connections, which carry streams in two ways.
//!
//! [`channels`]: the first byte of every message is the number of a stream. [`tunnel`]: the
//! messages are the bytes of another protocol, SPDY. Framing, masks and control messages are
//! `tungstenite`'s.

mod channels;
mod tunnel;

use std::time::Duration;

pub(crate) use channels::Outlet;
pub use channels::{Channels, Coding, channels};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
pub use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
pub use tunnel::tunnel;

/// The maximum size of a message: upstream's.
const LONGEST_MESSAGE: usize = 32 << 20;

/// How long the peer may take to close a connection that we have finished.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts a WebSocket session on an upgraded connection.
async fn begin<IO: AsyncRead + AsyncWrite + Unpin>(io: IO, role: Role) -> WebSocketStream<IO> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(LONGEST_MESSAGE))
        .max_frame_size(Some(LONGEST_MESSAGE))
        .write_buffer_size(0);
    WebSocketStream::from_raw_socket(io, role, Some(config)).await
}
