//! User, group and supplementary groups of a container's processes. Names are looked up in the
//! image's `/etc/passwd` and `/etc/group`.

use std::path::Path;

use coracle_cri::v1::{LinuxContainerSecurityContext, SupplementalGroupsPolicy};
use coracle_files::read;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::error::Error;

/// Only so much of a user database is read.
const MOST_BYTES: u64 = 4 << 20;

/// The largest uid or gid, as upstream validates `runAsUser`.
const LARGEST: u32 = i32::MAX.cast_unsigned();

/// A resolved user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) home: String,
}

pub(super) fn resolve(
    rootfs: &Path,
    security: &LinuxContainerSecurityContext,
    image_user: &str,
) -> Result<User, Error> {
    let (passwd, group) = (read(rootfs, "/etc/passwd"), read(rootfs, "/etc/group"));
    decide(security, image_user, &passwd, &group)
}

/// Reads a file of the image; links are resolved inside the image.
fn read(rootfs: &Path, path: &str) -> String {
    let open = || -> std::io::Result<String> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(rootfs, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let found = rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)?;
        let bytes = read::head(read::regular(&found)?, MOST_BYTES)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    // An image without a user database has only numbers.
    open().unwrap_or_default()
}

fn decide(
    security: &LinuxContainerSecurityContext,
    image_user: &str,
    passwd: &str,
    group: &str,
) -> Result<User, Error> {
    let (user, group_name) = requested_user(security, image_user)?;
    let entry = find_user(passwd, &user);
    let uid = match (&entry, &user) {
        (Some(entry), _) => entry.uid,
        (None, UserRef::Id(uid)) => *uid,
        (None, UserRef::Name(name)) => {
            return Err(Error::Invalid(format!(
                "no user {name:?} in the image's /etc/passwd"
            )));
        }
    };

    let gid = match (&security.run_as_group, group_name) {
        (Some(gid), _) => number(gid.value)?,
        (None, "") => entry.as_ref().map_or(0, |entry| entry.gid),
        (None, group_name) => match UserRef::parse(group_name)? {
            UserRef::Id(gid) => gid,
            UserRef::Name(name) => find_group(group, &name).ok_or_else(|| {
                Error::Invalid(format!("no group {name:?} in the image's /etc/group"))
            })?,
        },
    };

    let mut groups = vec![gid];
    if security.supplemental_groups_policy() == SupplementalGroupsPolicy::Merge
        && let Some(entry) = &entry
    {
        groups.extend(memberships(group, &entry.name));
    }

    for group in &security.supplemental_groups {
        groups.push(number(*group)?);
    }

    let mut seen = std::collections::BTreeSet::new();
    groups.retain(|group| seen.insert(*group));
    let home = entry.map_or_else(|| "/".to_owned(), |entry| entry.home);

    Ok(User {
        uid,
        gid,
        groups,
        home,
    })
}

/// A requested user or group. Digits are always a number: otherwise an image with a user *named*
/// `1000` and uid 0 could make a pod that must not run as root do so.
#[derive(Clone, Debug, PartialEq, Eq)]
enum UserRef {
    Id(u32),
    Name(String),
}

impl UserRef {
    fn parse(text: &str) -> Result<UserRef, Error> {
        match text.parse::<i128>() {
            Ok(id) => checked(id)
                .map(UserRef::Id)
                .ok_or_else(|| out_of_range(text)),
            // Too many digits for any number.
            Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) => Err(out_of_range(text)),
            Err(_) => Ok(UserRef::Name(text.to_owned())),
        }
    }
}

/// The requested user, and the group that the image gives with its user; empty if none.
fn requested_user<'a>(
    security: &LinuxContainerSecurityContext,
    image_user: &'a str,
) -> Result<(UserRef, &'a str), Error> {
    if let Some(uid) = &security.run_as_user {
        return Ok((UserRef::Id(number(uid.value)?), ""));
    }
    if !security.run_as_username.is_empty() {
        return Ok((UserRef::parse(&security.run_as_username)?, ""));
    }

    let (user, group) = image_user.split_once(':').unwrap_or((image_user, ""));
    let user = if user.is_empty() {
        UserRef::Id(0)
    } else {
        UserRef::parse(user)?
    };

    Ok((user, group))
}

struct Entry {
    name: String,
    uid: u32,
    gid: u32,
    home: String,
}

/// The first entry of that name, or of that number.
fn find_user(passwd: &str, wanted: &UserRef) -> Option<Entry> {
    let mut entries = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, uid, gid) = (
            fields.next()?,
            fields.next()?,
            fields.next()?,
            fields.next()?,
        );

        let home = fields.nth(1)?;
        let (uid, gid) = (checked(uid.parse().ok()?)?, checked(gid.parse().ok()?)?);

        Some(Entry {
            name: name.to_owned(),
            uid,
            gid,
            home: home.to_owned(),
        })
    });

    entries.find(|entry| match wanted {
        UserRef::Id(uid) => entry.uid == *uid,
        UserRef::Name(name) => entry.name == *name,
    })
}

fn find_group(group: &str, wanted: &str) -> Option<u32> {
    groups(group)
        .find(|(name, _, _)| *name == wanted)
        .map(|(_, gid, _)| gid)
}

/// The groups that name a user as their member.
fn memberships<'a>(group: &'a str, user: &'a str) -> impl Iterator<Item = u32> + 'a {
    groups(group)
        .filter(move |(_, _, members)| members.split(',').any(|member| member == user))
        .map(|(_, gid, _)| gid)
}

fn groups(group: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    group.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, gid) = (fields.next()?, fields.next()?, fields.next()?);
        let gid = checked(gid.parse().ok()?)?;
        Some((name, gid, fields.next().unwrap_or_default()))
    })
}

