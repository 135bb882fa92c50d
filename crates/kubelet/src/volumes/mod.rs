//! The volume manager: sets up the volumes of pods, at upstream's paths.
//!
//! [`VolumeManager::mount`] finds the type of each volume in [`PLUGINS`] and sets it up (`plugin`):
//! a directory (`empty_dir`), a path of the host (`host_path`), or files that are replaced all at
//! once (`atomic`) with the contents of a `config_map`, `secret`, `downward_api` or `projected`
//! volume; an `image` is mounted by the runtime. `ownership` applies the pod's `fsGroup`. [`VolumeManager::bind`] computes the mounts of
//! a container (`binding`), including subpaths (`subpath`).
//!
//! There is no state in memory: the disk and the mount table (`mount_table`) are authoritative. So
//! an interrupted setup is continued, and orphaned volumes are removed (`removal`). Work on the
//! disk runs on blocking threads.

mod atomic;
mod binding;
mod config_map;
mod contents;
mod downward_api;
mod empty_dir;
mod host_path;
mod image;
mod mount_table;
mod nested;
mod ownership;
mod plugin;
mod pod_spec;
mod projected;
mod removal;
mod secret;
mod subpath;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coracle_api::go_text::Quoted;
use coracle_api::time::Timestamp;
use coracle_client::{Informer, Typed, World};
use coracle_cri::v1::{ImageSpec, Mount};
use k8s_openapi::api::core::v1::{Container, Node, Pod, Volume};

use crate::env;
use crate::host::Host;
use crate::keyed_locks::KeyedLocks;
use crate::layout::Layout;
use crate::pod::PodView as _;
use crate::pod_manager::PodManager;
use crate::references::References;
use plugin::{Context, Location, SetUpError, VolumePlugin};
use pod_spec::{Unsupported, used_volumes};

/// The supported volume types. A new type is a module with its [`VolumePlugin`], and a line here.
const PLUGINS: &[&dyn VolumePlugin] = &[
    &config_map::ConfigMapPlugin,
    &secret::SecretPlugin,
    &downward_api::DownwardApiPlugin,
    &projected::ProjectedPlugin,
    &host_path::HostPathPlugin,
    &empty_dir::EmptyDirPlugin,
    &image::ImagePlugin,
];

/// The images of a pod's `image` volumes, by the volumes' names.
pub(crate) type ImageVolumes = BTreeMap<String, ImageSpec>;

/// The volumes of this node's pods.
pub struct VolumeManager {
    layout: Layout,
    world: World,
    references: Arc<References>,
    tokens: tokens::Tokens,
    node: Informer<Typed<Node>>,
    /// By pod, held during work on its volumes: a setup that nobody waits for any more still ends
    /// before the volumes are removed.
    work: KeyedLocks,
    /// Whether the runtime supports recursive read-only mounts.
    recursive_read_only: bool,
}

/// The mounted volumes of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountedVolumes {
    /// When they must be mounted again, e.g. to renew a token.
    pub renew_at: Option<Timestamp>,
}

/// Why volumes could not be mounted or removed: one text per volume, that of a `FailedMount` event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", failures.join("; "))]
pub struct VolumeError {
    pub failures: Vec<String>,
}

/// Why the mounts of a container cannot be prepared: it waits with `CreateContainerConfigError` and
/// this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BindError(pub String);

impl VolumeManager {
    /// `recursive_read_only`: whether the runtime supports it.
    pub fn new(
        host: &Host,
        references: Arc<References>,
        recursive_read_only: bool,
    ) -> VolumeManager {
        VolumeManager {
            layout: host.layout.clone(),
            world: host.world,
            references,
            tokens: tokens::Tokens::new(host.client.clone()),
            node: env::own_node(host),
            work: KeyedLocks::default(),
            recursive_read_only,
        }
    }

    /// Sets up one volume; returns when that must be done again.
    async fn set_up(
        &self,
        pod: &Pod,
        volume: &Volume,
        plugin: &dyn VolumePlugin,
    ) -> Result<Option<Timestamp>, SetUpError> {
        let context = Context {
            references: &self.references,
            tokens: &self.tokens,
            pod,
            node: env::allocatable(&self.node).await.unwrap_or_default(),
            now: self.world.now(),
            salt: (self.world.random)(),
        };
        let set_up = plugin.prepare(volume, &context).await?;

        let location = Location::of(&self.layout, pod, volume, plugin);
        let lock = self.work.lock(pod.uid()).await;
        tokio::task::spawn_blocking(move || {
            let _lock = lock;
            (set_up.work)(&location)
        })
        .await??;

        Ok(set_up.renew_at)
    }

