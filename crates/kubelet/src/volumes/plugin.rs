//! The interface of volume types.
//!
//! [`VolumePlugin::prepare`] gathers what a volume consists of, with access to the API server, and
//! returns the work on the disk ([`SetUp`]), which runs on a blocking thread at the volume's
//! [`Location`]. Removal needs no code of the type: volumes are unmounted and deleted by what is on
//! disk (`removal`).

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Volume};

use super::atomic;
use super::contents::Contents;
use super::empty_dir::{self, Medium};
use super::nested::{self, NestedError};
use super::ownership::{Access, Group};
use super::tokens::Tokens;
use crate::downward::Amounts;
use crate::layout::Layout;
use crate::pod::PodView as _;
use crate::references::References;

/// A volume type.
#[async_trait]
pub(super) trait VolumePlugin: Sync {
    /// Whether a volume is of this type.
    fn can_support(&self, volume: &Volume) -> bool;

    /// The directory of its volumes below `pods/<uid>/volumes`; none: see
    /// [`host_path`](VolumePlugin::host_path).
    fn directory(&self) -> Option<&'static str>;

    /// The path of a volume of a type without a directory.
    fn host_path(&self, _: &Volume) -> Option<PathBuf> {
        None
    }

    /// Whether containers may write to it.
    fn is_writable(&self) -> bool {
        false
    }

    /// Prepares the setup of a volume that [`can_support`](VolumePlugin::can_support) accepts.
    /// Called again on every sync of the pod.
    async fn prepare(&self, volume: &Volume, context: &Context<'_>) -> Result<SetUp, SetUpError>;
}

/// Why a volume cannot be set up: the text after `MountVolume.SetUp failed for volume "x" : `.
pub(super) type SetUpError = Box<dyn std::error::Error + Send + Sync>;

/// What sets up a volume below its location.
type SetUpWork = Box<dyn FnOnce(&Location) -> Result<(), SetUpError> + Send>;

/// The setup of a volume on disk.
pub(super) struct SetUp {
    pub(super) work: SetUpWork,
    /// When it must be set up again, e.g. to renew a token.
    pub(super) renew_at: Option<Timestamp>,
}

impl SetUp {
    pub(super) fn new(
        work: impl FnOnce(&Location) -> Result<(), SetUpError> + Send + 'static,
    ) -> SetUp {
        SetUp {
            work: Box::new(work),
            renew_at: None,
        }
    }
}

/// What volume types use.
pub(super) struct Context<'a> {
    pub(super) references: &'a References,
    pub(super) tokens: &'a Tokens,
    pub(super) pod: &'a Pod,
    /// The allocatable of the node.
    pub(super) node: Amounts,
    pub(super) now: Timestamp,
    /// A random number.
    pub(super) salt: u64,
}

impl Context<'_> {
    /// A tmpfs as large as the pod's memory limit allows.
    pub(super) fn memory(&self) -> Medium {
        Medium::Memory {
            size: empty_dir::memory_size(None, self.pod, &self.node),
        }
    }

    /// Writes files, all at once.
    pub(super) fn write_files(&self, medium: Medium, contents: Contents) -> SetUp {
        let (now, salt) = (self.now, self.salt);
        SetUp::new(move |location| {
            let done = location.write_files(&medium, &contents, now, salt);
            // A directory whose first setup failed is removed; an earlier state stays.
            if done.is_err() && !atomic::is_written(&location.dir) {
                empty_dir::tear_down(&location.dir, &location.marker)?;
            }
            done
        })
    }
}

/// The place of a volume on disk, and its ownership.
pub(super) struct Location {
    /// `pods/<uid>/volumes/<plugin>/<name>`.
    pub(super) dir: PathBuf,
    /// `pods/<uid>/plugins/kubernetes.io~empty-dir/<name>`: the directory is ready.
    pub(super) marker: PathBuf,
    pub(super) group: Option<Group>,
    /// Mount points of other volumes below this one.
    nested: Result<Vec<PathBuf>, NestedError>,
}

impl Location {
    pub(super) fn of(
        layout: &Layout,
        pod: &Pod,
        volume: &Volume,
        plugin: &dyn VolumePlugin,
    ) -> Location {
        let directory = plugin.directory().unwrap_or_default();
        Location {
            dir: layout.volume(pod.uid(), directory, &volume.name),
            marker: layout
                .plugins(pod.uid())
                .join(empty_dir::DIRECTORY)
                .join(&volume.name),
            group: Group::of(pod),
            nested: nested::mount_points(pod, &volume.name),
        }
    }

    fn write_files(
        &self,
        medium: &Medium,
        contents: &Contents,
        now: Timestamp,
        salt: u64,
    ) -> Result<(), SetUpError> {
        let nested = self.nested.as_ref().map_err(Clone::clone)?;
        // No marker is needed: written files show that the directory was ready.
        empty_dir::make(&self.dir, medium, atomic::is_written(&self.dir))?;
        nested::make(&self.dir, nested)?;

        let give = |dir: &Path| match &self.group {
            Some(group) => group.take_all(dir, Access::Read),
            None => Ok(()),
        };
        Ok(atomic::write(&self.dir, contents, now, salt, give)?)
    }
}
