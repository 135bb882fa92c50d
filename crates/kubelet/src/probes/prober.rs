//! One probe of one container: by exec, HTTP, TCP or gRPC.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::go_text::Quoted;
use coracle_api::time;
use coracle_base::net::authority;
use coracle_cri::{Error as CriError, Runtime};
use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, Probe, TCPSocketAction};

use super::grpc;
use super::outcome::Outcome;
use crate::env::expand_all;
use crate::http_get::{self, HttpError, MAX_BODY, Target, resolve_port};

/// A probe that cannot be executed is retried at once, up to this number of attempts.
const MAX_TRIES: usize = 3;

/// The target of a probe.
#[derive(Clone)]
pub(super) struct Prober {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) container: Container,
    pub(super) container_id: String,
    /// The pod as `name_namespace(uid)`, for messages.
    pub(super) pod: String,
    /// The pod's address.
    pub(super) address: String,
}

impl Prober {
    /// Probes, up to three times if the probe cannot be executed.
    pub(super) async fn probe(&self, probe: &Probe) -> Outcome {
        let mut outcome = self.probe_once(probe).await;
        for _ in 1..MAX_TRIES {
            if !matches!(outcome, Outcome::Error { .. }) {
                break;
            }
            outcome = self.probe_once(probe).await;
        }
        outcome
    }

    async fn probe_once(&self, probe: &Probe) -> Outcome {
        let seconds = probe
            .timeout_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .unwrap_or(1)
            .max(1);

        let timeout = Duration::from_secs(seconds);
        if let Some(action) = &probe.exec {
            self.probe_exec(action, timeout).await
        } else if let Some(action) = &probe.http_get {
            self.probe_http(action, timeout).await
        } else if let Some(action) = &probe.tcp_socket {
            self.probe_tcp(action, timeout).await
        } else if let Some(action) = &probe.grpc {
            let service = action.service.clone().unwrap_or_default();
            match u16::try_from(action.port) {
                Ok(port) => grpc::probe(&self.address, port, service, timeout).await,
                Err(_) => execution_error(format!("invalid port number: {}", action.port)),
            }
        } else {
            execution_error(format!(
                "missing probe handler for {}:{}",
                self.pod, self.container.name
            ))
        }
    }

    async fn probe_exec(&self, action: &ExecAction, timeout: Duration) -> Outcome {
        // Upstream expands literal values only.
        let literal = self.container.env.iter().flatten();
        let literal: Vec<_> = literal
            .map(|variable| {
                (
                    variable.name.clone(),
                    variable.value.clone().unwrap_or_default(),
                )
            })
            .collect();

        let command = expand_all(action.command.as_ref(), &literal);
        match self
            .runtime
            .exec_sync(&self.container_id, command.clone(), Some(timeout))
            .await
        {
            Ok(done) if done.exit_code == 0 => Outcome::Passed,
            Ok(done) => Outcome::Failed(printed(&done.stdout, &done.stderr)),
            Err(CriError::DeadlineExceeded(_)) => {
                let command = command.join(" ");
                let timeout = time::Duration::from(timeout);
                Outcome::Failed(format!(
                    "command timed out: {} timed out after {timeout}",
                    Quoted(&command)
                ))
            }
            Err(error) => execution_error(error.to_string()),
        }
    }

    async fn probe_http(&self, action: &HTTPGetAction, timeout: Duration) -> Outcome {
        let target = match Target::of(action, &self.container, &self.address, "probe") {
            Ok(target) => target,
            Err(error) => return execution_error(error.to_string()),
        };

        match http_get::get(&target, Some(timeout)).await {
            Ok(answer) => match answer.status {
                200..=299 => Outcome::Passed,
                300..=399 => Outcome::Warned(format!(
                    "Probe terminated redirects, Response body: {}",
                    answer.body
                )),
                // The response body is not repeated: it may be confidential.
                status => Outcome::Failed(format!("HTTP probe failed with statuscode: {status}")),
            },
            Err(error @ HttpError::Failed { .. }) => Outcome::Failed(error.to_string()),
            Err(HttpError::Body(reason)) => Outcome::Error {
                state: "failure",
                reason,
            },
        }
    }

    async fn probe_tcp(&self, action: &TCPSocketAction, timeout: Duration) -> Outcome {
        let port = match resolve_port(&action.port, &self.container) {
            Ok(port) => port,
            Err(error) => return execution_error(error.to_string()),
        };

        let host = action
            .host
            .as_deref()
            .filter(|host| !host.is_empty())
            .unwrap_or(&self.address);

        match tokio::time::timeout(timeout, http_get::connect(host, port)).await {
            Ok(Ok(_)) => Outcome::Passed,
            Ok(Err(reason)) => Outcome::Failed(reason),
            Err(_) => Outcome::Failed(format!("dial tcp {}: i/o timeout", authority(host, port))),
        }
    }
}

fn execution_error(reason: String) -> Outcome {
    Outcome::Error {
        state: "unknown",
        reason,
    }
}

/// The output of a command, stdout before stderr, truncated.
fn printed(out: &[u8], err: &[u8]) -> String {
    let all: Vec<u8> = out.iter().chain(err).copied().take(MAX_BODY).collect();
    String::from_utf8_lossy(&all).into_owned()
}
