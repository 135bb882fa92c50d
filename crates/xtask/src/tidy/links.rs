//! Links between pages: relative links must point to an existing file and heading.

use super::files::{Page, Tree};
use crate::finding::Finding;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.pages
        .iter()
        .flat_map(|page| check_page(page, tree))
        .collect()
}

fn check_page(page: &Page, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in prose(&page.text) {
        for target in targets(&text).filter(|target| !is_elsewhere(target)) {
            if let Err(wrong) = follow(page, target, tree) {
                let place = format!("{}:{line}", page.path);
                findings.push(Finding::new(
                    place,
                    format!("`{target}`: {wrong}"),
                    "correct the link, or remove it",
                ));
            }
        }
    }

    findings
}

/// Checks the target of a link.
fn follow(page: &Page, target: &str, tree: &Tree) -> Result<(), &'static str> {
    let (file, heading) = target
        .split_once('#')
        .map_or((target, None), |(file, heading)| (file, Some(heading)));
    let path = if file.is_empty() {
        page.path.clone()
    } else {
        resolve(&page.path, file)?
    };

    if !path.is_empty() && !tree.paths.contains(&path) {
        return Err("no such file");
    }

    match (heading, tree.pages.iter().find(|other| other.path == path)) {
        (Some(heading), Some(other)) if !headings(&other.text).any(|other| other == heading) => {
            Err("no such heading")
        }
        _ => Ok(()),
    }
}

/// The path of a link, as seen from the page it stands on.
fn resolve(page: &str, link: &str) -> Result<String, &'static str> {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().ok_or("points outside of the repository")?),
            name => parts.push(name),
        }
    }

    Ok(parts.join("/"))
}

fn is_elsewhere(target: &str) -> bool {
    ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| target.starts_with(scheme))
}

/// The lines of a page outside of code blocks, with their numbers and without inline code.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut fenced = false;
    text.lines().zip(1..).filter_map(move |(line, number)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        // Every second piece is between backquotes.
        (!fenced).then(|| (number, line.split('`').step_by(2).collect()))
    })
}

/// The targets of `[text](target)` and `[name]: target`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next());
    let defined = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "))
        .map(|(_, target)| target.trim());
    inline.chain(defined)
}

/// The anchors of a page's headings, as code hosts make them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|char| char.is_alphanumeric() || [' ', '-', '_'].contains(char))
                .map(|char| if char == ' ' { '-' } else { char })
                .collect()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found() {
        test("[a](docs/a.md) and [b](src)", &[]);
        test(
            "[a](docs/b.md)",
            &["README.md:1: `docs/b.md`: no such file"],
        );

        test("x\n[a](docs/a.md#the-one-idea)", &[]);
        test(
            "x\n[a](docs/a.md#two)",
            &["README.md:2: `docs/a.md#two`: no such heading"],
        );

        test(
            "[a](../other)",
            &["README.md:1: `../other`: points outside of the repository"],
        );

        test(
            "[a]: missing.md",
            &["README.md:1: `missing.md`: no such file"],
        );

        test("[a](https://example.com/x)", &[]);
        test(
            "# Here\n[a](#here) [b](#there)",
            &["README.md:2: `#there`: no such heading"],
        );
    }

    #[test]
    fn code_has_no_links() {
        test("`[a](b.md)`\n```\n[a](b.md)\n```\n", &[]);
    }

    #[test]
    fn a_link_is_relative_to_its_page() {
        assert_eq!(
            resolve("docs/a.md", "../README.md"),
            Ok("README.md".to_string())
        );
        assert_eq!(
            resolve("docs/a.md", "./b/c.md"),
            Ok("docs/b/c.md".to_string())
        );
    }

    fn test(text: &str, expected: &[&str]) {
        let page = |path: &str, text: &str| Page {
            path: path.to_string(),
            text: text.to_string(),
        };

        let pages = vec![
            page("README.md", text),
            page("docs/a.md", "# The one idea!\n"),
        ];

        let paths = ["README.md", "docs", "docs/a.md", "src"]
            .map(String::from)
            .into();
        let found: Vec<String> = check(&Tree {
            sources: Vec::new(),
            pages,
            paths,
        })
        .into_iter()
        .map(|finding| format!("{}: {}", finding.place, finding.wrong))
        .collect();
        assert_eq!(found, expected, "{text}");
    }
}
