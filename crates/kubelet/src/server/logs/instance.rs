//! Selects the container instance of a log request by the pod's status. Texts are upstream's.

use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{ContainerStatus, PodStatus};

/// The ID of the instance; an error is the response to the client.
pub(in crate::server) fn instance(
    pod: &str,
    status: &PodStatus,
    container: &str,
    previous: bool,
) -> Result<String, String> {
    let all = [
        &status.container_statuses,
        &status.init_container_statuses,
        &status.ephemeral_container_statuses,
    ];
    let mut all = all.into_iter().flatten().flatten();
    let quoted = format!("container {} in pod {}", Quoted(container), Quoted(pod));
    let found = all.find(|status| status.name == container);
    let found = found.ok_or_else(|| format!("{quoted} is not available"))?;
    let id = id_of(found, &quoted, previous)?;
    Ok(id.split_once("://").map_or(id, |(_, id)| id).to_owned())
}

fn id_of<'a>(status: &'a ContainerStatus, quoted: &str, previous: bool) -> Result<&'a str, String> {
    let state = status.state.as_ref();
    let last = status
        .last_state
        .as_ref()
        .and_then(|last| last.terminated.as_ref());

    let last_id = last
        .and_then(|last| last.container_id.as_deref())
        .filter(|id| !id.is_empty());
    if previous {
        return last_id.ok_or_else(|| format!("previous terminated {quoted} not found"));
    }

    if state.is_some_and(|state| state.running.is_some()) {
        return Ok(status.container_id.as_deref().unwrap_or_default());
    }

    let terminated = state.and_then(|state| state.terminated.as_ref());
    if let Some(terminated) = terminated {
        let own = terminated
            .container_id
            .as_deref()
            .filter(|id| !id.is_empty());
        // If the next instance could not start, the previous one is used.
        return own
            .or(last_id)
            .ok_or_else(|| format!("{quoted} is terminated"));
    }

    if last.is_some() {
        return last_id.ok_or_else(|| format!("{quoted} is terminated"));
    }

    let waiting = state.and_then(|state| state.waiting.as_ref());
    Err(
        match waiting.map(|waiting| waiting.reason.as_deref().unwrap_or_default()) {
            Some("ErrImagePull") => format!("{quoted} is waiting to start: image can't be pulled"),
            Some("ImagePullBackOff") => {
                format!("{quoted} is waiting to start: trying and failing to pull image")
            }
            Some(reason) => format!("{quoted} is waiting to start: {reason}"),
            None => format!("{quoted} is waiting to start - no logs yet"),
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(status: &serde_json::Value, previous: bool, expected: Result<&str, &str>) {
        let mut container =
            json!({"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0});
        container
            .as_object_mut()
            .unwrap()
            .extend(status.as_object().unwrap().clone());

        let status = serde_json::from_value(json!({"containerStatuses": [container]})).unwrap();
        let found = instance("p", &status, "c", previous);
        assert_eq!(
            found,
            expected.map(str::to_owned).map_err(str::to_owned),
            "{status:?}"
        );
    }

    #[test]
    fn the_state_selects_the_instance() {
        let running = json!({"state": {"running": {}}, "containerID": "coracle://one"});
        check(&running, false, Ok("one"));
        check(
            &running,
            true,
            Err(r#"previous terminated container "c" in pod "p" not found"#),
        );

        let ended = |id: &str| json!({"terminated": {"exitCode": 0, "containerID": id}});
        check(&json!({"state": ended("x://two")}), false, Ok("two"));
        check(
            &json!({"state": ended("")}),
            false,
            Err(r#"container "c" in pod "p" is terminated"#),
        );

        check(
            &json!({"state": ended(""), "lastState": ended("x://one")}),
            false,
            Ok("one"),
        );

        let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
        check(
            &json!({"state": waiting("CrashLoopBackOff"), "lastState": ended("x://one")}),
            false,
            Ok("one"),
        );

        check(
            &json!({"state": waiting("CrashLoopBackOff"), "lastState": ended("x://one")}),
            true,
            Ok("one"),
        );

        let starts =
            |what: &str| format!(r#"container "c" in pod "p" is waiting to start: {what}"#);
        check(
            &json!({"state": waiting("ContainerCreating")}),
            false,
            Err(&starts("ContainerCreating")),
        );

        check(
            &json!({"state": waiting("ErrImagePull")}),
            false,
            Err(&starts("image can't be pulled")),
        );

        check(
            &json!({"state": waiting("ImagePullBackOff")}),
            false,
            Err(&starts("trying and failing to pull image")),
        );

        check(
            &json!({}),
            false,
            Err(r#"container "c" in pod "p" is waiting to start - no logs yet"#),
        );

        let none = instance("p", &PodStatus::default(), "c", false);
        assert_eq!(
            none,
            Err(r#"container "c" in pod "p" is not available"#.to_owned())
        );
    }
}
