//! Links to this program that are called as a program of upstream: it behaves as that one.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The programs whose name is a command.
const PROGRAMS: [&str; 6] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubelet",
];

/// The name of the program that a command line calls, without its folder.
pub(crate) fn called(arguments: &[OsString]) -> Option<&'static str> {
    let name = Path::new(arguments.first()?).file_name()?;
    PROGRAMS
        .into_iter()
        .find(|program| OsStr::new(program) == name)
}

/// The command line with the name of a link as the command.
pub(crate) fn command_line(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if let Some(program) = called(&arguments) {
        arguments.insert(1, program.into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_link_is_the_command() {
        let check = |given: &[&str], expected: &[&str]| {
            let given = given.iter().map(OsString::from).collect();
            assert_eq!(command_line(given), expected);
        };
        check(
            &["/opt/bin/kube-apiserver", "--v=2"],
            &["/opt/bin/kube-apiserver", "kube-apiserver", "--v=2"],
        );
        check(&["etcd"], &["etcd", "etcd"]);
        check(&["kubelet", "-v4"], &["kubelet", "kubelet", "-v4"]);
        check(&["./coracle", "etcd"], &["./coracle", "etcd"]);
        check(&["kube-apiserver-1.36"], &["kube-apiserver-1.36"]);
        check(&[], &[]);
    }
}
