//! Who may depend on whom: the rooms of `ARCHITECTURE.md`, which depend only downward.
//!
//! The table here is the rule; the page shows it to people, and must show the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::metadata::{Dependency, Package};

pub(super) const PAGE: &str = "ARCHITECTURE.md";

/// What a room may use of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayUse {
    Only(&'static [&'static str]),
    /// The assemblies: the binary, and the kit for tests.
    All,
}
use MayUse::{All, Only};

const ROOMS: &[(&str, MayUse)] = &[
    ("api", Only(&[])),
    ("store", Only(&[])),
    ("client", Only(&["api"])),
    ("kinds", Only(&["api"])),
    ("apiserver", Only(&["api", "kinds", "store", "client"])),
    ("controllers", Only(&["api", "client"])),
    ("scheduler", Only(&["api", "client"])),
    ("cri", Only(&[])),
    ("cgroup", Only(&[])),
    ("podnet", Only(&[])),
    ("streams", Only(&[])),
    ("files", Only(&[])),
    ("supervisor", Only(&[])),
    ("echo", Only(&[])),
    (
        "runtime",
        Only(&[
            "cri",
            "cgroup",
            "podnet",
            "supervisor",
            "echo",
            "streams",
            "files",
        ]),
    ),
    ("network", Only(&["api", "client"])),
    (
        "kubelet",
        Only(&["api", "client", "cri", "cgroup", "streams", "files"]),
    ),
    ("proxy", Only(&["api", "client"])),
    ("dns", Only(&["api", "client"])),
    ("kubectl", Only(&["api", "client", "streams"])),
    ("simnode", Only(&["api", "client"])),
    ("coracle", All),
    ("xtask", Only(&[])),
    (FOR_TESTS, All),
];

/// The room that others may use in their tests and benchmarks, and nowhere else.
const FOR_TESTS: &str = "testkit";

pub(super) fn check(packages: &[Package], page: &str) -> Vec<Finding> {
    let ours: BTreeSet<&str> = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let mut findings: Vec<Finding> = packages
        .iter()
        .flat_map(|package| check_package(package, &ours))
        .collect();
    findings.extend(check_page(page));
    findings
}

/// `coracle-api` is the room `api`.
fn room_of(package: &str) -> &str {
    package.strip_prefix("coracle-").unwrap_or(package)
}

fn check_package(package: &Package, ours: &BTreeSet<&str>) -> Vec<Finding> {
    let room = room_of(&package.name);
    let Some((_, may_use)) = ROOMS.iter().find(|(name, _)| *name == room) else {
        let remedy = format!(
            "a new room needs a reason of its own: write it into {PAGE}, then into the table of xtask"
        );
        return vec![Finding::new(
            &package.name,
            format!("`{room}` is no room of {PAGE}"),
            remedy,
        )];
    };

    let used = package
        .dependencies
        .iter()
        .filter(|dependency| ours.contains(dependency.name.as_str()));

    used.filter(|dependency| !may(room, *may_use, dependency))
        .map(|dependency| {
            let wrong = format!("`{room}` may not use `{}`", room_of(&dependency.name));
            Finding::new(
                &package.name,
                wrong,
                "what two rooms need belongs to the lower one; the rooms are in ARCHITECTURE.md",
            )
        })
        .collect()
}

fn may(room: &str, may_use: MayUse, dependency: &Dependency) -> bool {
    let used = room_of(&dependency.name);
    // A room's tests may switch on features of the room itself.
    if used == FOR_TESTS || used == room {
        return dependency.dev;
    }
    match may_use {
        All => used != "xtask",
        Only(rooms) => rooms.contains(&used),
    }
}

