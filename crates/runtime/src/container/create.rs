//! CreateContainer: prepares everything up to, but not including, the exec of the program.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_cgroup::Group;
use coracle_cri::v1::{ContainerConfig, ContainerEventType, PodSandboxConfig};
use coracle_files::private;
use coracle_supervisor::protocol::{ContainerSpec, Reply, Request, encode};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

use super::{Container, State, name_of};
use crate::config::{OpenFiles, text};
use crate::error::Error;
use crate::node::{Node, blocking};
use crate::ports::ImageForContainer;
use crate::records::{ContainerRecord, save};
use crate::spec::{
    SpecInputs, assemble, devices, limits, mount_points, security, signals, unsupported_limits,
};
use crate::volumes::{self, Volume};
use crate::{clock, ids};

impl Node {
    pub(crate) async fn create_container(
        self: &Arc<Self>,
        sandbox: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String, Error> {
        let sandbox = self.sandbox(sandbox)?;
        if !sandbox.is_ready() {
            return Err(Error::WrongState(format!(
                "sandbox {:?} is not ready",
                sandbox.id
            )));
        }

        let image = self
            .rootfs
            .resolve(&config.image.clone().unwrap_or_default())
            .await?;

        let id = ids::new();
        let reservation = self.reserve(name_of(&sandbox.id, &config), &id)?;

        let group = self.group(&sandbox.cgroup_parent(), &id);
        let record = ContainerRecord {
            sandbox: sandbox.id.clone(),
            created_at: clock::now(),
            image_id: image.id.clone(),
            image_ref: image.reference.clone(),
            log_path: log_path(&sandbox_config, &config),
            cgroup: group.path(),
            stop_signal: signals::stop_signal(config.stop_signal(), &image.config.stop_signal),
            config,
            ..ContainerRecord::default()
        };

        let container = Arc::new(Container::new(
            id.clone(),
            Arc::clone(&sandbox),
            record,
            State::Created,
        ));

        match self
            .build_container(&container, sandbox_config, &image, group)
            .await
        {
            Ok(()) => {
                reservation.keep();
                self.add_container(container);
                self.send_event(&id, &sandbox.id, ContainerEventType::ContainerCreatedEvent);
                Ok(id)
            }
            Err(error) => {
                if let Err(error) = self.clean_up_container(&container).await {
                    tracing::warn!(container = id, error = %error, "container cleanup incomplete after failed create");
                }
                Err(error)
            }
        }
    }

    async fn build_container(
        self: &Arc<Self>,
        container: &Arc<Container>,
        sandbox_config: PodSandboxConfig,
        image: &ImageForContainer,
        group: Group,
    ) -> Result<(), Error> {
        let folder = self.config.container_root(&container.id);
        self.begin_container(container, folder.clone(), group.clone())
            .await?;

        let mut config = container.record().config.clone();
        self.prepare_images(&container.id, &mut config).await?;
        let volumes = volumes::for_image(&image.config.volumes, &config, &folder)?;
        config.mounts.extend(volumes.iter().map(Volume::mount));
        let rootfs = self
            .rootfs
            .prepare(&container.id, image, &mount_points(&config))
            .await?;

        let plan = Plan {
            container: Arc::clone(container),
            config,
            volumes,
            sandbox_config,
            image: image.clone(),
            group,
            rootfs,
            folder: folder.clone(),
            pod_folder: self.config.sandbox_state(&container.sandbox.id),
            pod_root: self.config.sandbox_root(&container.sandbox.id),
            hierarchies: self.hierarchies.clone(),
            open_files: self.config.open_files,
        };
        let spec = blocking(move || plan.build_spec()).await?;
        let process = encode(&spec.process);

        let supervisor = self.supervisor_of(&container.sandbox).await?;
        let (reply, _) = supervisor.call(Request::Create { spec }, &[]).await?;
        if let Reply::Created { pid, warnings } = reply {
            self.warn_once(warnings);
            self.hold_descriptors(container, &supervisor, pid).await;
        }

        let record = container.change(|record| {
            record.process = process;
            record.complete = true;
        });

        blocking(move || save(&folder, record.as_ref())).await
    }

    /// Gives the mounts of images a path on the host.
    async fn prepare_images(
        &self,
        container: &str,
        config: &mut ContainerConfig,
    ) -> Result<(), Error> {
        for (number, mount) in config.mounts.iter_mut().enumerate() {
            let Some(image) = &mount.image else {
                continue;
            };

            let image = self.rootfs.resolve(image).await?;
            let name = image_mount(container, number);
            let root = self.rootfs.prepare(&name, &image, &[]).await?;
            let below = mount.image_sub_path.clone();
            let source = blocking(move || inside(&root, &below)).await?;
            mount.host_path = text(&source);
        }

        Ok(())
    }

    /// Removes the root filesystem of a container, and the images that it mounts.
    pub(crate) async fn remove_rootfs(&self, container: &str) -> Result<(), Error> {
        for name in self.rootfs.containers().await? {
            if is_image_mount_of(container, &name) {
                self.rootfs.remove(&name).await?;
            }
        }

        Ok(self.rootfs.remove(container).await?)
    }

    /// Writes the container's record, before anything else is created, and creates its cgroup with
    /// all limits.
    async fn begin_container(
        &self,
        container: &Container,
        folder: PathBuf,
        group: Group,
    ) -> Result<(), Error> {
        let (record, pids) = (container.record(), self.config.pids_limit);
        let cannot = blocking(move || {
            private::folder(&folder).map_err(Error::io("create", &folder))?;
            save(&folder, record.as_ref())?;
            let config = &record.config;
            let resources = config
                .linux
                .as_ref()
                .and_then(|linux| linux.resources.clone())
                .unwrap_or_default();

            group.create()?;
            let cannot = group.limit_as_possible(&limits(&resources, pids))?;
            group.allow_devices(&devices::rules(config, security(config).privileged)?)?;

            Ok::<_, Error>(cannot)
        });
        self.warn_once(unsupported_limits(&cannot.await?));

        Ok(())
    }

    /// Removes everything of a container that does not run, complete or not.
    pub(crate) async fn clean_up_container(
        self: &Arc<Self>,
        container: &Arc<Container>,
    ) -> Result<(), Error> {
        match self
            .call_supervisor(
                &container.sandbox,
                Request::Delete {
                    container: container.id.clone(),
                },
            )
            .await
        {
            // It may never have been created; and a supervisor that exited holds nothing.
            Ok(_) | Err(Error::Refused(_) | Error::SupervisorGone) => {}
            Err(error) => return Err(error),
        }

        self.keeper.release_and_wait(&container.id).await;
        let group = self.hierarchies.group(&container.record().cgroup);
        blocking(move || {
            group.kill()?;
            group.remove()
        })
        .await?;

        self.remove_rootfs(&container.id).await?;
        let folder = self.config.container_root(&container.id);

        blocking(move || crate::sandbox::remove_folder(&folder)).await
    }
}

/// The inputs to prepare a container on the host.
struct Plan {
    container: Arc<Container>,
    /// The container config, with the mounts of the image's volumes.
    config: ContainerConfig,
    volumes: Vec<Volume>,
    sandbox_config: PodSandboxConfig,
    image: ImageForContainer,
    group: Group,
    rootfs: PathBuf,
    folder: PathBuf,
    pod_folder: PathBuf,
    pod_root: PathBuf,
    hierarchies: coracle_cgroup::Hierarchies,
    open_files: Option<OpenFiles>,
}

impl Plan {
    /// Where the pod's files in `/etc` are: containers may write to them, so they are on disk. An
    /// older version had them in tmpfs, where one pod could use all memory.
    fn pod_files(&self) -> &Path {
        if self.pod_root.join("hostname").exists() {
            &self.pod_root
        } else {
            &self.pod_folder
        }
    }

