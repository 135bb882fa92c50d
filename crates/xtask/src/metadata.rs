//! The parts of `cargo metadata` that the chores need.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::finding::ChoreError;

/// One package of the workspace or below it.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The SPDX expression, where the package states one.
    pub(crate) licence: Option<String>,
    /// The file with the licence's text, for packages that state no expression.
    pub(crate) licence_file: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Whether the package is one of the workspace.
    pub(crate) ours: bool,
}

/// A dependency as the package declares it.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// For tests and benchmarks only.
    pub(crate) dev: bool,
}

/// The packages of the workspace alone. Needs neither network nor a current `Cargo.lock`.
pub(crate) fn workspace(root: &Path) -> Result<Vec<Package>, ChoreError> {
    ask(root, &["--no-deps", "--offline"])
}

/// Every package of `Cargo.lock`, for every platform.
pub(crate) fn all(root: &Path) -> Result<Vec<Package>, ChoreError> {
    ask(root, &["--locked"])
}

/// All that `cargo metadata` says of the packages for a target, with what they resolve to.
pub(crate) fn resolved(root: &Path, target: &str) -> Result<Value, ChoreError> {
    answer(root, &["--locked", "--filter-platform", target])
}

fn ask(root: &Path, flags: &[&str]) -> Result<Vec<Package>, ChoreError> {
    let answer = answer(root, flags)?;
    Ok(items(&answer, "packages").map(package).collect())
}

fn answer(root: &Path, flags: &[&str]) -> Result<Value, ChoreError> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1"])
        .args(flags)
        .current_dir(root)
        .output()
        .map_err(ChoreError::CargoStart)?;

    if !output.status.success() {
        return Err(ChoreError::Cargo {
            said: String::from_utf8_lossy(&output.stderr).trim().to_string(),
        });
    }

    serde_json::from_slice(&output.stdout).map_err(ChoreError::CargoAnswer)
}

fn package(value: &Value) -> Package {
    Package {
        name: text(value, "name").unwrap_or_default(),
        version: text(value, "version").unwrap_or_default(),
        licence: text(value, "license"),
        licence_file: text(value, "license_file"),
        dependencies: items(value, "dependencies").map(dependency).collect(),
        // A package from a registry or from git has a source; a path has none.
        ours: value.get("source").is_none_or(Value::is_null),
    }
}

fn dependency(value: &Value) -> Dependency {
    let dev = text(value, "kind").is_some_and(|kind| kind == "dev");
    Dependency {
        name: text(value, "name").unwrap_or_default(),
        dev,
    }
}

pub(crate) fn text(value: &Value, member: &str) -> Option<String> {
    value.get(member)?.as_str().map(str::to_string)
}

pub(crate) fn items<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(member)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}
