//! Long functions without a blank line: a reader cannot see their steps.

use super::files::Source;
use super::lengths::{code_lines, function_ranges};
use super::stripped_code::line_of;
use crate::finding::Finding;

/// A function of more lines of code than this has paragraphs.
const LONGEST_PARAGRAPH: usize = 20;
/// A function of fewer statements than this has one step, however long it is.
const FEWEST_STATEMENTS: usize = 4;

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    sources.iter().flat_map(check_file).collect()
}

fn check_file(source: &Source) -> Vec<Finding> {
    let code = &source.code;
    let text: Vec<&str> = source.text.lines().collect();

    let is_dense = |range: &std::ops::Range<usize>| {
        let lines = line_of(code, range.start)..line_of(code, range.end);
        code_lines(&code[range.clone()]) > LONGEST_PARAGRAPH
            && statements(&code[range.clone()]) >= FEWEST_STATEMENTS
            && !text[lines].iter().any(|line| line.trim().is_empty())
    };

    let dense = function_ranges(code).filter(|(_, range)| is_dense(range));
    dense
        .map(|(name, range)| {
            let place = format!("{}:{} {name}", source.path, line_of(code, range.start));
            let wrong = "a long function without a blank line";
            Finding::new(place, wrong, "separate its steps by blank lines")
        })
        .collect()
}

/// How many statements end with a semicolon in the body of a function, not in blocks within it.
fn statements(function: &str) -> usize {
    let (mut depth, mut statements) = (0_usize, 0);
    for byte in function.bytes() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            b';' if depth == 1 => statements += 1,
            _ => {}
        }
    }

    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_function_has_a_blank_line() {
        let function = |body: &str| format!("fn long() {{\n{body}}}\n");
        let steps = "    step();\n";

        let check = |text: &str, expected: usize| {
            assert_eq!(
                check(&[Source::new("a.rs", text)]).len(),
                expected,
                "{text}"
            );
        };
        check(&function(&steps.repeat(30)), 1);
        check(&function(&steps.repeat(10)), 0);
        check(
            &function(&format!("{}\n{}", steps.repeat(15), steps.repeat(15))),
            0,
        );
        check(
            &function(&format!("    call(\n{});\n", "        1,\n".repeat(30))),
            0,
        );
    }
}
