//! Streams of exec, attach and port forwarding.
//!
//! A remote runtime returns a URL, to be used over SPDY or WebSocket. The built-in one returns the
//! streams themselves.

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

pub type Reader = Pin<Box<dyn AsyncRead + Send>>;
pub type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// How the streams of an exec or attach are accessed.
pub enum Streaming {
    /// At this URL, once.
    Address(String),
    /// Open streams.
    Session(Session),
}

/// The streams of one exec or attach.
///
/// Streams that were not requested are absent; with a terminal there is no stderr. Dropping the
/// writer closes the process' stdin. Dropping the session does not affect the process.
pub struct Session {
    pub stdin: Option<Writer>,
    pub stdout: Option<Reader>,
    pub stderr: Option<Reader>,
    /// Terminal resizes, if there is a terminal.
    pub resize: Option<mpsc::Sender<TerminalSize>>,
    /// The exit code, sent after all output can be read. Dropped unsent if it is unknown.
    pub exit: oneshot::Receiver<i32>,
}

/// A terminal's size, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// How a port of a pod is accessed.
pub enum PortStream {
    /// At this URL, with the port forwarding protocol.
    Address(String),
    /// A connection to the port from the pod's network namespace.
    Connection(Pin<Box<dyn Connection>>),
}

/// A bidirectional byte stream.
pub trait Connection: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Connection for T {}
