//! Exec, attach and port forwarding: what flows while a call lasts.
//!
//! A foreign runtime answers with an address, to be spoken to in SPDY or over WebSocket by whoever
//! serves the user. Ours hands over the streams themselves.

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

pub type Reader = Pin<Box<dyn AsyncRead + Send>>;
pub type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// How the streams of an exec or attach are reached.
pub enum Streaming {
    /// At this address, once.
    Address(String),
    /// Here.
    Session(Session),
}

/// The streams of one exec or attach.
///
/// Streams that were not asked for are absent; with a terminal there is no standard error of its
/// own. Dropping the writer closes the process' input. Dropping the session leaves the process
/// alone.
pub struct Session {
    pub stdin: Option<Writer>,
    pub stdout: Option<Reader>,
    pub stderr: Option<Reader>,
    /// New sizes of the terminal, where there is one.
    pub resize: Option<mpsc::Sender<TerminalSize>>,
    /// How it ended. Comes after the last byte of output could be read. Dropped unsent when nobody
    /// knows any more.
    pub exit: oneshot::Receiver<i32>,
}

/// A terminal's size, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

/// How a port inside a pod is reached.
pub enum PortStream {
    /// At this address, in the port forwarding protocol.
    Address(String),
    /// A connection to the port, made inside the pod's network.
    Connection(Pin<Box<dyn Connection>>),
}

/// Bytes in both directions.
pub trait Connection: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Connection for T {}
