//! Allowed dependencies between crates, as in `ARCHITECTURE.md`: crates depend only downward. The
//! table here is the rule; the page must show the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::metadata::{Dependency, Package};

pub(super) const PAGE: &str = "ARCHITECTURE.md";

/// Which other crates a crate may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayUse {
    Only(&'static [&'static str]),
    /// Any: the binary and the test kit.
    All,
}
use MayUse::{All, Only};

const CRATES: &[(&str, MayUse)] = &[
    ("base", Only(&[])),
    ("metrics", Only(&["base"])),
    ("api", Only(&[])),
    ("cel", Only(&["api"])),
    ("expressions", Only(&["base", "api", "cel"])),
    ("store", Only(&["base", "metrics"])),
    ("client", Only(&["base", "api", "metrics"])),
    ("kinds", Only(&["base", "api", "expressions"])),
    ("settings", Only(&["api"])),
    (
        "apiserver",
        Only(&[
            "base",
            "api",
            "cel",
            "expressions",
            "kinds",
            "store",
            "client",
            "metrics",
            "serving",
            "streams",
        ]),
    ),
    (
        "controllers",
        Only(&["base", "api", "client", "expressions"]),
    ),
    ("serving", Only(&["base", "api", "client", "metrics"])),
    ("scheduler", Only(&["api", "client", "metrics"])),
    ("cri", Only(&[])),
    ("cgroup", Only(&[])),
    ("netlink", Only(&[])),
    ("podnet", Only(&["base", "netlink"])),
    ("streams", Only(&["base"])),
    ("files", Only(&[])),
    ("supervisor", Only(&[])),
    ("echo", Only(&[])),
    (
        "runtime",
        Only(&[
            "api",
            "base",
            "cri",
            "cgroup",
            "podnet",
            "supervisor",
            "echo",
            "streams",
            "files",
        ]),
    ),
    (
        "network",
        Only(&["base", "api", "client", "netlink", "podnet"]),
    ),
    (
        "kubelet",
        Only(&[
            "base", "api", "client", "cri", "cgroup", "streams", "files", "metrics", "serving",
        ]),
    ),
    (
        "proxy",
        Only(&["base", "api", "client", "metrics", "netlink", "serving"]),
    ),
    (
        "dns",
        Only(&["base", "api", "client", "metrics", "serving"]),
    ),
    ("kubectl", Only(&["api", "client", "streams"])),
    ("simnode", Only(&["api", "client"])),
    ("coracle", All),
    ("xtask", Only(&[])),
    (FOR_TESTS, All),
];

/// The crate that others may use in tests and benchmarks only.
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

/// `coracle-api` is the crate `api`.
fn crate_of(package: &str) -> &str {
    package.strip_prefix("coracle-").unwrap_or(package)
}

fn check_package(package: &Package, ours: &BTreeSet<&str>) -> Vec<Finding> {
    let krate = crate_of(&package.name);
    let Some((_, may_use)) = CRATES.iter().find(|(name, _)| *name == krate) else {
        let remedy = format!(
            "add the new crate to {PAGE} with its reason, then to the table in xtask/src/tidy/dependencies.rs"
        );
        return vec![Finding::new(
            &package.name,
            format!("`{krate}` is missing in the crate table of {PAGE}"),
            remedy,
        )];
    };

    let used = package
        .dependencies
        .iter()
        .filter(|dependency| ours.contains(dependency.name.as_str()));

    used.filter(|dependency| !may(krate, *may_use, dependency))
        .map(|dependency| {
            let wrong = format!("`{krate}` may not use `{}`", crate_of(&dependency.name));
            Finding::new(
                &package.name,
                wrong,
                "move what both crates need to the lower one; see ARCHITECTURE.md",
            )
        })
        .collect()
}

fn may(krate: &str, may_use: MayUse, dependency: &Dependency) -> bool {
    let used = crate_of(&dependency.name);
    // Tests of a crate may enable features of the crate itself.
    if used == FOR_TESTS || used == krate {
        return dependency.dev;
    }
    match may_use {
        All => used != "xtask",
        Only(crates) => crates.contains(&used),
    }
}

/// The table of the page must be equal to the one above.
fn check_page(page: &str) -> Vec<Finding> {
    let mut shown = crates_of_page(page);
    let mut findings = Vec::new();

    let remedy = "make the page and the table in xtask/src/tidy/dependencies.rs equal";
    for (krate, may_use) in CRATES {
        let expected: BTreeSet<&str> = match may_use {
            All => ["all"].into(),
            Only(crates) => crates.iter().copied().collect(),
        };

        match shown.remove(krate) {
            None => findings.push(Finding::new(
                PAGE,
                format!("crate `{krate}` is missing"),
                remedy,
            )),
            Some(uses) if uses != expected => {
                let wrong =
                    format!("says that `{krate}` may use {uses:?}, xtask says {expected:?}");
                findings.push(Finding::new(PAGE, wrong, remedy));
            }
            Some(_) => {}
        }
    }

    findings.extend(
        shown.into_keys().map(|krate| {
            Finding::new(PAGE, format!("crate `{krate}` is missing in xtask"), remedy)
        }),
    );

    findings
}

/// The rows under "Crates": the crate in the first cell, what it may use in the third.
fn crates_of_page(page: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    page.lines()
        .skip_while(|line| *line != "## Crates")
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let krate = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
            let uses = match *cells.get(3)? {
                "all" => ["all"].into(),
                // Every second piece is between backquotes.
                named => named.split('`').skip(1).step_by(2).collect(),
            };
            Some((krate, uses))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_use_only_lower_crates() {
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
    fn the_test_kit_is_for_tests_only() {
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

        let workspace = CRATES
            .iter()
            .map(|(krate, _)| format!("coracle-{krate}"))
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
    fn a_crate_missing_in_the_table_is_found() {
        let package = Package {
            name: "coracle-utils".to_string(),
            ..Package::default()
        };
        let found = check_package(&package, &BTreeSet::new());
        assert_eq!(
            found[0].wrong,
            "`utils` is missing in the crate table of ARCHITECTURE.md"
        );
    }

    #[test]
    fn rows_of_the_page_are_read() {
        let page = "# X\n| `no` | row | – |\n## Crates\n| crate | what | may use |\n|---|---|---|\n\
            | `api` | Objects. | – | yes |\n| `runtime` | CRI. | `cri`, `supervisor`'s protocol | no |\n\
            | `coracle` | Binary. | all | yes |\n## Next\n| `other` | x | `y` |\n";
        let crates = crates_of_page(page);
        assert_eq!(
            crates.keys().copied().collect::<Vec<_>>(),
            ["api", "coracle", "runtime"]
        );
        assert!(crates["api"].is_empty());
        assert_eq!(crates["runtime"], ["cri", "supervisor"].into());
        assert_eq!(crates["coracle"], ["all"].into());
    }
}
