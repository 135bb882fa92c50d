//! Starts containers: back-off, image, configuration, create, start, postStart hook.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use coracle_api::time::Timestamp;
use coracle_client::ObjectReference;
use coracle_cri::v1::ImageSpec;
use k8s_openapi::api::core::v1::{Container, Pod};
use tokio::time::Instant;

use super::PodWorker;
use super::files::ContainerFiles;
use super::kill::Grace;
use super::sandbox::PodSandbox;
use super::sync::SyncError;
use crate::actions::Actions;
use crate::cgroups::blocking;
use crate::images::{ImageRequest, Keyring, PresentImage, PullFailure};
use crate::logs::{self, rotation};
use crate::observed::{Observed, ObservedContainer, State};
use crate::pod::{Kind, PodView};
use crate::spec::{container, security};
use crate::status::Waiting;
use crate::volumes::ImageVolumes;

/// A container that could not be started: its waiting state, and when to retry.
struct StartFailure {
    waiting: Waiting,
    due: Option<Timestamp>,
}

impl StartFailure {
    fn because(reason: &'static str, message: impl Into<String>) -> StartFailure {
        StartFailure {
            waiting: Waiting {
                reason,
                message: message.into(),
            },
            due: None,
        }
    }
}

/// The images of the pod's volumes by the volumes' names, or why they are missing.
type PulledVolumes = BTreeMap<String, Result<ImageSpec, PullFailure>>;

/// What all containers of a pod are started from.
struct Inputs<'a> {
    pod: &'a Arc<Pod>,
    observed: &'a Observed,
    sandbox: &'a PodSandbox,
    keyring: &'a Keyring,
    volumes: &'a PulledVolumes,
}

/// Seconds for which a failed pull is reported as ErrImagePull before ImagePullBackOff.
const PULL_ERROR_SECONDS: i64 = 2;

impl PodWorker {
    /// Starts containers: ephemeral ones regardless of the others, init containers in order, main
    /// containers independently. Returns when the first retry is due.
    pub(super) async fn start_all(
        &mut self,
        pod: &Arc<Pod>,
        observed: &Observed,
        actions: &Actions,
        keyring: &Keyring,
    ) -> Result<Option<Timestamp>, SyncError> {
        let nothing = actions.start_ephemeral.is_empty()
            && actions.start_init.is_empty()
            && actions.start_main.is_empty();
        if nothing && !actions.create_sandbox {
            return Ok(None);
        }

        let sandbox = self.sandbox(pod, observed, actions).await?;
        let inputs = Inputs {
            pod,
            observed,
            sandbox: &sandbox,
            keyring,
            volumes: &self.pull_volumes(pod, &sandbox, keyring).await?,
        };
        let mut due: Option<Timestamp> = None;
        let lists = [
            &actions.start_ephemeral,
            &actions.start_init,
            &actions.start_main,
        ];

        for name in lists.into_iter().flatten() {
            if self.is_terminating() {
                return Err(SyncError::Terminating);
            }

            let Some((kind, container)) = pod.container(name) else {
                continue;
            };
            let result = self.start(&inputs, kind, &container).await;
            let failure = result.as_ref().err().map(|failure| failure.waiting.reason);
            self.shared.pod_metrics.container_started(kind, failure);

            match result {
                Ok(()) => drop(self.waiting.remove(name)),
                Err(failure) => {
                    self.shared.host.note(
                        pod.uid(),
                        "start",
                        format!(
                            "{name} waits: {}: {}",
                            failure.waiting.reason, failure.waiting.message
                        ),
                    );

                    due = [due, failure.due.or_else(|| Some(self.retry_at()))]
                        .into_iter()
                        .flatten()
                        .min();

                    self.waiting.insert(name.clone(), failure.waiting);

                    if kind == Kind::Init {
                        break;
                    }
                }
            }
        }

        Ok(due)
    }

