//! Volumes that an image declares (`VOLUME`): a folder per container at each path, filled with the
//! image's content at that path.
//!
//! They are stored beside the container's record and deleted with it, and mounted like volumes of
//! the container config. Where the config already mounts a volume at the path, none is created.

mod copy;

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use coracle_cri::v1::{ContainerConfig, Mount};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

use crate::config::text;
use crate::error::Error;
use crate::spec::{clean_path, has_mount_at};

/// A volume of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    /// Where the container sees it.
    target: String,
    /// Where it is on the host.
    source: PathBuf,
}

/// The volumes that a container needs for its image, in the container's folder.
pub(crate) fn for_image(
    volumes: &[String],
    config: &ContainerConfig,
    folder: &Path,
) -> Result<Vec<Volume>, Error> {
    // Different texts may denote the same path.
    let targets: BTreeMap<String, &String> = volumes
        .iter()
        .map(|path| (clean_path(path), path))
        .collect();
    if let Some(path) = targets.get("/") {
        return Err(Error::Invalid(format!(
            "the image declares VOLUME {path:?}, its root: declare a directory below it"
        )));
    }

    let targets = targets
        .into_keys()
        .filter(|target| !has_mount_at(config, target));

    let volume = |(number, target): (usize, String)| Volume {
        target,
        source: folder.join(FOLDER).join(number.to_string()),
    };

    Ok(targets.enumerate().map(volume).collect())
}

impl Volume {
    /// What is mounted for it.
    pub(crate) fn mount(&self) -> Mount {
        Mount {
            container_path: self.target.clone(),
            host_path: text(&self.source),
            ..Mount::default()
        }
    }

    /// Creates it with the image's content at its path. Links are resolved in the image.
    pub(crate) fn make(&self, rootfs: &Path) -> Result<(), Error> {
        let failed = |error: io::Error| Error::io("create image volume", &self.source)(error);
        let above = self.source.parent().unwrap_or(Path::new("/"));

        // Programs of an image may be setuid: no user of the host may reach them.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(above)
            .map_err(failed)?;

        DirBuilder::new()
            .mode(0o755)
            .create(&self.source)
            .map_err(failed)?;

        let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open =
            |path: &Path| open(path, folder, Mode::empty()).map_err(|errno| failed(errno.into()));
        let (root, to) = (open(rootfs)?, open(&self.source)?);

        let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&root, self.target.as_str(), folder, Mode::empty(), how) {
            Ok(from) => copy::content(&from, &to).map_err(failed),
            Err(Errno::NOENT) => copy::set_default_mode(&to).map_err(failed),
            Err(Errno::NOTDIR) => Err(Error::Invalid(format!(
                "the image declares VOLUME {:?}, which is not a directory in the image",
                self.target
            ))),
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

const FOLDER: &str = "volumes";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_its_volumes_where_the_container_has_none() {
        let check = |volumes: &[&str], mounts: &[&str], expected: Option<&[&str]>| {
            let volumes: Vec<String> = volumes.iter().map(|path| (*path).to_owned()).collect();
            let mount = |path: &&str| Mount {
                container_path: (*path).to_owned(),
                ..Mount::default()
            };

            let config = ContainerConfig {
                mounts: mounts.iter().map(mount).collect(),
                ..ContainerConfig::default()
            };
            let found = for_image(&volumes, &config, Path::new("/c")).ok();

            let target = |one: &Volume| one.target.clone();
            let targets = found
                .as_ref()
                .map(|found| found.iter().map(target).collect::<Vec<_>>());
            let expected =
                expected.map(|expected| expected.iter().map(ToString::to_string).collect());
            assert_eq!(targets, expected, "{volumes:?} {mounts:?}");

            for (number, volume) in found.unwrap_or_default().iter().enumerate() {
                assert_eq!(volume.mount().host_path, format!("/c/volumes/{number}"));
                assert!(!volume.mount().readonly);
            }
        };

        check(&[], &[], Some(&[]));
        check(&["/data"], &[], Some(&["/data"]));
        check(&["/data", "/data/", "//data/."], &[], Some(&["/data"]));
        check(
            &["data", "../log", "/a/../../b"],
            &[],
            Some(&["/b", "/data", "/log"]),
        );

        check(&["/data", "/log"], &["/data/"], Some(&["/log"]));
        check(&["/data/"], &["/x/../data"], Some(&[]));
        check(&["/data/sub"], &["/data"], Some(&["/data/sub"]));
        check(&["/data"], &["/data/sub"], Some(&["/data"]));

        for root in ["/", "", ".", "..", "/..", "a/.."] {
            check(&["/data", root], &[], None);
            check(&[root], &["/"], None);
        }
    }
}
