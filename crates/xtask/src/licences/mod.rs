//! `cargo xtask licences`: checks the licences of all dependencies, and that none is banned.
//!
//! `cargo metadata` names every package of `Cargo.lock`; its licence is read ([`expression`]) and
//! compared with the accepted ones ([`policy`]). Known vulnerabilities are not checked: that needs
//! the advisory database.

mod expression;
mod policy;

use std::path::Path;

use crate::finding::{ChoreError, Finding};
use crate::metadata::{self, Package};

/// The licence of the workspace itself.
const OURS: &str = "Apache-2.0";

pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, ChoreError> {
    Ok(metadata::all(root)?
        .iter()
        .filter_map(check_package)
        .collect())
}

fn check_package(package: &Package) -> Option<Finding> {
    let place = format!("{} {}", package.name, package.version);
    if let Some(instead) = policy::ban(&package.name) {
        return Some(Finding::new(
            place,
            "is banned",
            format!("use {instead}; {}", who_wants(package)),
        ));
    }

    let wrong = wrong_with_licence(package)?;

    let remedy = match package.ours {
        true => "write `license.workspace = true` into its Cargo.toml".to_string(),
        false => {
            format!(
                "find another crate, or switch off the feature that needs it; {}",
                who_wants(package)
            )
        }
    };

    Some(Finding::new(place, wrong, remedy))
}

fn wrong_with_licence(package: &Package) -> Option<String> {
    let Some(licence) = &package.licence else {
        return Some(match &package.licence_file {
            Some(file) => format!("states no licence, only a file, {file}"),
            None => "states no licence".to_string(),
        });
    };

    if package.ours {
        return (licence != OURS)
            .then(|| format!("is ours and has the licence {licence}, not {OURS}"));
    }

    match expression::parse(licence) {
        Err(error) => Some(format!(
            "has a licence that cannot be read, `{licence}`: {error}"
        )),
        Ok(parsed) if policy::accepts(&parsed) => None,
        Ok(_) => Some(format!(
            "has the licence `{licence}`, which is not accepted"
        )),
    }
}

fn who_wants(package: &Package) -> String {
    format!(
        "`cargo tree --target all -i {}@{}` shows who wants it",
        package.name, package.version
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_judged_by_name_and_licence() {
        check("serde", Some("MIT OR Apache-2.0"), None);
        check(
            "readline",
            Some("GPL-3.0-only"),
            Some("has the licence `GPL-3.0-only`, which is not accepted"),
        );

        check(
            "odd",
            Some("MIT AND"),
            Some("has a licence that cannot be read, `MIT AND`: it ends where a licence is due"),
        );

        check("silent", None, Some("states no licence"));
        check("openssl-sys", Some("MIT"), Some("is banned"));
    }

    fn check(name: &str, licence: Option<&str>, wrong: Option<&str>) {
        let package = Package {
            name: name.to_string(),
            licence: licence.map(str::to_string),
            ..Package::default()
        };
        assert_eq!(
            check_package(&package)
                .map(|finding| finding.wrong)
                .as_deref(),
            wrong,
            "{name}"
        );
    }

    #[test]
    fn our_own_crates_have_our_licence() {
        let package = Package {
            name: "coracle-x".to_string(),
            licence: Some("MIT".to_string()),
            ours: true,
            ..Package::default()
        };
        assert_eq!(
            check_package(&package).unwrap().wrong,
            "is ours and has the licence MIT, not Apache-2.0"
        );
    }
}