    fn build_spec(&self) -> Result<ContainerSpec, Error> {
        let record = self.container.record();
        let log = Some(Path::new(&record.log_path)).filter(|path| !path.as_os_str().is_empty());

        self.volumes
            .iter()
            .try_for_each(|volume| volume.make(&self.rootfs))?;
        let spec = assemble(&SpecInputs {
            id: &self.container.id,
            config: &self.config,
            sandbox: &self.sandbox_config,
            image: &self.image.config,
            rootfs: &self.rootfs,
            pod_folder: &self.pod_folder,
            pod_files: self.pod_files(),
            group: &self.group,
            hierarchies: &self.hierarchies,
            log,
            exit_file: &self.folder.join("exit"),
            open_files: self.open_files,
        })?;

        if let Some(folder) = log.and_then(Path::parent) {
            fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        }

        Ok(spec)
    }
}

/// The name under which an image that a container mounts has a root filesystem of its own.
fn image_mount(container: &str, number: usize) -> String {
    format!("{container}-image-{number}")
}

fn is_image_mount_of(container: &str, name: &str) -> bool {
    name.split_once("-image-")
        .is_some_and(|(owner, _)| owner == container)
}

/// A path below the root of a mounted image. Links are resolved in the image.
fn inside(root: &Path, below: &str) -> Result<PathBuf, Error> {
    if below.is_empty() {
        return Ok(root.to_owned());
    }

    let failed =
        |errno: Errno| Error::io("find in the image the subpath", Path::new(below))(errno.into());
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let top = open(root, flags | OFlags::DIRECTORY, Mode::empty()).map_err(failed)?;
    let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let found = openat2(&top, below, flags, Mode::empty(), how).map_err(failed)?;
    let link = format!("/proc/self/fd/{}", found.as_raw_fd());
    fs::read_link(&link).map_err(Error::io("read", Path::new(&link)))
}

/// The path of the log file, in the pod's log directory.
fn log_path(sandbox: &PodSandboxConfig, config: &ContainerConfig) -> String {
    if sandbox.log_directory.is_empty() || config.log_path.is_empty() {
        return String::new();
    }
    Path::new(&sandbox.log_directory)
        .join(&config.log_path)
        .to_string_lossy()
        .into_owned()
}
