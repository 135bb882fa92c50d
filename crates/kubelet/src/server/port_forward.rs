//! `/portForward`: connections to ports of a pod.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use coracle_api::go_text::Quoted;
use coracle_client::Tasks;
use coracle_cri::Runtime;
use coracle_cri::streaming::{Connection, PortStream};
use coracle_streams::port_forward::{self, Ports};
use coracle_streams::upgrade::{self, Purpose};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;

use super::answer::{self, Answer};
use super::query::Query;
use super::{Server, remote_runtime};
use crate::pod::PodView as _;

/// Ports of one request over numbered channels: there are 256 channels, two per port.
pub(super) const MOST_PORTS: usize = 127;

pub(super) async fn answer(
    server: &Arc<Server>,
    namespace: &str,
    pod: &str,
    uid: &str,
    query: &Query,
    mut request: Request<Incoming>,
) -> Answer {
    let headers = request.headers();
    let names_ports = upgrade::is_websocket(headers) && !upgrade::is_tunnel(headers);
    let named = match if names_ports {
        named(query)
    } else {
        Ok(Vec::new())
    } {
        Ok(named) => named,
        Err(text) => return answer::text(StatusCode::BAD_REQUEST, text),
    };

    let Some(entry) = server.pod_manager.find(namespace, pod) else {
        return answer::text(StatusCode::NOT_FOUND, "pod does not exist");
    };
    if !uid.is_empty() && entry.pod.uid() != uid {
        return answer::text(StatusCode::NOT_FOUND, "pod not found");
    }

    let Some(sandbox) = entry.observed.ready_sandbox() else {
        let text = format!("pod not found ({})", Quoted(&format!("{pod}_{namespace}")));
        return answer::text(StatusCode::INTERNAL_SERVER_ERROR, text);
    };

    let agreed = match upgrade::negotiate(headers, Purpose::Ports) {
        Ok(agreed) => agreed,
        Err(refusal) => {
            return answer::with_text(refusal.answer(Purpose::Ports), refusal.to_string());
        }
    };

    let ports = PortsOfPod {
        runtime: Arc::clone(&server.runtime),
        sandbox: sandbox.id.clone(),
        pod: pod.to_owned(),
        uid: entry.pod.uid().to_owned(),
        carriers: Tasks::new(),
    };

    let upgraded = hyper::upgrade::on(&mut request);
    server.tasks.spawn(async move {
        match upgraded.await {
            Ok(io) => port_forward::serve(TokioIo::new(io), agreed.protocol, &named, &ports).await,
            Err(error) => tracing::debug!(%error, "cannot upgrade client connection"),
        }
    });

    answer::empty(agreed.answer())
}

/// The ports in a query; each parameter may have several.
pub(super) fn named(query: &Query) -> Result<Vec<u16>, String> {
    let mut ports = Vec::new();
    for text in query.all("port") {
        if text.is_empty() {
            return Err("query parameter \"port\" cannot be empty".to_owned());
        }

        for port in text.split(',') {
            match port.parse::<u16>() {
                Ok(0) => return Err(format!("port {} must be > 0", Quoted(text))),
                Ok(port) => ports.push(port),
                Err(_) => return Err(format!("unable to parse {} as a port", Quoted(text))),
            }
        }
    }

    match ports.len() {
        0 => Err("query parameter \"port\" is required".to_owned()),
        1..=MOST_PORTS => Ok(ports),
        _ => Err(format!("at most {MOST_PORTS} ports can be forwarded")),
    }
}

/// The ports of one pod.
struct PortsOfPod {
    runtime: Arc<dyn Runtime>,
    sandbox: String,
    pod: String,
    uid: String,
    /// Copies bytes to and from a remote runtime; ends with the client.
    carriers: Tasks,
}

/// Why a port cannot be reached.
struct Unreachable<'a> {
    port: u16,
    pod: &'a PortsOfPod,
    why: String,
}

impl fmt::Display for Unreachable<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unreachable { port, pod, why } = self;
        write!(
            out,
            "error forwarding port {port} to pod {}, uid {}: {why}",
            pod.pod, pod.uid
        )
    }
}

impl Ports for PortsOfPod {
    type Connection = Pin<Box<dyn Connection>>;
    type Error = io::Error;

    async fn connect(&self, port: u16) -> io::Result<Pin<Box<dyn Connection>>> {
        let unreachable = |why: String| {
            io::Error::other(
                Unreachable {
                    port,
                    pod: self,
                    why,
                }
                .to_string(),
            )
        };

        match self.runtime.port_forward(&self.sandbox, port).await {
            Ok(PortStream::Connection(connection)) => Ok(connection),
            Ok(PortStream::Address(address)) => {
                let (inside, carried) = remote_runtime::port(&address, port)
                    .await
                    .map_err(|error| unreachable(error.to_string()))?;
                self.carriers.spawn(carried);
                Ok(Box::pin(inside))
            }
            Err(error) => Err(unreachable(user_message(&error))),
        }
    }
}

/// The runtime's errors are about sandboxes; users forward ports of pods.
fn user_message(error: &coracle_cri::Error) -> String {
    match error {
        coracle_cri::Error::NotFound(_) | coracle_cri::Error::FailedPrecondition(_) => {
            "the pod has ended or was deleted since the forwarding began".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_name_ports() {
        let check = |query, expected: Result<&[u16], &str>| {
            let expected = expected.map(<[u16]>::to_vec).map_err(str::to_owned);
            assert_eq!(named(&Query::parse(query)), expected, "{query}");
        };
        check("port=80&port=81,82", Ok(&[80, 81, 82]));
        check("", Err("query parameter \"port\" is required"));
        check("port=", Err("query parameter \"port\" cannot be empty"));
        check("port=0", Err("port \"0\" must be > 0"));
        check("port=80,x", Err("unable to parse \"80,x\" as a port"));
        check("port=65536", Err("unable to parse \"65536\" as a port"));
    }
}
