//! Splits a file into documents at its `---` lines without parsing it.

/// A line that begins with `---` but is no separator.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("invalid Yaml document separator: {0}")]
pub struct DocumentError(String);

/// The documents of a text, split as upstream's reader splits them: at every line that begins with
/// `---` and contains nothing else but a comment. A separator with nothing before it belongs to the
/// document after it; so two in a row make a document that consists of the first.
pub fn documents(text: &str) -> impl Iterator<Item = Result<&str, DocumentError>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let cut = next_document(rest);
        rest = cut.as_ref().map_or("", |(_, behind)| behind);
        Some(cut.map(|(document, _)| document))
    })
}

/// The text up to the next separator, and the text after it.
fn next_document(text: &str) -> Result<(&str, &str), DocumentError> {
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if let Some(behind) = line.strip_prefix("---") {
            let behind = behind.trim();
            if !behind.is_empty() && !behind.starts_with('#') {
                return Err(DocumentError(behind.to_owned()));
            }
            if end > 0 {
                return Ok((&text[..end], &text[end + line.len()..]));
            }
        }

        end += line.len();
    }

    Ok((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[Result<&str, &str>]) {
        let cut: Vec<_> = documents(text)
            .map(|document| document.map_err(|error| error.to_string()))
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|document| document.map_err(str::to_owned))
            .collect();
        assert_eq!(cut, expected, "{text:?}");
    }

    #[test]
    fn documents_are_cut_at_lines_that_begin_with_three_dashes() {
        check("", &[]);
        check("a: 1\n", &[Ok("a: 1\n")]);
        check("a: 1\n---\nb: 2", &[Ok("a: 1\n"), Ok("b: 2")]);
        check(
            "---\na: 1\n--- # next\nb: 2\n---\n",
            &[Ok("---\na: 1\n"), Ok("b: 2\n")],
        );

        check("---\n---\na: 1\n", &[Ok("---\n"), Ok("a: 1\n")]);
        check("# c\n---\n\n---\n", &[Ok("# c\n"), Ok("\n")]);
        check("a: |\n  ---\n ---\n", &[Ok("a: |\n  ---\n ---\n")]);
        check("a: 1\r\n---\r\nb: 2\r\n", &[Ok("a: 1\r\n"), Ok("b: 2\r\n")]);
        check("---", &[Ok("---")]);
    }

    #[test]
    fn a_separator_line_with_other_text_is_an_error_and_the_end() {
        let error = "invalid Yaml document separator: x: 1";
        check("a: 1\n--- x: 1\n---\nb: 2\n", &[Err(error)]);
        check("a: 1\n---\n---x: 1\n", &[Ok("a: 1\n"), Err(error)]);
    }
}
