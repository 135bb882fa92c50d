//! `/run`: runs a command to completion and returns its output.

use http::StatusCode;

use coracle_api::go_text::Quoted;

use super::Server;
use super::answer::{self, Answer};
use super::command::running;
use super::query::Query;
use super::route::ContainerPath;

pub(super) async fn answer(server: &Server, target: &ContainerPath, query: &Query) -> Answer {
    let Some(entry) = server.pod_manager.find(&target.namespace, &target.pod) else {
        return answer::text(StatusCode::NOT_FOUND, "pod does not exist");
    };
    let Some(id) = running(&entry, target) else {
        let text = format!("container not found ({})", Quoted(&target.container));
        return answer::text(StatusCode::INTERNAL_SERVER_ERROR, text);
    };

    let command = query
        .get("cmd")
        .unwrap_or_default()
        .split(' ')
        .map(str::to_owned)
        .collect();

    match server.runtime.exec_sync(&id, command, None).await {
        Err(error) => answer::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        Ok(done) if done.exit_code != 0 => {
            let text = format!("command terminated with exit code {}", done.exit_code);
            answer::text(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
        Ok(done) => answer::json([&done.stdout[..], &done.stderr[..]].concat()),
    }
}
