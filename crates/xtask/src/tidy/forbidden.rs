//! Forbidden code: unfinished macros, `allow` attributes, `unsafe` outside of `sys`.

use super::files::Source;
use super::stripped_code::{line_of, words};
use crate::finding::Finding;

/// Forbidden text, and what to write instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("todo!(", "finish it, or leave it out until it is whole"),
    (
        "unimplemented!(",
        "return a refusal that a caller can match on",
    ),
    ("dbg!(", "remove it, or log with a message"),
    (
        "#[allow(",
        "fix the code, or write `#[expect(lint, reason = \"…\")]`, which warns when it is no longer needed",
    ),
    (
        "#![allow(",
        "fix the code, or write `#![expect(lint, reason = \"…\")]`, which warns when it is no longer needed",
    ),
];

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources
        .iter()
        .flat_map(|source| forbidden(source).chain(unsound(source)))
        .collect()
}

fn forbidden(source: &Source) -> impl Iterator<Item = Finding> {
    FORBIDDEN.iter().flat_map(move |(word, remedy)| {
        source
            .code
            .match_indices(word)
            .map(move |(at, _)| Finding::new(place(source, at), format!("`{word}…`"), *remedy))
    })
}

/// `unsafe` is allowed only in modules called `sys`, where it is reviewed.
fn unsound(source: &Source) -> impl Iterator<Item = Finding> {
    let is_sys = source
        .path
        .split('/')
        .any(|part| part == "sys" || part == "sys.rs");
    words(&source.code, "unsafe").filter(move |_| !is_sys).map(|at| {
        let remedy = "use a safe crate (rustix, say), or move it to a module called `sys` with the reason why it is sound";
        Finding::new(place(source, at), "`unsafe` outside of `sys`", remedy)
    })
}

fn place(source: &Source, at: usize) -> String {
    format!("{}:{}", source.path, line_of(&source.code, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_code_is_reported_with_its_line() {
        test(
            "a.rs",
            "fn a() {\n    todo!(\"later\")\n}",
            &["a.rs:2: `todo!(…`"],
        );

        test(
            "a.rs",
            "#[allow(dead_code)]\nfn a() { dbg!(1); }",
            &["a.rs:2: `dbg!(…`", "a.rs:1: `#[allow(…`"],
        );

        test(
            "a.rs",
            "// todo!() in prose\nconst A: &str = \"unsafe\";",
            &[],
        );

        test("a.rs", "#![deny(unsafe_code)]", &[]);
        test(
            "runtime/src/a.rs",
            "unsafe { x() }",
            &["runtime/src/a.rs:1: `unsafe` outside of `sys`"],
        );

        test("runtime/src/sys/a.rs", "unsafe { x() }", &[]);
        test("runtime/src/sys.rs", "unsafe { x() }", &[]);
    }

    fn test(path: &str, text: &str, expected: &[&str]) {
        let found: Vec<String> = check(&[Source::new(path, text)])
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.wrong))
            .collect();
        assert_eq!(found, expected, "{text}");
    }
}
