//! The volumes of pods, on the disk where upstream has them.
//!
//! [`PodVolumes::mount`] asks `source` what each volume is, gathers its contents (`contents`:
//! ConfigMaps, Secrets, fields of the pod, and `tokens`), and sets it up: a folder of its own
//! (`empty_dir`), a path of the host's (`host_path`), or files that change all at once (`atomic`);
//! `ownership` gives it to the pod's group. [`PodVolumes::bind`] says what a container mounts of
//! that (`binding`), parts of volumes without being led out of them (`subpath`).
//!
//! Nothing is remembered: what there is says the disk, and the mount table (`mount_table`). So a
//! pod whose volumes were half made is continued, and one that nobody knows any more is cleaned up
//! (`removal`). Work on the disk is done on threads that may wait.

mod atomic;
mod binding;
mod contents;
mod empty_dir;
mod host_path;
mod mount_table;
mod nested;
mod ownership;
mod removal;
mod source;
mod subpath;
#[cfg(test)]
mod tests;
mod tokens;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::go_text::Quoted;
use coracle_api::time::Timestamp;
use coracle_client::{Informer, Typed, World};
use coracle_cri::v1::Mount;
use k8s_openapi::api::core::v1::{Container, Node, Pod, Volume};

use crate::env;
use crate::host::Host;
use crate::layout::Layout;
use crate::parts::{BindError, MountedVolumes, VolumeError, Volumes};
use crate::pod::PodView as _;
use crate::references::References;
use crate::roster::Roster;
use contents::{Contents, ContentsError};
use empty_dir::Medium;
use ownership::Group;
use source::Source;

/// The volumes of this node's pods.
pub struct PodVolumes {
    layout: Layout,
    world: World,
    references: Arc<References>,
    tokens: tokens::Tokens,
    node: Informer<Typed<Node>>,
    /// Whether the runtime can make whole trees of mounts read-only.
    recursive_read_only: bool,
}

