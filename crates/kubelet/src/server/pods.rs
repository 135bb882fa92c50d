//! `/pods`, `/runningpods` and `/containerLogs`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use coracle_api::go_text::Quoted;
use coracle_cri::v1::{
    ContainerFilter, ContainerState, ContainerStateValue, PodSandboxFilter, PodSandboxState,
};
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::Server;
use super::answer::{self, Answer};
use super::logs::options::OptionError;
use super::logs::{Log, LogOptions, instance};
use super::query::Query;
use crate::pod::PodView as _;

/// The desired pods.
pub(super) fn desired(server: &Server) -> Answer {
    let pods = server.pod_manager.list().into_iter().map(|entry| {
        let mut pod = Pod::clone(&entry.pod);
        if let Some(status) = entry.status {
            pod.status = Some((*status).clone());
        }
        pod
    });
    list(pods)
}

/// The running pods, from the runtime.
pub(super) async fn running(server: &Server) -> Answer {
    let running = ContainerStateValue {
        state: ContainerState::ContainerRunning.into(),
    };
    let filter = ContainerFilter {
        state: Some(running),
        ..ContainerFilter::default()
    };
    let containers = server.runtime.list_containers(filter).await;

    let sandboxes = server
        .runtime
        .list_pod_sandbox(PodSandboxFilter::default())
        .await;

    let (containers, sandboxes) = match (containers, sandboxes) {
        (Ok(containers), Ok(sandboxes)) => (containers, sandboxes),
        (Err(error), _) | (_, Err(error)) => {
            return answer::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
        }
    };

    let mut of_sandbox: BTreeMap<String, Vec<Container>> = BTreeMap::new();
    for container in containers {
        let name = container
            .metadata
            .map(|metadata| metadata.name)
            .unwrap_or_default();

        let image = container.image.map(|image| image.image);
        let container_of_pod = Container {
            name,
            image,
            ..Container::default()
        };

        of_sandbox
            .entry(container.pod_sandbox_id)
            .or_default()
            .push(container_of_pod);
    }

    let ready = sandboxes
        .into_iter()
        .filter(|sandbox| sandbox.state() == PodSandboxState::SandboxReady);

    list(ready.filter_map(|sandbox| {
        let metadata = sandbox.metadata?;
        let containers = of_sandbox.remove(&sandbox.id)?;
        let metadata = ObjectMeta {
            name: Some(metadata.name),
            namespace: Some(metadata.namespace),
            uid: Some(metadata.uid),
            ..ObjectMeta::default()
        };

        Some(Pod {
            metadata,
            spec: Some(PodSpec {
                containers,
                ..PodSpec::default()
            }),
            status: None,
        })
    }))
}

fn list(pods: impl Iterator<Item = Pod>) -> Answer {
    let items: Vec<Pod> = pods.collect();
    let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items});
    answer::json(list.to_string())
}

pub(super) async fn logs(
    server: &Server,
    namespace: &str,
    pod: &str,
    container: &str,
    query: &Query,
) -> Answer {
    let options = match LogOptions::parse(query, server.world.now()) {
        Ok(options) => options,
        Err(error @ OptionError::Undecodable) => {
            return answer::text(StatusCode::BAD_REQUEST, error.to_string());
        }
        Err(error @ OptionError::Invalid) => {
            return answer::text(StatusCode::UNPROCESSABLE_ENTITY, error.to_string());
        }
    };

    let Some(entry) = server.pod_manager.find(namespace, pod) else {
        return answer::text(
            StatusCode::NOT_FOUND,
            format!("pod {} does not exist", Quoted(pod)),
        );
    };

    if entry.pod.container(container).is_none() {
        let text = format!(
            "container {} not found in pod {}",
            Quoted(container),
            Quoted(pod)
        );
        return answer::text(StatusCode::NOT_FOUND, text);
    }

    let status = entry.status.as_deref().unwrap_or(entry.pod.pod_status());
    let id = match instance(pod, status, container, options.previous) {
        Ok(id) => id,
        Err(text) => return answer::text(StatusCode::BAD_REQUEST, text),
    };

    match open(server, &id, options).await {
        Ok(log) => stream_of(log),
        Err(error) => {
            tracing::info!(%error, container = id, "cannot open container log");
            // Upstream has already sent its status code, and puts the error in the body.
            answer::text(
                StatusCode::OK,
                format!("unable to retrieve container logs for {id}"),
            )
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum LogError {
    #[error(transparent)]
    Runtime(#[from] coracle_cri::Error),
    #[error(transparent)]
    File(#[from] std::io::Error),
}

async fn open(server: &Server, id: &str, options: LogOptions) -> Result<Log, LogError> {
    let status = server
        .runtime
        .container_status(id, false)
        .await?
        .status
        .unwrap_or_default();
    let path = PathBuf::from(status.log_path);
    Ok(Log::open(server.runtime.clone(), id, path, options).await?)
}

fn stream_of(log: Log) -> Answer {
    let chunks = stream::unfold(Some(log), async |log| {
        let mut log = log?;
        match log.next().await {
            Ok(Some(chunk)) => Some((Ok(Frame::data(chunk)), Some(log))),
            Ok(None) => None,
            // The response is aborted, so that the client does not take it for complete.
            Err(error) => Some((Err(error), None)),
        }
    });
    let mut answer = Response::new(StreamBody::new(chunks).boxed_unsync());

    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);

    answer
}
