//! `cargo xtask sbom` and `cargo xtask notices`: what a released program consists of.
//!
//! The packages are those that `cargo metadata` resolves for the target, followed from the program
//! along its normal dependencies: neither what tests nor what build scripts use. Both texts depend
//! on `Cargo.lock` only, so that the same source gives the same release.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::finding::ChoreError;
use crate::metadata;

/// The program's package.
const PROGRAM: &str = "coracle";

/// The bill of materials in CycloneDX's JSON.
pub(crate) fn sbom(root: &Path, target: &str) -> Result<String, ChoreError> {
    let metadata = metadata::resolved(root, target)?;
    let lock = read(&root.join("Cargo.lock"))?;
    Ok(format!(
        "{:#}\n",
        bill(&packages(&metadata), &checksums(&lock))
    ))
}

/// The packages with their licences, then the texts of these.
pub(crate) fn notices(root: &Path, target: &str) -> Result<String, ChoreError> {
    let packages = packages(&metadata::resolved(root, target)?);
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages.iter().filter(|package| !package.ours) {
        for file in licence_files(&package.folder)? {
            let text = read(&file)?.trim_end().to_owned();
            texts.entry(text).or_default().push(package.label());
        }
    }
    Ok(notice(&packages, &texts))
}

/// One package of the program.
#[derive(Debug, PartialEq, Eq)]
struct Shipped {
    name: String,
    version: String,
    licence: String,
    repository: Option<String>,
    folder: PathBuf,
    ours: bool,
    /// Runs in the compiler only.
    macros: bool,
    /// The labels of those it uses.
    uses: BTreeSet<String>,
}

impl Shipped {
    fn label(&self) -> String {
        label(&self.name, &self.version)
    }

