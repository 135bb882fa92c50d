//! PEM as Go's decoder reads it: text around blocks is skipped, and so is a block that is malformed.

use x509_parser::pem::Pem;

/// A block of a PEM text.
pub(super) struct PemBlock {
    pub(super) label: String,
    pub(super) has_headers: bool,
    pub(super) content: Vec<u8>,
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// The blocks of a text.
pub(super) fn blocks(text: &str) -> Vec<PemBlock> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let label = line.trim_end().strip_prefix(BEGIN);
        let Some(label) = label.and_then(|rest| rest.strip_suffix(DASHES)) else {
            continue;
        };
        let rest = lines.clone();
        if let Some((block, after)) = block(label, rest) {
            blocks.push(block);
            lines = after;
        }
    }
    blocks
}

/// The block that was begun, and what follows it.
fn block<'t>(
    label: &str,
    mut lines: std::str::Lines<'t>,
) -> Option<(PemBlock, std::str::Lines<'t>)> {
    let end = format!("{END}{label}{DASHES}");
    let (mut body, mut has_headers) = (String::new(), false);
    loop {
        let line = lines.next()?.trim();
        if line == end {
            break;
        }
        if body.is_empty() && line.contains(": ") {
            has_headers = true;
        } else {
            body.push_str(line);
            body.push('\n');
        }
    }

    let bare = format!("{BEGIN}{label}{DASHES}\n{}\n{end}\n", body.trim());
    let decoded = Pem::iter_from_buffer(bare.as_bytes()).next()?.ok()?;
    let block = PemBlock {
        label: label.to_owned(),
        has_headers,
        content: decoded.contents,
    };
    Some((block, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_around_blocks_and_malformed_blocks_are_skipped() {
        let text = "hello\n-----BEGIN A-----\nKey: value\n\naGk=\n-----END A-----\nbetween\n\
                    -----BEGIN B-----\n!!!\n-----END B-----\n-----BEGIN C-----\naGk=\n-----END C-----\n";
        let found: Vec<_> = blocks(text)
            .into_iter()
            .map(|block| (block.label, block.has_headers, block.content))
            .collect();
        let expected = [
            ("A".to_owned(), true, b"hi".to_vec()),
            ("C".to_owned(), false, b"hi".to_vec()),
        ];
        assert_eq!(found, expected);
    }
}