    fn retry_at(&self) -> Timestamp {
        let seconds = super::RETRY_DELAY.mul_f64(1.0 + 0.5 * self.shared.host.world.fraction());
        self.shared.host.now() + seconds.into()
    }

    /// Pulls the images of the pod's volumes. A failure is one of the containers that mount them.
    async fn pull_volumes(
        &self,
        pod: &Arc<Pod>,
        sandbox: &PodSandbox,
        keyring: &Keyring,
    ) -> Result<PulledVolumes, SyncError> {
        let mut pulled = PulledVolumes::new();
        for volume in pod.pod_spec().volumes.iter().flatten() {
            let Some(source) = &volume.image else {
                continue;
            };

            let reference = source.reference.as_deref().unwrap_or_default();
            let wanted = ImageRequest {
                pod,
                about: pod.reference(),
                image: reference,
                policy: source.pull_policy.as_deref(),
                sandbox: &sandbox.config,
                keyring,
            };

            let present = self.pull(&wanted).await.ok_or(SyncError::Terminating)?;
            let image = present.map(|present| ImageSpec {
                image: present.reference,
                user_specified_image: reference.to_owned(),
                ..ImageSpec::default()
            });
            pulled.insert(volume.name.clone(), image);
        }

        Ok(pulled)
    }

    /// The image, or why it is missing; none if the pod is terminated meanwhile.
    async fn pull(&self, wanted: &ImageRequest<'_>) -> Option<Result<PresentImage, PullFailure>> {
        let began = Instant::now();
        let mut termination = self.mailbox.termination.subscribe();
        let image = tokio::select! {
            image = self.shared.image_manager.ensure(&self.shared.host, wanted) => image,
            _ = termination.wait_for(Option::is_some) => return None,
        };

        if let Some(startup) = &self.startup {
            startup.pulled(began.elapsed());
        }
        Some(image)
    }

    fn pull_failed(&self, PullFailure { waiting, until }: PullFailure) -> StartFailure {
        let soon = self.shared.host.now().plus_seconds(PULL_ERROR_SECONDS);
        let due = if waiting.reason == "ImagePullBackOff" {
            until
        } else {
            until.map(|_| soon)
        };
        StartFailure { waiting, due }
    }

    /// The images that a container mounts.
    fn mounted_images(
        &self,
        about: &ObjectReference,
        container: &Container,
        pulled: &PulledVolumes,
    ) -> Result<ImageVolumes, StartFailure> {
        let mut images = ImageVolumes::new();
        let mut last = None;
        for mount in container.volume_mounts.iter().flatten() {
            match pulled.get(&mount.name) {
                None => {}
                Some(Ok(image)) => drop(images.insert(mount.name.clone(), image.clone())),
                Some(Err(failure)) => {
                    let text = format!("Error: {}", failure.waiting.reason);
                    self.shared.host.events.warning(about, "Failed", text);
                    last = Some(failure.clone());
                }
            }
        }

        match last {
            Some(failure) => Err(self.pull_failed(failure)),
            None => Ok(images),
        }
    }

    async fn start(
        &self,
        inputs: &Inputs<'_>,
        kind: Kind,
        container: &Container,
    ) -> Result<(), StartFailure> {
        let Inputs {
            pod,
            observed,
            sandbox,
            keyring,
            volumes,
        } = *inputs;
        let host = &self.shared.host;
        self.check_back_off(pod, observed, kind, container)?;
        let about = pod.container_reference(kind, &container.name);
        let volumes = self.mounted_images(&about, container, volumes)?;
        let wanted = ImageRequest {
            pod,
            about: about.clone(),
            image: container.image.as_deref().unwrap_or_default(),
            policy: container.image_pull_policy.as_deref(),
            sandbox: &sandbox.config,
            keyring,
        };

        let image = match self.pull(&wanted).await {
            Some(image) => image.map_err(|failure| self.pull_failed(failure))?,
            None => return Err(StartFailure::because("ContainerCreating", "")),
        };

        let failed = |reason: &'static str, text: String| {
            host.events
                .warning(&about, "Failed", format!("Error: {text}"));
            StartFailure::because(reason, text)
        };

