//! Client connections of components in the same process: no socket, no TLS, and the same chain.
//!
//! The code that assembles the process sets the user of each component; authorization, flow
//! control, admission and everything that follows are the same as for a connection.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_client::transport::{Body, BodyError};
use coracle_client::{Client, Transport, TransportError, World};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::sync::watch;

use crate::authn::{Peer, User};
use crate::chain::Chain;

/// A connection that is created before the server, so that clients can be created before it as
/// well. Clones share it.
#[derive(Clone, Default)]
pub struct InProcess {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Default)]
enum State {
    /// Requests wait.
    #[default]
    Closed,
    Open(Arc<Chain>),
    Ended,
}

impl InProcess {
    /// A client that is `user` to the server. Requests that are sent before the server has started
    /// wait for it.
    pub fn client(&self, user: User, world: World) -> Client {
        Client::new(self.transport(user), world)
    }

    /// The transport for requests of `user`.
    pub fn transport(&self, user: User) -> Arc<dyn Transport> {
        Arc::new(InProcessTransport {
            state: self.state.subscribe(),
            peer: Peer::known(user),
        })
    }

    pub(crate) fn open(&self, chain: Arc<Chain>) {
        self.state.send_replace(State::Open(chain));
    }

    /// Closes the connection when the server ends, in whatever way.
    pub(crate) fn until_dropped(&self) -> impl Drop {
        Ending(self.clone())
    }
}

struct Ending(InProcess);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.state.send_replace(State::Ended);
    }
}

struct InProcessTransport {
    state: watch::Receiver<State>,
    peer: Peer,
}

#[async_trait]
impl Transport for InProcessTransport {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let mut state = self.state.clone();
        let state = state
            .wait_for(|state| !matches!(state, State::Closed))
            .await
            .map(|state| state.clone());

        let Ok(State::Open(chain)) = state else {
            let server = "the server of this process".to_string();
            return Err(TransportError::Connect {
                server,
                source: io::ErrorKind::ConnectionRefused.into(),
            });
        };
        let answer = chain.answer(request.map(Full::new), &self.peer).await;

        Ok(answer.map(|body| body.map_err(BodyError).boxed_unsync()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hundreds of requests are in flight at once, each is moved into its box, and rare parts have
    /// a box of their own.
    #[test]
    fn a_request_under_way_is_small() {
        let way = InProcess::default().transport(User::default());
        let under_way = way.send(Request::new(Bytes::new()));
        let size = size_of_val(&*under_way);
        assert!(size < 10_000, "{size} bytes");
    }
}