fn number(number: i64) -> Result<u32, Error> {
    checked(number.into()).ok_or_else(|| out_of_range(number))
}

/// A valid uid or gid. Larger ones are refused by upstream too; the largest u32 (-1) makes the
/// kernel keep the current ID, which is root.
fn checked(number: i128) -> Option<u32> {
    u32::try_from(number).ok().filter(|id| *id <= LARGEST)
}

fn out_of_range(id: impl std::fmt::Display) -> Error {
    Error::Invalid(format!(
        "user or group {id} is out of range: it must be 0 to {LARGEST}"
    ))
}

#[cfg(test)]
mod tests {
    use coracle_cri::v1::Int64Value;

    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nweb:x:33:34:web:/srv:/bin/false\n";
    const GROUP: &str = "root:x:0:\nweb:x:34:\nlogs:x:50:web,other\n";

    fn check(
        security: &LinuxContainerSecurityContext,
        image: &str,
        expected: Option<(u32, u32, &[u32], &str)>,
    ) {
        let expected = expected.map(|(uid, gid, groups, home)| User {
            uid,
            gid,
            groups: groups.to_vec(),
            home: home.to_owned(),
        });
        assert_eq!(
            decide(security, image, PASSWD, GROUP).ok(),
            expected,
            "{image:?}"
        );
    }

    #[test]
    fn a_user_is_named_by_the_container_or_by_the_image() {
        let none = LinuxContainerSecurityContext::default();
        check(&none, "", Some((0, 0, &[0], "/root")));
        check(&none, "web", Some((33, 34, &[34, 50], "/srv")));
        check(&none, "33", Some((33, 34, &[34, 50], "/srv")));
        check(&none, "web:logs", Some((33, 50, &[50], "/srv")));
        check(&none, "1000:1001", Some((1000, 1001, &[1001], "/")));
        check(&none, "nobody-there", None);

        let uid = LinuxContainerSecurityContext {
            run_as_user: Some(Int64Value { value: 33 }),
            ..none.clone()
        };
        check(&uid, "root:root", Some((33, 34, &[34, 50], "/srv")));

        let group = LinuxContainerSecurityContext {
            run_as_group: Some(Int64Value { value: 7 }),
            ..uid.clone()
        };
        check(&group, "", Some((33, 7, &[7, 50], "/srv")));

        let name = LinuxContainerSecurityContext {
            run_as_username: "web".to_owned(),
            ..none
        };
        check(&name, "", Some((33, 34, &[34, 50], "/srv")));
    }

    #[test]
    fn numbers_match_by_number_and_never_by_name() {
        let passwd =
            "1000:x:0:0::/root:/bin/sh\n+7:x:0:0::/root:/bin/sh\nweb:x:33:34::/srv:/bin/sh\n";
        let group = "34:x:0:\nweb:x:34:\nwheel:x:0:1000\n";
        let check = |security: &LinuxContainerSecurityContext,
                     image: &str,
                     expected: Option<(u32, u32)>| {
            let made = decide(security, image, passwd, group).ok();
            assert_eq!(
                made.as_ref().map(|user| (user.uid, user.gid)),
                expected,
                "{image:?}"
            );

            assert!(
                made.is_none_or(|user| !user.groups.contains(&0) || user.gid == 0),
                "{image:?}"
            );
        };

        let of_image = LinuxContainerSecurityContext::default();
        check(&of_image, "1000", Some((1000, 0)));
        check(&of_image, "01000", Some((1000, 0)));
        check(&of_image, "+7", Some((7, 0)));
        check(&of_image, "1000:34", Some((1000, 34)));
        check(&of_image, "web:34", Some((33, 34)));
        check(&of_image, "web:web", Some((33, 34)));

        check(&of_image, "-1", None);
        check(&of_image, "4294967296", None);
        check(&of_image, "4294967295", None);
        check(&of_image, "1000:4294967295", None);
        check(&of_image, "2147483648", None);
        check(&of_image, "2147483647", Some((2_147_483_647, 0)));
        check(&of_image, &"9".repeat(60), None);

        // Entries with such numbers are ignored, so that none of them leads to root.
        let last = "last:x:4294967295:4294967295::/:/bin/sh\nseven:x:7:4294967295::/:/bin/sh\n";
        let group = "seven:x:4294967295:seven\n";
        assert!(decide(&of_image, "last", last, group).is_err());
        assert!(decide(&of_image, "seven:seven", last, group).is_err());

        let seven = decide(&of_image, "7", last, group).unwrap();
        assert_eq!((seven.uid, seven.gid, seven.groups), (7, 0, vec![0]));

        let by_number = LinuxContainerSecurityContext {
            run_as_user: Some(Int64Value { value: 1000 }),
            run_as_group: Some(Int64Value { value: 34 }),
            ..LinuxContainerSecurityContext::default()
        };
        check(&by_number, "root", Some((1000, 34)));

        let by_name = LinuxContainerSecurityContext {
            run_as_username: "1000".to_owned(),
            run_as_group: Some(Int64Value { value: 34 }),
            ..LinuxContainerSecurityContext::default()
        };
        check(&by_name, "", Some((1000, 34)));
    }

    #[test]
    fn groups_of_the_image_are_left_out_where_that_is_asked_for() {
        let mut security = LinuxContainerSecurityContext {
            supplemental_groups: vec![60, 34],
            ..LinuxContainerSecurityContext::default()
        };
        check(&security, "web", Some((33, 34, &[34, 50, 60], "/srv")));
        security.set_supplemental_groups_policy(SupplementalGroupsPolicy::Strict);
        check(&security, "web", Some((33, 34, &[34, 60], "/srv")));
    }
}
