//! The file with the DNS servers that pods use for names outside of the cluster.
//!
//! Where a resolver of the host listens on loopback, as systemd-resolved does, `/etc/resolv.conf`
//! names only that: a pod would ask itself, and so would the cluster DNS, without an end. Such
//! resolvers write another file with the servers they ask.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::{fs, io};

const USUAL: &str = "/etc/resolv.conf";

/// Files of resolvers on loopback, with the servers they ask: systemd-resolved, NetworkManager.
const OF_RESOLVERS: [&str; 2] = [
    "/run/systemd/resolve/resolv.conf",
    "/run/NetworkManager/no-stub-resolv.conf",
];

/// The file to use: the one that is given, or the first that names servers which pods reach. Warns
/// if there is none.
pub(crate) fn choose(given: Option<&Path>) -> PathBuf {
    let (file, warning) = decide(given, |file| fs::read_to_string(file));
    if let Some(warning) = warning {
        tracing::warn!(
            file = %file.display(),
            "{warning}; pods cannot resolve names outside of the cluster; set --resolv-conf to a file with other servers"
        );
    }
    file
}

fn decide(
    given: Option<&Path>,
    read: impl Fn(&Path) -> io::Result<String>,
) -> (PathBuf, Option<&'static str>) {
    let file = given.unwrap_or(Path::new(USUAL));
    let warning = match read(file).map(|text| servers(&text)) {
        Ok(Servers::Usable) => return (file.to_owned(), None),
        Ok(Servers::OnLoopback) => "all DNS servers in the file are on loopback addresses",
        // Perhaps on purpose: a machine without a network.
        Ok(Servers::None) => return (file.to_owned(), None),
        Err(_) => "cannot read the file with the DNS servers",
    };

    let others = OF_RESOLVERS.iter().map(Path::new);
    let found = others
        .filter(|_| given.is_none())
        .find(|other| matches!(read(other).map(|text| servers(&text)), Ok(Servers::Usable)));

    match found {
        Some(other) => (other.to_owned(), None),
        None => (file.to_owned(), Some(warning)),
    }
}

enum Servers {
    Usable,
    OnLoopback,
    None,
}

/// What the `nameserver` lines of a file name.
fn servers(text: &str) -> Servers {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next()?.parse::<IpAddr>().ok())?
    };
    let all: Vec<IpAddr> = text.lines().filter_map(address).collect();
    match all.iter().any(|address| !address.is_loopback()) {
        true => Servers::Usable,
        false if all.is_empty() => Servers::None,
        false => Servers::OnLoopback,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_whose_servers_pods_reach_is_used() {
        let check = |given: Option<&str>, files: &[(&str, &str)], expected: &str, warns: bool| {
            let read = |file: &Path| {
                let found = files.iter().find(|(name, _)| Path::new(name) == file);
                found
                    .map(|(_, text)| (*text).to_owned())
                    .ok_or(io::ErrorKind::NotFound.into())
            };
            let (file, warning) = decide(given.map(Path::new), read);
            assert_eq!(
                (file.as_path(), warning.is_some()),
                (Path::new(expected), warns),
                "{given:?} {files:?}"
            );
        };

        let good = "search example.org\nnameserver 192.0.2.1\n";
        let stub = "# by systemd-resolved\nnameserver 127.0.0.53\noptions edns0 trust-ad\n";
        let [resolved, manager] = OF_RESOLVERS;

        check(None, &[(USUAL, good), (resolved, good)], USUAL, false);
        check(None, &[(USUAL, stub), (resolved, good)], resolved, false);
        check(None, &[(USUAL, stub), (manager, good)], manager, false);
        check(
            None,
            &[(USUAL, stub), (resolved, stub), (manager, good)],
            manager,
            false,
        );
        check(None, &[(USUAL, "nameserver ::1\n")], USUAL, true);
        check(None, &[(USUAL, "")], USUAL, false);
        check(None, &[], USUAL, true);
        check(
            None,
            &[(USUAL, "nameserver 127.0.0.1\nnameserver fd00::1\n")],
            USUAL,
            false,
        );
        check(Some("/x"), &[("/x", good), (USUAL, stub)], "/x", false);
        check(Some("/x"), &[("/x", stub), (resolved, good)], "/x", true);
    }
}