    /// Sets up all volumes that a pod's containers use, or updates their contents. Called on every
    /// sync, and at [`MountedVolumes::renew_at`].
    pub async fn mount(&self, pod: &Pod) -> Result<MountedVolumes, VolumeError> {
        self.references.register(pod);
        let (mut failures, mut mounted) = (Vec::new(), MountedVolumes::default());
        for volume in used_volumes(pod) {
            let done = match plugin_of(volume) {
                Ok(plugin) => self.set_up(pod, volume, plugin).await.map_err(|error| {
                    format!(
                        "MountVolume.SetUp failed for volume {} : {error}",
                        Quoted(&volume.name)
                    )
                }),
                Err(unsupported) => Err(unsupported.to_string()),
            };

            match done {
                Ok(renew_at) => mounted.renew_at = earlier(mounted.renew_at, renew_at),
                Err(text) => failures.push(text),
            }
        }

        if failures.is_empty() {
            Ok(mounted)
        } else {
            Err(VolumeError { failures })
        }
    }

    /// The mounts of a container that is about to be created, in the order of its `volumeMounts`.
    /// Subpaths (`subPath`, `subPathExpr`) are prepared here, with the container's environment. The
    /// pod's volumes must be mounted, and `images` present.
    pub(crate) async fn bind(
        &self,
        pod: &Pod,
        container: &Container,
        environment: &[(String, String)],
        images: &ImageVolumes,
    ) -> Result<Vec<Mount>, BindError> {
        let planned = binding::plan(
            pod,
            container,
            environment,
            images,
            self.recursive_read_only,
        )
        .map_err(|error| BindError(error.to_string()))?;
        let (layout, uid, name) = (
            self.layout.clone(),
            pod.uid().to_owned(),
            container.name.clone(),
        );

        let paths: Vec<Option<PathBuf>> = planned
            .iter()
            .map(|planned| host_path(&layout, pod, &planned.volume))
            .collect();

        let bound = tokio::task::spawn_blocking(move || {
            let all = planned.into_iter().zip(paths).enumerate();
            let bound = all.map(|(index, (planned, path))| {
                let location = subpath::Location {
                    layout: &layout,
                    uid: &uid,
                    container: &name,
                    index,
                };
                planned.bind(path, &location)
            });

            bound.collect::<Result<Vec<Mount>, binding::BindingError>>()
        });
        let bound = bound.await.map_err(|error| BindError(error.to_string()))?;

        bound.map_err(|error| BindError(error.to_string()))
    }

    /// Removes all volumes of a pod, by what is on disk: its object may be deleted. Idempotent.
    pub async fn unmount(&self, uid: &str) -> Result<(), VolumeError> {
        let (layout, pod) = (self.layout.clone(), uid.to_owned());
        let lock = self.work.lock(uid).await;
        let done = tokio::task::spawn_blocking(move || {
            let _lock = lock;
            removal::remove_volumes(&layout, &pod)
        })
        .await;
        match done {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed(&error)),
            Err(error) => return Err(failed(&error)),
        }
        self.tokens.forget(uid);
        self.references.forget(uid);
        Ok(())
    }

    /// Removes the volumes and directories of all pods that are not in the pod manager.
    pub async fn clean_up(&self, pod_manager: &PodManager) -> Result<(), VolumeError> {
        let (layout, pod_manager) = (self.layout.clone(), pod_manager.clone());
        let done = tokio::task::spawn_blocking(move || {
            removal::orphans(&layout, &pod_manager).map(|orphans| {
                let failed = orphans
                    .iter()
                    .filter_map(|uid| removal::remove_pod(&layout, uid).err());
                failed.map(|error| error.to_string()).collect::<Vec<_>>()
            })
        });

        match done.await {
            Ok(Ok(failures)) if failures.is_empty() => Ok(()),
            Ok(Ok(failures)) => Err(VolumeError { failures }),
            Ok(Err(error)) => Err(failed(&error)),
            Err(error) => Err(failed(&error)),
        }
    }
}

/// The type of a volume.
fn plugin_of(volume: &Volume) -> Result<&'static dyn VolumePlugin, Unsupported> {
    let mut plugins = PLUGINS.iter().copied();
    plugins
        .find(|plugin| plugin.can_support(volume))
        .ok_or_else(|| Unsupported::of(volume))
}

/// The path of a pod's volume on the host; none: the pod has no such volume, or its type is not
/// supported.
pub(crate) fn host_path(layout: &Layout, pod: &Pod, name: &str) -> Option<PathBuf> {
    let mut volumes = pod.pod_spec().volumes.iter().flatten();
    let volume = volumes.find(|volume| volume.name == name)?;
    let plugin = plugin_of(volume).ok()?;
    match plugin.directory() {
        Some(directory) => Some(layout.volume(pod.uid(), directory, name)),
        None => plugin.host_path(volume),
    }
}

/// Opens a file below a volume, without escaping it.
pub(crate) fn open_inside(volume: &Path, path: &str) -> io::Result<File> {
    subpath::open_file(volume, path)
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

fn failed(error: &dyn std::error::Error) -> VolumeError {
    VolumeError {
        failures: vec![error.to_string()],
    }
}