/// The page's table must say what the table above says.
fn check_page(page: &str) -> Vec<Finding> {
    let mut shown = rooms_of_page(page);
    let mut findings = Vec::new();

    let remedy = "make the page and the table of xtask say the same";
    for (room, may_use) in ROOMS {
        let expected: BTreeSet<&str> = match may_use {
            All => ["all"].into(),
            Only(rooms) => rooms.iter().copied().collect(),
        };

        match shown.remove(room) {
            None => findings.push(Finding::new(
                PAGE,
                format!("does not show the room `{room}`"),
                remedy,
            )),
            Some(uses) if uses != expected => {
                let wrong = format!("says that `{room}` may use {uses:?}, xtask says {expected:?}");
                findings.push(Finding::new(PAGE, wrong, remedy));
            }
            Some(_) => {}
        }
    }

    findings.extend(
        shown
            .into_keys()
            .map(|room| Finding::new(PAGE, format!("xtask does not know `{room}`"), remedy)),
    );

    findings
}

/// The rows under "Crates": the crate in the first cell, what it may use in the third.
fn rooms_of_page(page: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    page.lines()
        .skip_while(|line| *line != "## Crates")
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let room = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
            let uses = match *cells.get(3)? {
                "all" => ["all"].into(),
                // Every second piece stands between backquotes.
                named => named.split('`').skip(1).step_by(2).collect(),
            };
            Some((room, uses))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_use_only_what_lies_below_them() {
        test("coracle-apiserver", "coracle-store", false, None);
        test(
            "coracle-store",
            "coracle-api",
            false,
            Some("`store` may not use `api`"),
        );

        test(
            "coracle-kubelet",
            "coracle-runtime",
            true,
            Some("`kubelet` may not use `runtime`"),
        );

        test("coracle", "coracle-kubelet", false, None);
        test("coracle-store", "serde", false, None);
    }

    #[test]
    fn the_kit_for_tests_is_for_tests() {
        test("coracle-client", "coracle-testkit", true, None);
        test(
            "coracle",
            "coracle-testkit",
            false,
            Some("`coracle` may not use `testkit`"),
        );

        test("coracle-store", "coracle-store", true, None);
        test(
            "coracle",
            "xtask",
            false,
            Some("`coracle` may not use `xtask`"),
        );
    }

    fn test(package: &str, uses: &str, dev: bool, wrong: Option<&str>) {
        let dependencies = vec![Dependency {
            name: uses.to_string(),
            dev,
        }];

        let package = Package {
            name: package.to_string(),
            dependencies,
            ..Package::default()
        };

        let workspace = ROOMS
            .iter()
            .map(|(room, _)| format!("coracle-{room}"))
            .chain(["coracle".into(), "xtask".into()]);
        let workspace: Vec<String> = workspace.collect();

        let found = check_package(&package, &workspace.iter().map(String::as_str).collect());
        assert_eq!(
            found.first().map(|finding| finding.wrong.as_str()),
            wrong,
            "{} uses {uses}",
            package.name
        );
    }

    #[test]
    fn a_crate_that_is_no_room_is_found() {
        let package = Package {
            name: "coracle-utils".to_string(),
            ..Package::default()
        };
        let found = check_package(&package, &BTreeSet::new());
        assert_eq!(found[0].wrong, "`utils` is no room of ARCHITECTURE.md");
    }

    #[test]
    fn rows_of_the_page_are_read() {
        let page = "# X\n| `no` | row | – |\n## Crates\n| crate | what | may use |\n|---|---|---|\n\
            | `api` | Objects. | – | yes |\n| `runtime` | CRI. | `cri`, `supervisor`'s protocol | no |\n\
            | `coracle` | Binary. | all | yes |\n## Next\n| `other` | x | `y` |\n";
        let rooms = rooms_of_page(page);
        assert_eq!(
            rooms.keys().copied().collect::<Vec<_>>(),
            ["api", "coracle", "runtime"]
        );
        assert!(rooms["api"].is_empty());
        assert_eq!(rooms["runtime"], ["cri", "supervisor"].into());
        assert_eq!(rooms["coracle"], ["all"].into());
    }
}