/// Why a volume could not be set up. What a user reads follows `MountVolume.SetUp failed for volume
/// "x" : `.
#[derive(Debug, thiserror::Error)]
enum SetUpError {
    #[error(transparent)]
    Contents(#[from] ContentsError),
    #[error(transparent)]
    HostPath(#[from] host_path::HostPathError),
    #[error(transparent)]
    EmptyDir(#[from] empty_dir::EmptyDirError),
    #[error(transparent)]
    Nested(#[from] nested::NestedError),
    #[error(transparent)]
    Files(#[from] atomic::AtomicError),
    #[error("{0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// A volume with everything that is needed to set it up.
enum Prepared {
    Directory { medium: Medium },
    HostPath { path: PathBuf, kind: String },
    Files { medium: Medium, contents: Contents },
}

impl PodVolumes {
    /// `recursive_read_only`: what the runtime says of itself.
    pub fn new(host: &Host, references: Arc<References>, recursive_read_only: bool) -> PodVolumes {
        PodVolumes {
            layout: host.layout.clone(),
            world: host.world,
            references,
            tokens: tokens::Tokens::new(host.client.clone()),
            node: env::own_node(host),
            recursive_read_only,
        }
    }

    /// Sets one volume up, and says until when it is good.
    async fn set_up(
        &self,
        pod: &Pod,
        volume: &Volume,
        source: Source<'_>,
    ) -> Result<Option<Timestamp>, SetUpError> {
        let (prepared, renew_at) = self.prepare(pod, source).await?;
        let place = Place::of(&self.layout, pod, volume);
        let now = self.world.now();
        let salt = (self.world.random)();
        let done = tokio::task::spawn_blocking(move || place.make(&prepared, now, salt)).await?;
        done.map(|()| renew_at)
    }

    /// Gathers what a volume consists of.
    async fn prepare(
        &self,
        pod: &Pod,
        source: Source<'_>,
    ) -> Result<(Prepared, Option<Timestamp>), SetUpError> {
        let node = env::allocatable(&self.node).await.unwrap_or_default();
        let memory = || Medium::Memory {
            size: empty_dir::memory_size(None, pod, &node),
        };
        let gather = contents::Gather {
            references: &self.references,
            tokens: &self.tokens,
            pod,
            node: &node,
        };

        Ok(match source {
            Source::EmptyDir(directory) => (
                Prepared::Directory {
                    medium: Medium::of(directory, pod, &node)?,
                },
                None,
            ),
            Source::HostPath(path) => {
                let kind = path.type_.clone().unwrap_or_default();
                (
                    Prepared::HostPath {
                        path: PathBuf::from(&path.path),
                        kind,
                    },
                    None,
                )
            }
            Source::ConfigMap(wanted) => (
                Prepared::Files {
                    medium: Medium::Disk,
                    contents: gather.config_map(wanted).await?,
                },
                None,
            ),
            Source::Secret(wanted) => (
                Prepared::Files {
                    medium: memory(),
                    contents: gather.secret(wanted).await?,
                },
                None,
            ),
            Source::DownwardApi(wanted) => (
                Prepared::Files {
                    medium: memory(),
                    contents: gather.downward_api(wanted)?,
                },
                None,
            ),
            Source::Projected(wanted) => {
                let (contents, renew_at) = gather.projected(wanted).await?;
                (
                    Prepared::Files {
                        medium: memory(),
                        contents,
                    },
                    renew_at,
                )
            }
        })
    }
}

#[async_trait]
impl Volumes for PodVolumes {
    async fn mount(&self, pod: &Pod) -> Result<MountedVolumes, VolumeError> {
        self.references.register(pod);
        let (mut failures, mut mounted) = (Vec::new(), MountedVolumes::default());
        for volume in source::used_volumes(pod) {
            let done = match source::of(volume) {
                Ok(source) => self.set_up(pod, volume, source).await.map_err(|error| {
                    format!(
                        "MountVolume.SetUp failed for volume {} : {error}",
                        Quoted(&volume.name)
                    )
                }),
                Err(refused) => Err(format!("{refused}")),
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

    async fn bind(
        &self,
        pod: &Pod,
        container: &Container,
        environment: &[(String, String)],
    ) -> Result<Vec<Mount>, BindError> {
        let planned = binding::plan(pod, container, environment, self.recursive_read_only)
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
                let place = subpath::Place {
                    layout: &layout,
                    uid: &uid,
                    container: &name,
                    index,
                };
                planned.bind(path, &place)
            });

            bound.collect::<Result<Vec<Mount>, binding::BindingError>>()
        });
        let bound = bound.await.map_err(|error| BindError(error.to_string()))?;

        bound.map_err(|error| BindError(error.to_string()))
    }

    async fn unmount(&self, uid: &str) -> Result<(), VolumeError> {
        let (layout, pod) = (self.layout.clone(), uid.to_owned());
        let done =
            tokio::task::spawn_blocking(move || removal::remove_volumes(&layout, &pod)).await;
        match done {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(failed(&error)),
            Err(error) => return Err(failed(&error)),
        }
        self.tokens.forget(uid);
        self.references.forget(uid);
        Ok(())
    }

    async fn clean_up(&self, roster: &Roster) -> Result<(), VolumeError> {
        let (layout, roster) = (self.layout.clone(), roster.clone());
        let done = tokio::task::spawn_blocking(move || {
            removal::orphans(&layout, &roster).map(|orphans| {
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

/// Where a volume of a pod is, and whose it is to be.
struct Place {
    /// `pods/<uid>/volumes/<plugin>/<name>`.
    dir: PathBuf,
    /// `pods/<uid>/plugins/kubernetes.io~empty-dir/<name>`, which says that the folder is ready.
    marker: PathBuf,
    group: Option<Group>,
    /// Where other volumes are mounted below this one.
    nested: Result<Vec<PathBuf>, nested::NestedError>,
}

impl Place {
    fn of(layout: &Layout, pod: &Pod, volume: &Volume) -> Place {
        let plugin = source::plugin(volume).unwrap_or_default();
        Place {
            dir: layout.volume(pod.uid(), plugin, &volume.name),
            marker: layout
                .pod(pod.uid())
                .join("plugins")
                .join(empty_dir::PLUGIN)
                .join(&volume.name),
            group: Group::of(pod),
            nested: nested::mount_points(pod, &volume.name),
        }
    }

    fn make(self, volume: &Prepared, now: Timestamp, salt: u64) -> Result<(), SetUpError> {
        match volume {
            Prepared::HostPath { path, kind } => Ok(host_path::check(path, kind)?),
            Prepared::Directory { medium } => Ok(empty_dir::set_up(
                &self.dir,
                &self.marker,
                medium,
                self.group.as_ref(),
            )?),
            Prepared::Files { medium, contents } => {
                let done = self.make_files(medium, contents, now, salt);
                // What was begun and never finished is taken away; what was there before stays as
                // it was.
                if done.is_err() && !atomic::is_written(&self.dir) {
                    empty_dir::tear_down(&self.dir, &self.marker)?;
                }
                done
            }
        }
    }

    fn make_files(
        &self,
        medium: &Medium,
        contents: &Contents,
        now: Timestamp,
        salt: u64,
    ) -> Result<(), SetUpError> {
        let nested = self.nested.as_ref().map_err(Clone::clone)?;
        // That files were written says that the folder was ready for them: it needs no marker.
        empty_dir::make(&self.dir, medium, atomic::is_written(&self.dir))?;
        nested::make(&self.dir, nested)?;
        let give = |dir: &Path| match &self.group {
            Some(group) => group.take_all(dir, ownership::Access::Read),
            None => Ok(()),
        };
        Ok(atomic::write(&self.dir, contents, now, salt, give)?)
    }
}

/// Where a volume of a pod is on the host; none: the pod has no such volume, or it is of a kind
/// that has no place.
pub(crate) fn host_path(layout: &Layout, pod: &Pod, name: &str) -> Option<PathBuf> {
    let volume = pod
        .pod_spec()
        .volumes
        .iter()
        .flatten()
        .find(|volume| volume.name == name)?;
    match source::of(volume).ok()? {
        Source::HostPath(path) => Some(PathBuf::from(&path.path)),
        _ => Some(layout.volume(pod.uid(), source::plugin(volume)?, name)),
    }
}

/// Opens a file below a volume without being led out of it.
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