        let config = self
            .configure(inputs, kind, container, &image, &volumes)
            .await;
        let config = config.map_err(|text| failed("CreateContainerConfigError", text))?;
        let log = Path::new(&sandbox.config.log_directory).join(&config.log_path);

        let created = host
            .runtime
            .create_container(&sandbox.id, config, sandbox.config.clone())
            .await;
        let id = created.map_err(|error| failed("CreateContainerError", error.to_string()))?;

        host.events.normal(&about, "Created", "Container created");
        let started = host.runtime.start_container(&id).await;
        started.map_err(|error| failed("RunContainerError", error.to_string()))?;
        host.events.normal(&about, "Started", "Container started");
        host.note(pod.uid(), "start", container.name.as_str());
        self.link_log(pod, container, &id, &log).await;
        self.prune(observed, &container.name).await;

        self.post_start(pod, sandbox, kind, container, &id).await
    }

    async fn post_start(
        &self,
        pod: &Arc<Pod>,
        sandbox: &PodSandbox,
        kind: Kind,
        container: &Container,
        id: &str,
    ) -> Result<(), StartFailure> {
        if container
            .lifecycle
            .as_ref()
            .is_none_or(|lifecycle| lifecycle.post_start.is_none())
        {
            return Ok(());
        }

        let mut termination = self.mailbox.termination.subscribe();
        let restarts = tokio::select! {
            restarts = self.shared.hooks.run_post_start(pod, container, id, &sandbox.addresses) => restarts,
            // The termination of the pod stops the container.
            _ = termination.wait_for(Option::is_some) => return Ok(()),
        };
        let Err(error) = restarts else { return Ok(()) };

        let about = pod.container_reference(kind, &container.name);
        self.shared
            .host
            .events
            .warning(&about, "FailedPostStartHook", "PostStartHook failed");

        let grace = Grace::of(pod, container, None);
        self.stop(
            pod,
            kind,
            container,
            id,
            "FailedPostStartHook",
            grace,
            &sandbox.addresses,
            None,
        )
        .await
        .ok();

        Err(StartFailure::because(
            "PostStartHookError",
            error.to_string(),
        ))
    }

    /// Fails if a restarted container is in back-off.
    fn check_back_off(
        &self,
        pod: &Pod,
        observed: &Observed,
        kind: Kind,
        container: &Container,
    ) -> Result<(), StartFailure> {
        let ended = observed
            .containers
            .iter()
            .filter(|seen| seen.name == container.name);

        let mut ended = ended.filter_map(|seen| match seen.state {
            State::Exited { finished, .. } => Some(finished),
            _ => None,
        });

        let Some(finished) = ended.next() else {
            return Ok(());
        };
        let host = &self.shared.host;
        let key = back_off_key(pod, container);
        let Some(waiting) = self.shared.crashes.waiting(&key, finished, host.now()) else {
            self.shared.crashes.note(&key, finished, host.now());
            return Ok(());
        };

        let (name, pod_text) = (&container.name, pod_text(pod));
        let text = format!("Back-off restarting failed container {name} in pod {pod_text}");
        host.events
            .warning(&pod.container_reference(kind, name), "BackOff", text);
        let message = format!(
            "back-off {} restarting failed container={name} pod={pod_text}",
            waiting.wait
        );

        let waiting_for = Waiting {
            reason: "CrashLoopBackOff",
            message,
        };

        Err(StartFailure {
            waiting: waiting_for,
            due: Some(waiting.until),
        })
    }

    async fn configure(
        &self,
        inputs: &Inputs<'_>,
        kind: Kind,
        container: &Container,
        image: &PresentImage,
        volumes: &ImageVolumes,
    ) -> Result<coracle_cri::v1::ContainerConfig, String> {
        let Inputs {
            pod,
            observed,
            sandbox,
            ..
        } = *inputs;
        let shared = &self.shared;
        let environment = shared
            .environment
            .variables(pod, container, &sandbox.addresses)
            .await;
        let environment = environment.map_err(|error| error.to_string())?;

        security::check_non_root(pod, container, &image.user).map_err(|error| error.to_string())?;
        let mounts = shared
            .volumes
            .bind(pod, container, &environment, volumes)
            .await;
        let mounts = mounts.map_err(|error| error.to_string())?;

        let files = ContainerFiles::of(&shared.host, pod, container, &sandbox.addresses)?;
        let (mounts, restarts) = blocking(move || {
            files
                .create()
                .map(|(more, restarts)| ([mounts, more].concat(), restarts))
        })
        .await?;

        let inputs = container::ContainerInputs {
            // From the runtime, or else from the logs.
            restarts: observed
                .newest(&container.name)
                .map_or(restarts, |seen| seen.restarts() + 1),
            image_ref: &image.reference,
            image_user: &image.user,
            environment: &environment,
            mounts,
            target: target(pod, observed, kind, container)?,
            memory: shared.memory,
        };

        container::config(pod, container, inputs).map_err(|error| error.to_string())
    }

    /// Creates the link by which log collectors find the log of a container.
    async fn link_log(&self, pod: &Pod, container: &Container, id: &str, log: &Path) {
        let link = logs::link_name(PodView::name(pod), pod.namespace(), &container.name, id);
        let link = self.shared.host.layout.container_links().join(link);
        let log = log.to_owned();
        blocking(move || {
            if log.exists()
                && let Err(error) = logs::link(&log, &link)
            {
                tracing::debug!(link = %link.display(), %error, "cannot create container log link");
            }
        })
        .await;
    }

    /// Removes exited instances except the newest, which is kept for `kubectl logs --previous`.
    async fn prune(&self, observed: &Observed, name: &str) {
        let ended = |seen: &&ObservedContainer| {
            seen.name == name && matches!(seen.state, State::Exited { .. })
        };
        for seen in observed.containers.iter().filter(ended).skip(1) {
            if let Err(error) = self.shared.host.runtime.remove_container(&seen.id).await {
                tracing::debug!(container = seen.id, %error, "cannot remove exited container");
                continue;
            }
            rotation::remove(Path::new(&seen.log_path)).await;
        }
    }
}

