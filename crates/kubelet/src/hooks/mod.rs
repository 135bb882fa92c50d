//! Lifecycle hooks of containers: `postStart` and `preStop`.
//!
//! A hook is a command in the container, an HTTP GET from the host, or a sleep. The status of the
//! HTTP response does not matter. The caller bounds the time: dropping the future ends the hook.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use coracle_api::go_text::Quoted;
use coracle_client::{Recorder, World};
use coracle_cri::Runtime;
use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, LifecycleHandler, Pod};

use crate::host::Host;
use crate::http_get::{self, Target};
use crate::pod::PodView as _;

/// Runs hooks.
pub struct HookRunner {
    runtime: Arc<dyn Runtime>,
    events: Recorder,
}

/// Why a hook failed: the message of a container that waits with `PostStartHookError`. Events have
/// only `PostStartHook failed` or `PreStopHook failed`, as this may contain a server's response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// The container instance of a hook.
struct Subject<'a> {
    pod: &'a Pod,
    container: &'a Container,
    container_id: &'a str,
    pod_ips: &'a [String],
}

impl HookRunner {
    pub fn new(host: &Host) -> HookRunner {
        HookRunner {
            runtime: host.runtime.clone(),
            events: host.events.clone(),
        }
    }

    /// Without events, for use while there is no API server.
    pub fn without_events(runtime: Arc<dyn Runtime>, world: World) -> HookRunner {
        HookRunner {
            runtime,
            events: Recorder::silent(world),
        }
    }

    async fn run(&self, hook: &LifecycleHandler, subject: &Subject<'_>) -> Result<(), HookError> {
        if let Some(action) = &hook.exec {
            return self.run_exec(action, subject).await;
        }

        if let Some(action) = &hook.http_get {
            let path = action.path.as_deref().unwrap_or_default();
            let done = self.run_http(action, subject).await;
            return done.map_err(|reason| {
                HookError(format!(
                    "HTTP lifecycle hook ({path}) {} failed - error: {reason}",
                    subject.describe()
                ))
            });
        }

        if let Some(action) = &hook.sleep {
            let seconds = u64::try_from(action.seconds).unwrap_or_default();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            return Ok(());
        }

        // `tcpSocket` is accepted by the API and was never implemented.
        Err(HookError(
            "Cannot run handler: invalid handler: neither exec nor httpGet nor sleep is given"
                .to_owned(),
        ))
    }

    async fn run_exec(&self, action: &ExecAction, subject: &Subject<'_>) -> Result<(), HookError> {
        let command = action.command.clone().unwrap_or_default();
        let (reason, printed) = match self
            .runtime
            .exec_sync(subject.container_id, command.clone(), None)
            .await
        {
            Ok(done) if done.exit_code == 0 => return Ok(()),
            Ok(done) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (code, err) = (done.exit_code, text(&done.stderr));
                let reason = format!("command '{}' exited with {code}: {err}", command.join(" "));
                (reason, text(&done.stdout) + &err)
            }
            Err(error) => (error.to_string(), String::new()),
        };

        Err(HookError(format!(
            "Exec lifecycle hook ([{}]) {} failed - error: {reason}, message: {}",
            command.join(" "),
            subject.describe(),
            Quoted(&printed)
        )))
    }

    async fn run_http(&self, action: &HTTPGetAction, subject: &Subject<'_>) -> Result<(), String> {
        let own = subject.pod_ips.first().map(String::as_str);
        let names_host = action.host.as_deref().is_some_and(|host| !host.is_empty());
        let address = own
            .or(names_host.then_some(""))
            .ok_or("failed to find networking container")?;

        let target = Target::of(action, subject.container, address, "lifecycle")
            .map_err(|error| error.to_string())?;
        match http_get::get(&target, None).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_plain_http() => {
                // Hooks with scheme HTTPS on plain HTTP servers worked before upstream verified the
                // scheme.
                http_get::get(&target.plain(), None)
                    .await
                    .map_err(|_| error.to_string())?;
                let text = format!(
                    "request to HTTPS lifecycle hook {} got HTTP response, retry with HTTP succeeded",
                    target.authority()
                );

                self.events
                    .warning(&subject.pod.reference(), "LifecycleHTTPFallback", text);

                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Subject<'_> {
    fn describe(&self) -> String {
        let pod = self.pod;
        let pod = format!("{}_{}({})", pod.name(), pod.namespace(), pod.uid());
        format!(
            "for Container {} in Pod {}",
            Quoted(&self.container.name),
            Quoted(&pod)
        )
    }
}

impl HookRunner {
    /// Runs `lifecycle.postStart` of a container that has just started; no hook is success.
    pub async fn run_post_start(
        &self,
        pod: &Pod,
        container: &Container,
        container_id: &str,
        pod_ips: &[String],
    ) -> Result<(), HookError> {
        let hook = container
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.post_start.as_ref());

        match hook {
            Some(hook) => {
                self.run(
                    hook,
                    &Subject {
                        pod,
                        container,
                        container_id,
                        pod_ips,
                    },
                )
                .await
            }
            None => Ok(()),
        }
    }

    /// Runs `lifecycle.preStop`. The caller drops the future when the grace period is over.
    pub async fn run_pre_stop(
        &self,
        pod: &Pod,
        container: &Container,
        container_id: &str,
        pod_ips: &[String],
    ) -> Result<(), HookError> {
        let hook = container
            .lifecycle
            .as_ref()
            .and_then(|lifecycle| lifecycle.pre_stop.as_ref());

        match hook {
            Some(hook) => {
                self.run(
                    hook,
                    &Subject {
                        pod,
                        container,
                        container_id,
                        pod_ips,
                    },
                )
                .await
            }
            None => Ok(()),
        }
    }
}
