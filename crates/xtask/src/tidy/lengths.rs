//! Too long code: files of more than 600 lines of code, functions of more than 100.
//!
//! Blank lines and comments do not count: a long function should have more of them, not fewer.
//! Known ones are listed in `long-places.txt` with their length, which may only shrink: both growth
//! and an entry larger than the actual length are findings.

use std::collections::BTreeMap;
use std::ops::Range;

use super::files::Source;
use super::stripped_code::{is_name, words};
use crate::finding::Finding;

/// Known long files (`LENGTH PATH`) and functions (`LENGTH PATH FUNCTION`).
pub(super) const ALLOWANCES: &str = "crates/xtask/long-places.txt";

const LONGEST_FILE: usize = 600;
const LONGEST_FUNCTION: usize = 100;

pub(super) fn check(sources: &[Source], allowances: &str) -> Vec<Finding> {
    let (mut allowed, mut findings) = read(allowances);
    for (place, length) in long_places(sources) {
        let limit = if place.contains(' ') {
            LONGEST_FUNCTION
        } else {
            LONGEST_FILE
        };
        findings.extend(compare(&place, length, limit, allowed.remove(&place)));
    }

    let gone = "remove its line: the code is gone or short enough";
    findings.extend(
        allowed
            .into_keys()
            .map(|place| Finding::new(ALLOWANCES, format!("nothing long at {place}"), gone)),
    );

    findings
}

fn compare(place: &str, length: usize, limit: usize, allowed: Option<usize>) -> Option<Finding> {
    match allowed {
        None => {
            let remedy = "split it between two decisions";
            Some(Finding::new(
                place,
                format!("{length} lines, more than {limit}"),
                remedy,
            ))
        }
        Some(allowed) if length > allowed => Some(Finding::new(
            place,
            format!("has grown from {allowed} lines to {length}"),
            "long files and functions may only shrink",
        )),
        Some(allowed) if length < allowed => {
            let wrong = format!("{place} has shrunk from {allowed} lines to {length}");
            Some(Finding::new(
                ALLOWANCES,
                wrong,
                "update the length there, so that it cannot grow again",
            ))
        }
        Some(_) => None,
    }
}

/// The known lengths, and findings for invalid lines.
fn read(allowances: &str) -> (BTreeMap<String, usize>, Vec<Finding>) {
    let (mut allowed, mut findings) = (BTreeMap::new(), Vec::new());
    for line in allowances
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line
            .split_once(' ')
            .and_then(|(length, place)| Some((length.parse().ok()?, place)))
        {
            Some((length, place)) => drop(allowed.insert(place.to_string(), length)),
            None => findings.push(Finding::new(
                ALLOWANCES,
                format!("cannot read {line:?}"),
                "write LENGTH PATH [FUNCTION]",
            )),
        }
    }

    (allowed, findings)
}

/// Every file and function over its limit. Of functions with the same name in a file, the longest
/// counts.
fn long_places(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for Source { path, code, .. } in sources {
        let length = code_lines(code);
        if length > LONGEST_FILE {
            places.insert(path.clone(), length);
        }
        for (name, length) in functions(code).filter(|(_, length)| *length > LONGEST_FUNCTION) {
            let longest = places.entry(format!("{path} {name}")).or_default();
            *longest = length.max(*longest);
        }
    }

    places
}

/// The number of non-blank lines of stripped code.
pub(super) fn code_lines(code: &str) -> usize {
    code.lines().filter(|line| !line.trim().is_empty()).count()
}

/// The functions in stripped code, with their lines of code from `fn` to the closing brace.
fn functions(code: &str) -> impl Iterator<Item = (&str, usize)> {
    function_ranges(code).map(|(name, range)| (name, code_lines(&code[range])))
}

/// The functions in stripped code, and their ranges.
pub(super) fn function_ranges(code: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    words(code, "fn").filter_map(|at| {
        let rest = code[at + 2..].trim_start();
        let name = &rest[..rest.bytes().take_while(|byte| is_name(*byte)).count()];
        let end = end_of_function(&code.as_bytes()[at..])?;
        // `fn(u8) -> u8` is a type, `fn $name` a macro's.
        (!name.is_empty()).then(|| (name, at..at + end))
    })
}

/// Where the body ends; `None` where there is none.
fn end_of_function(code: &[u8]) -> Option<usize> {
    let (mut brackets, mut braces) = (0_usize, 0_usize);
    for (at, byte) in code.iter().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.checked_sub(1)?,
            b'{' => braces += 1,
            b'}' => braces = braces.checked_sub(1)?,
            b';' if brackets == 0 && braces == 0 => return None,
            _ => continue,
        }

        if *byte == b'}' && braces == 0 && brackets == 0 {
            return Some(at + 1);
        }
    }

    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!(
            "fn long(a: [u8; 4]) -> u8 {{\n{}}}\n",
            "    call();\n".repeat(lines - 2)
        )
    }

    #[test]
    fn the_length_of_a_function_is_counted_from_its_name_to_its_brace() {
        let code = "trait T { fn declared(&self); }\ntype F = fn(u8);\nfn one() {}\nfn two(a: [u8; 2]) {\n}\n";
        assert_eq!(
            functions(code).collect::<Vec<_>>(),
            [("one", 1), ("two", 2)]
        );
    }

    #[test]
    fn long_places_are_found_unless_they_are_known_and_do_not_grow() {
        test(&function(100), "", &[]);
        test(&function(101), "", &["a.rs long: 101 lines, more than 100"]);
        test(&function(101), "# known\n101 a.rs long\n", &[]);
        test(
            &function(102),
            "101 a.rs long\n",
            &["a.rs long: has grown from 101 lines to 102"],
        );
        test(&"x\n".repeat(601), "", &["a.rs: 601 lines, more than 600"]);
        test(&"x\n\n// y\n".repeat(600), "", &[]);
    }

    #[test]
    fn an_allowance_that_is_too_generous_is_found() {
        let place = ALLOWANCES;
        test(
            &function(101),
            "110 a.rs long\n",
            &[&format!(
                "{place}: a.rs long has shrunk from 110 lines to 101"
            )],
        );

        test(
            "",
            "601 a.rs\n",
            &[&format!("{place}: nothing long at a.rs")],
        );

        test("", "a.rs\n", &[&format!("{place}: cannot read \"a.rs\"")]);
    }

    fn test(text: &str, allowances: &str, expected: &[&str]) {
        let found: Vec<String> = check(&[Source::new("a.rs", text)], allowances)
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.wrong))
            .collect();
        assert_eq!(found, expected);
    }
}