/// The container whose process namespace an ephemeral one shares.
fn target(
    pod: &Pod,
    observed: &Observed,
    kind: Kind,
    container: &Container,
) -> Result<Option<String>, String> {
    if kind != Kind::Ephemeral {
        return Ok(None);
    }

    let ephemeral = pod
        .ephemeral_containers()
        .iter()
        .find(|one| one.name == container.name);

    let Some(name) = ephemeral
        .and_then(|one| one.target_container_name.as_deref())
        .filter(|name| !name.is_empty())
    else {
        return Ok(None);
    };

    match observed.newest(name) {
        Some(seen) => Ok(Some(seen.id.clone())),
        None => Err(format!("unable to find target container {name}")),
    }
}

/// Includes the fields whose change makes another container, so that a fixed one does not wait.
fn back_off_key(pod: &Pod, container: &Container) -> String {
    let image = container.image.as_deref().unwrap_or_default();
    let resources = container
        .resources
        .as_ref()
        .and_then(|resources| serde_json::to_string(resources).ok());
    format!(
        "{}/{}/{image}/{}",
        pod.uid(),
        container.name,
        resources.unwrap_or_default()
    )
}

/// `name_namespace(uid)`, upstream's format.
fn pod_text(pod: &Pod) -> String {
    format!("{}_{}({})", PodView::name(pod), pod.namespace(), pod.uid())
}
