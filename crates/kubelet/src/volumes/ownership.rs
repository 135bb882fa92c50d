//! Ownership of volumes (`fsGroup`).

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use coracle_files::{WalkEntry, open_folder, walk};
use k8s_openapi::api::core::v1::{Container, Pod};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, chmodat, chownat, fstat};

use crate::pod::{PodView as _, of_ephemeral};

/// New files in the directory get its group.
const SET_GROUP: u32 = 0o2000;
/// Permission to enter a directory.
const ENTER: u32 = 0o110;

/// The group's permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// The group that owns a pod's volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    id: u32,
}

impl Group {
    /// `securityContext.fsGroup`. `fsGroupChangePolicy` does not apply to the supported volume
    /// types: they are created with the pod and owned by the group from the start.
    pub(super) fn of(pod: &Pod) -> Option<Group> {
        let context = pod.pod_spec().security_context.as_ref()?;
        u32::try_from(context.fs_group?).ok().map(|id| Group { id })
    }

    /// Sets the group of a directory and everything in it. Files whose group cannot be set are
    /// skipped, as upstream does.
    pub(super) fn take_all(&self, root: &Path, access: Access) -> io::Result<()> {
        let top = open_folder(root)?;
        walk(top.try_clone()?, &mut |found: &WalkEntry<'_>| {
            let taken = found.locate().and_then(|located| match located {
                Some(located) => self.take(&located, found.about.st_mode, access),
                None => Ok(()),
            });

            if let Err(error) = taken {
                let name = found.name.to_string_lossy();
                tracing::warn!(volume = %root.display(), %name, %error, "cannot set the fsGroup of a file");
            }

            Ok(())
        })?;

        let mode = fstat(&top)?.st_mode;
        if let Err(error) = self.take(&top, mode, access) {
            tracing::warn!(volume = %root.display(), %error, "cannot set the fsGroup of a volume");
        }

        Ok(())
    }

    /// Sets the group of an open file, which may be open with `O_PATH`.
    fn take(&self, opened: &OwnedFd, mode: u32, access: Access) -> io::Result<()> {
        chownat(
            opened,
            "",
            None,
            Some(Gid::from_raw(self.id)),
            AtFlags::EMPTY_PATH,
        )?;

        let kind = FileType::from_raw_mode(mode);

        // The mode of a link has no meaning.
        if kind.is_symlink() {
            return Ok(());
        }

        let read_or_write = if access == Access::Write {
            0o660
        } else {
            0o440
        };

        let folder = if kind.is_dir() { ENTER | SET_GROUP } else { 0 };
        let mode = Mode::from_raw_mode(mode & 0o7777 | read_or_write | folder);
        let path = format!("/proc/self/fd/{}", opened.as_raw_fd());

        Ok(chmodat(CWD, path, mode, AtFlags::empty())?)
    }
}

/// The user that all containers run as, if it is the same: it owns the pod's tokens.
pub(super) fn only_user(pod: &Pod) -> Option<u32> {
    let of_pod = pod
        .pod_spec()
        .security_context
        .as_ref()
        .and_then(|context| context.run_as_user);

    let user = |container: &Container| {
        let own = container
            .security_context
            .as_ref()
            .and_then(|context| context.run_as_user);
        own.or(of_pod)
    };

    let lasting = pod
        .lasting_containers()
        .map(|(_, container)| user(container));
    let mut users = lasting.chain(
        pod.ephemeral_containers()
            .iter()
            .map(|container| user(&of_ephemeral(container))),
    );
    let first = users.next()??;

    users
        .all(|user| user == Some(first))
        .then(|| u32::try_from(first).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;

    #[test]
    fn the_user_must_be_the_same_in_all_containers() {
        let check = |spec: &str, expected: Option<u32>| {
            let pod: Pod = serde_json::from_str(&format!(r#"{{"spec":{spec}}}"#)).unwrap();
            assert_eq!(only_user(&pod), expected, "{spec}");
        };

        check(r#"{"containers":[{"name":"a"}]}"#, None);
        check(
            r#"{"securityContext":{"runAsUser":7},"containers":[{"name":"a"},{"name":"b"}]}"#,
            Some(7),
        );

        check(
            r#"{"securityContext":{"runAsUser":7},"containers":[{"name":"a"},{"name":"b","securityContext":{"runAsUser":8}}]}"#,
            None,
        );

        check(
            r#"{"initContainers":[{"name":"i"}],"containers":[{"name":"a","securityContext":{"runAsUser":8}}]}"#,
            None,
        );

        check(
            r#"{"containers":[{"name":"a","securityContext":{"runAsUser":0}}]}"#,
            Some(0),
        );
    }

    #[test]
    fn the_group_gets_its_permissions_and_directories_are_setgid() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mode = |name: &str, bits| {
            fs::set_permissions(at(name), fs::Permissions::from_mode(bits)).unwrap()
        };
        fs::create_dir(at("dir")).unwrap();

        mode("dir", 0o700);
        fs::write(at("dir/file"), "").unwrap();
        mode("dir/file", 0o600);
        std::os::unix::fs::symlink("dir/file", at("link")).unwrap();

        let group = Group { id: 1234 };
        let check = |access, dir, file| {
            group.take_all(folder.path(), access).unwrap();
            let found = |name: &str| fs::symlink_metadata(at(name)).unwrap();
            assert_eq!(
                (found("dir").mode() & 0o7777, found("dir").gid()),
                (dir, 1234)
            );

            assert_eq!(
                (found("dir/file").mode() & 0o7777, found("dir/file").gid()),
                (file, 1234)
            );

            assert_eq!(found("link").gid(), 1234);
        };

        check(Access::Read, 0o2750, 0o640);
        check(Access::Write, 0o2770, 0o660);
    }
}
