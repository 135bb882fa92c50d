//! Who a container's processes are. Names are looked up in the image's own user database.

use std::path::Path;

use coracle_cri::v1::{LinuxContainerSecurityContext, SupplementalGroupsPolicy};
use coracle_files::read;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::error::Error;

/// A user database longer than this is none.
const MOST_BYTES: u64 = 4 << 20;

/// A user, with all that the kernel and the program are told.
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

/// Reads a file of the image, which may be a link to anywhere: anywhere in the image.
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
    let wanted = if let Some(uid) = &security.run_as_user {
        number(uid.value)?.to_string()
    } else if security.run_as_username.is_empty() {
        image_user.to_owned()
    } else {
        security.run_as_username.clone()
    };
    // The image's group goes with the image's user only.
    let (name, group_name) = wanted.split_once(':').unwrap_or((wanted.as_str(), ""));
    let name = if name.is_empty() { "0" } else { name };
    let entry = find_user(passwd, name);
    let uid = match (&entry, name.parse()) {
        (Some(entry), _) => entry.uid,
        (None, Ok(uid)) => uid,
        (None, Err(_)) => return Err(Error::Invalid(format!("no user {name:?} in the image"))),
    };
    let gid = match (&security.run_as_group, group_name) {
        (Some(gid), _) => number(gid.value)?,
        (None, "") => entry.as_ref().map_or(0, |entry| entry.gid),
        (None, group_name) => find_group(group, group_name)
            .ok_or_else(|| Error::Invalid(format!("no group {group_name:?} in the image")))?,
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
    Ok(User { uid, gid, groups, home })
}

struct Entry {
    name: String,
    uid: u32,
    gid: u32,
    home: String,
}

/// By name, or by number.
fn find_user(passwd: &str, wanted: &str) -> Option<Entry> {
    let entries = passwd.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, ..] = fields.as_slice() else { return None };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        Some(Entry { name: (*name).to_owned(), uid, gid, home: (*home).to_owned() })
    });
    let entries: Vec<Entry> = entries.collect();
    let by_number = wanted.parse().ok();
    let position = entries
        .iter()
        .position(|entry| entry.name == wanted)
        .or_else(|| entries.iter().position(|entry| Some(entry.uid) == by_number))?;
    entries.into_iter().nth(position)
}

fn find_group(group: &str, wanted: &str) -> Option<u32> {
    let named = groups(group).find(|(name, _, _)| *name == wanted).map(|(_, gid, _)| gid);
    named.or_else(|| wanted.parse().ok())
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
        let (name, _, gid) = (fields.next()?, fields.next()?, fields.next()?.parse().ok()?);
        Some((name, gid, fields.next().unwrap_or_default()))
    })
}

fn number(number: i64) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::Invalid(format!("{number} is no user or group")))
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
        assert_eq!(decide(security, image, PASSWD, GROUP).ok(), expected, "{image:?}");
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
        let uid =
            LinuxContainerSecurityContext { run_as_user: Some(Int64Value { value: 33 }), ..none.clone() };
        check(&uid, "root:root", Some((33, 34, &[34, 50], "/srv")));
        let group =
            LinuxContainerSecurityContext { run_as_group: Some(Int64Value { value: 7 }), ..uid.clone() };
        check(&group, "", Some((33, 7, &[7, 50], "/srv")));
        let name = LinuxContainerSecurityContext { run_as_username: "web".to_owned(), ..none };
        check(&name, "", Some((33, 34, &[34, 50], "/srv")));
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
