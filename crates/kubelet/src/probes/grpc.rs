//! gRPC health checks (`grpc.health.v1`).

use std::time::Duration;

use coracle_api::go_text::Quoted;
use coracle_api::time;
use coracle_base::net::authority;
use http::uri::PathAndQuery;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::outcome::Outcome;

/// Delay between connection attempts, as gRPC clients use.
const PAUSE: Duration = Duration::from_secs(1);
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, prost::Message)]
struct CheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

/// `grpc.health.v1.HealthCheckResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct CheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

const SERVING: i32 = 1;

pub(super) async fn probe(host: &str, port: u16, service: String, timeout: Duration) -> Outcome {
    let address = authority(host, port);
    let deadline = tokio::time::Instant::now() + timeout;
    let Ok(endpoint) = Endpoint::from_shared(format!("http://{address}"))
        .and_then(|endpoint| endpoint.user_agent("kube-probe/1.36"))
    else {
        return Outcome::Failed(format!(
            "error: failed to connect service at {}: no address",
            Quoted(&address)
        ));
    };

    let shown = time::Duration::from(timeout);
    let Ok(channel) = tokio::time::timeout_at(deadline, connected(&endpoint)).await else {
        let address = Quoted(&address);
        return Outcome::Failed(format!(
            "timeout: failed to connect service {address} within {shown}: context deadline exceeded"
        ));
    };

    match tokio::time::timeout_at(deadline, check(channel, service)).await {
        Err(_) => Outcome::Failed(format!(
            "timeout: health rpc did not complete within {shown}"
        )),
        Ok(Ok(SERVING)) => Outcome::Passed,
        Ok(Ok(status)) => Outcome::Failed(format!(
            "service unhealthy (responded with {})",
            Quoted(status_name(status))
        )),
        Ok(Err(status)) if status.code() == Code::Unimplemented => Outcome::Failed(format!(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
            status.message()
        )),
        Ok(Err(status)) => Outcome::Failed(format!(
            "error: health rpc probe failed: rpc error: code = {:?} desc = {}",
            status.code(),
            status.message()
        )),
    }
}

/// Retries until connected; the caller has a timeout.
async fn connected(endpoint: &Endpoint) -> Channel {
    loop {
        match endpoint.connect().await {
            Ok(channel) => return channel,
            Err(error) => tracing::debug!(%error, "gRPC probe cannot connect; retrying"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn check(channel: Channel, service: String) -> Result<i32, Status> {
    let mut client = Grpc::new(channel);
    client
        .ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let codec: ProstCodec<CheckRequest, CheckResponse> = ProstCodec::default();
    let request = Request::new(CheckRequest { service });
    let answer = client
        .unary(request, PathAndQuery::from_static(CHECK), codec)
        .await?;
    Ok(answer.into_inner().status)
}

fn status_name(status: i32) -> &'static str {
    match status {
        0 => "UNKNOWN",
        SERVING => "SERVING",
        2 => "NOT_SERVING",
        3 => "SERVICE_UNKNOWN",
        _ => "",
    }
}
