//! Modules of a crate that use each other in a circle.
//!
//! Crates depend only downward, which [`dependencies`](super::dependencies) checks. Within a large crate the same
//! holds for its top-level modules: `crate::name` in the code of one module is a use of another.
//! Tests are not looked at.

use std::collections::{BTreeMap, BTreeSet};

use super::files::Source;
use super::stripped_code::words;
use crate::finding::Finding;

/// Crates whose modules are checked.
const CRATES: &[&str] = &["crates/apiserver/src/"];

type Uses<'s> = BTreeMap<&'s str, BTreeSet<&'s str>>;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let circles = CRATES.iter().filter_map(|folder| {
        let circle = circle(uses(sources, folder))?;
        let wrong = format!(
            "these modules use each other in a circle: {}",
            circle.join(" → ")
        );
        let remedy = "move what both need into a module below them, or hand it in as a parameter";
        Some(Finding::new(format!("{folder}lib.rs"), wrong, remedy))
    });
    circles.collect()
}

/// Which top-level modules each top-level module of a crate uses.
fn uses<'s>(sources: &'s [Source], folder: &str) -> Uses<'s> {
    let mut all = Uses::new();
    for source in sources {
        let Some(rest) = source.path.strip_prefix(folder) else {
            continue;
        };
        let module = rest.split('/').next().unwrap_or_default();
        let module = module.strip_suffix(".rs").unwrap_or(module);
        if module == "lib" || rest.ends_with("tests.rs") {
            continue;
        }

        let tests = source.code.find("#[cfg(test)]");
        let code = &source.code[..tests.unwrap_or(source.code.len())];
        let used = all.entry(module).or_default();
        for at in words(code, "crate") {
            let Some(path) = code[at..].strip_prefix("crate::") else {
                continue;
            };
            let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let name = &path[..end.unwrap_or(path.len())];
            if name != module {
                used.insert(name);
            }
        }
    }
    all
}

/// Modules of which each uses the next, and the last the first.
fn circle(mut uses: Uses<'_>) -> Option<Vec<&str>> {
    // What uses nothing that is left is part of no circle.
    loop {
        let left: BTreeSet<&str> = uses.keys().copied().collect();
        uses.values_mut()
            .for_each(|used| used.retain(|name| left.contains(name)));
        let before = uses.len();
        uses.retain(|_, used| !used.is_empty());
        if uses.len() == before {
            break;
        }
    }

    // Each one that is left uses another that is left: following them comes back somewhere.
    let mut path = vec![*uses.keys().next()?];
    loop {
        let next = *uses[path.last()?].first()?;
        if let Some(start) = path.iter().position(|seen| *seen == next) {
            path.push(next);
            return Some(path.split_off(start));
        }
        path.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: Option<&str>) {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(format!("crates/apiserver/src/{path}"), text))
            .collect();
        let found = super::check(&sources);
        let wrong = found.first().map(|finding| finding.wrong.as_str());
        assert_eq!(wrong, expected);
    }

    #[test]
    fn modules_that_use_each_other_in_a_circle_are_found() {
        let lower = ("cache/mod.rs", "use crate::definitions::Compiled;");
        let upper = (
            "registry/read.rs",
            "use crate::cache::Cache;\nuse crate::ApiError;",
        );
        check(&[lower, upper, ("definitions/mod.rs", "")], None);

        let back = ("definitions/mod.rs", "fn f() { crate::registry::f() }");
        check(
            &[lower, upper, back],
            Some(
                "these modules use each other in a circle: cache → definitions → registry → cache",
            ),
        );
    }

    #[test]
    fn comments_and_tests_do_not_count() {
        let lower = (
            "cache/mod.rs",
            "//! See crate::registry.\n#[cfg(test)]\nuse crate::registry;",
        );
        check(&[lower, ("registry/mod.rs", "use crate::cache;")], None);
    }
}
