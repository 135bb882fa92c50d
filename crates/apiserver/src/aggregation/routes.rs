//! Which paths lead to which remote server.

use std::sync::Arc;

use super::Remote;

/// The remote groups and versions.
#[derive(Default)]
pub(super) struct Routes(Vec<Arc<Remote>>);

impl Routes {
    pub(super) fn new(remotes: Vec<Arc<Remote>>) -> Routes {
        Routes(remotes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn all(&self) -> &[Arc<Remote>] {
        &self.0
    }

    pub(super) fn of_path(&self, path: &str) -> Option<&Arc<Remote>> {
        let (group, version) = group_version(path)?;
        self.0
            .iter()
            .find(|remote| remote.group == group && remote.version == version)
    }
}

/// The group and version that a path is below; the paths of groups are this server's own.
fn group_version(path: &str) -> Option<(&str, &str)> {
    let mut parts = path.strip_prefix('/')?.split('/');
    match parts.next()? {
        "api" => Some(("", parts.next()?)),
        "apis" => {
            let group = parts.next().filter(|group| !group.is_empty())?;
            Some((group, parts.next()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_a_group_and_version_or_none() {
        let check = |path, expected| assert_eq!(group_version(path), expected, "{path}");
        check("/apis/a.example/v1", Some(("a.example", "v1")));
        check("/apis/a.example/v1/", Some(("a.example", "v1")));
        check("/apis/a.example/v1/x/y", Some(("a.example", "v1")));
        check("/api/v1/pods", Some(("", "v1")));
        check("/apis/a.example", None);
        check("/apis//v1", None);
        check("//apis/a.example/v1", None);
        check("/version", None);
        check("", None);
    }
}