    /// The package's URL in the form of the specification `purl`.
    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

fn label(name: &str, version: &str) -> String {
    format!("{name} {version}")
}

/// The program's packages, sorted; the program itself is one of them.
fn packages(metadata: &Value) -> Vec<Shipped> {
    let by_id: BTreeMap<&str, &Value> = metadata::items(metadata, "packages")
        .filter_map(|package| Some((package.get("id")?.as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata
        .get("resolve")
        .into_iter()
        .flat_map(|resolve| metadata::items(resolve, "nodes"))
        .filter_map(|node| Some((node.get("id")?.as_str()?, node)))
        .collect();

    let text = |value: &Value, member| metadata::text(value, member).unwrap_or_default();
    let name_of = |id: &str| {
        let package = by_id.get(id)?;
        Some(label(&text(package, "name"), &text(package, "version")))
    };

    let mut waiting: Vec<&str> = by_id
        .iter()
        .filter(|(_, package)| text(package, "name") == PROGRAM)
        .map(|(id, _)| *id)
        .collect();
    let mut found: BTreeMap<String, Shipped> = BTreeMap::new();

    while let Some(id) = waiting.pop() {
        let (Some(package), Some(label)) = (by_id.get(id), name_of(id)) else {
            continue;
        };
        if found.contains_key(&label) {
            continue;
        }

        let used: Vec<&str> = nodes
            .get(id)
            .into_iter()
            .flat_map(|node| metadata::items(node, "deps"))
            .filter(|dependency| is_normal(dependency))
            .filter_map(|dependency| dependency.get("pkg")?.as_str())
            .collect();
        waiting.extend(&used);

        let manifest = PathBuf::from(text(package, "manifest_path"));
        let shipped = Shipped {
            name: text(package, "name"),
            version: text(package, "version"),
            licence: text(package, "license").replace('/', " OR "),
            repository: metadata::text(package, "repository"),
            folder: manifest.parent().unwrap_or(&manifest).to_owned(),
            ours: package.get("source").is_none_or(Value::is_null),
            macros: metadata::items(package, "targets").any(is_macros),
            uses: used.iter().filter_map(|id| name_of(id)).collect(),
        };
        found.insert(label, shipped);
    }

    found.into_values().collect()
}

fn is_normal(dependency: &Value) -> bool {
    metadata::items(dependency, "dep_kinds").any(|kind| kind.get("kind").is_none_or(Value::is_null))
}

fn is_macros(target: &Value) -> bool {
    metadata::items(target, "kind").any(|kind| kind == "proc-macro")
}

/// The checksums in `Cargo.lock`, by label.
fn checksums(lock: &str) -> BTreeMap<String, String> {
    let quoted = |line: &str, key: &str| {
        let value = line.strip_prefix(key)?.strip_prefix(" = \"")?;
        Some(value.strip_suffix('"')?.to_owned())
    };

    let mut found = BTreeMap::new();
    let (mut name, mut version) = (String::new(), String::new());
    for line in lock.lines() {
        if let Some(value) = quoted(line, "name") {
            name = value;
        } else if let Some(value) = quoted(line, "version") {
            version = value;
        } else if let Some(value) = quoted(line, "checksum") {
            found.insert(label(&name, &version), value);
        }
    }
    found
}

fn bill(packages: &[Shipped], checksums: &BTreeMap<String, String>) -> Value {
    let urls: BTreeMap<String, String> = packages
        .iter()
        .map(|package| (package.label(), package.url()))
        .collect();

    let component = |package: &Shipped| {
        let mut component = json!({
            "type": if package.name == PROGRAM { "application" } else { "library" },
            "bom-ref": package.url(),
            "name": package.name,
            "version": package.version,
            "purl": package.url(),
            "scope": if package.macros { "excluded" } else { "required" },
            "licenses": [{ "expression": package.licence }],
        });
        if let Some(checksum) = checksums.get(&package.label()) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
        }
        if let Some(repository) = &package.repository {
            component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
        }
        component
    };

    let dependency = |package: &Shipped| {
        let used: Vec<&String> = package
            .uses
            .iter()
            .filter_map(|label| urls.get(label))
            .collect();
        json!({ "ref": package.url(), "dependsOn": used })
    };

    let program = packages.iter().find(|package| package.name == PROGRAM);
    let others = packages.iter().filter(|package| package.name != PROGRAM);
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": program.map(component) },
        "components": others.map(component).collect::<Vec<_>>(),
        "dependencies": packages.iter().map(dependency).collect::<Vec<_>>(),
    })
}

fn notice(packages: &[Shipped], texts: &BTreeMap<String, Vec<String>>) -> String {
    let mut notice = String::from("Coracle contains these packages of others:\n\n");
    for package in packages.iter().filter(|package| !package.ours) {
        let from = package.repository.as_deref().unwrap_or("-");
        notice += &format!("{}: {} ({from})\n", package.label(), package.licence);
    }

    for (text, labels) in texts {
        let rule = "-".repeat(78);
        notice += &format!("\n{rule}\n{}\n{rule}\n\n{text}\n", labels.join(", "));
    }
    notice
}

/// The files of a package that have the text of its licence.
fn licence_files(folder: &Path) -> Result<Vec<PathBuf>, ChoreError> {
    let failed = |error| ChoreError::Read {
        path: folder.to_owned(),
        error,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().to_uppercase());
        let is_licence = name.is_some_and(|name| {
            ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"]
                .iter()
                .any(|word| name.starts_with(word))
        });
        if is_licence && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, ChoreError> {
    let bytes = std::fs::read(path).map_err(|error| ChoreError::Read {
        path: path.to_owned(),
        error,
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program uses `a`, which uses the macros `m`; tests use `t`, the build uses `b`.
    fn metadata() -> Value {
        let package = |name: &str, source: Value, kind: &str| {
            json!({
                "id": name, "name": name, "version": "1.2.3", "license": "MIT/Apache-2.0",
                "source": source, "manifest_path": format!("/src/{name}/Cargo.toml"),
                "repository": null, "targets": [{ "kind": [kind] }],
            })
        };
        let uses =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        json!({
            "packages": [
                package("coracle", Value::Null, "bin"),
                package("a", json!("registry"), "lib"),
                package("m", json!("registry"), "proc-macro"),
                package("t", json!("registry"), "lib"),
                package("b", json!("registry"), "lib"),
            ],
            "resolve": { "nodes": [
                { "id": "coracle", "deps": [
                    uses("a", Value::Null), uses("t", json!("dev")), uses("b", json!("build")),
                ] },
                { "id": "a", "deps": [uses("m", Value::Null)] },
                { "id": "m", "deps": [] },
            ] },
        })
    }

    #[test]
    fn only_what_the_program_is_built_of_is_shipped() {
        let packages = packages(&metadata());
        let labels: Vec<String> = packages.iter().map(Shipped::label).collect();
        assert_eq!(labels, ["a 1.2.3", "coracle 1.2.3", "m 1.2.3"]);
        assert_eq!(packages[0].licence, "MIT OR Apache-2.0");
        assert!(packages[1].ours && packages[2].macros);
    }

    #[test]
    fn the_bill_names_every_package_with_its_checksum_and_uses() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\nchecksum = \"c0ffee\"\n";
        let bill = bill(&packages(&metadata()), &checksums(lock));
        assert_eq!(bill["metadata"]["component"]["name"], "coracle");
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "c0ffee");
        assert_eq!(bill["components"][1]["scope"], "excluded");
        assert_eq!(bill["components"].as_array().unwrap().len(), 2);

        let uses = |number: usize| bill["dependencies"][number]["dependsOn"].to_string();
        assert_eq!(uses(0), r#"["pkg:cargo/m@1.2.3"]"#);
        assert_eq!(uses(1), r#"["pkg:cargo/a@1.2.3"]"#);
    }

    #[test]
    fn notices_have_each_text_once() {
        let texts = BTreeMap::from([(
            "Permission is granted".to_owned(),
            vec!["a 1.2.3".to_owned(), "m 1.2.3".to_owned()],
        )]);
        let notice = notice(&packages(&metadata()), &texts);
        assert!(notice.contains("a 1.2.3: MIT OR Apache-2.0 (-)\n"));
        assert!(notice.contains("\na 1.2.3, m 1.2.3\n"));
        assert!(!notice.contains("coracle 1.2.3"));
        assert_eq!(notice.matches("Permission is granted").count(), 1);
    }
}
