//! Warnings: what clients get in headers, and the limit on their size.

use std::collections::HashSet;

/// The most characters of warnings that are sent.
const MOST_CHARACTERS: usize = 4 * 1024;

/// Where there are more, each warning is truncated to this length.
const CUT: usize = 256;

/// Warnings as they are gathered. Once there are more than are ever sent the rest is dropped, so
/// that an object with many warnings costs no more than others.
#[derive(Debug, Default)]
pub struct Gathered {
    texts: Vec<String>,
    /// How many bytes of them count: of each no more than can be sent.
    bytes: usize,
}

impl Gathered {
    pub fn push(&mut self, warning: String) {
        if !self.is_full() {
            self.bytes += warning.len().min(CUT);
            self.texts.push(warning);
        }
    }

    /// Whether another warning would not be sent, so that the search for more can stop.
    pub fn is_full(&self) -> bool {
        // A character has up to four bytes, and duplicate warnings are sent once.
        self.bytes >= 8 * MOST_CHARACTERS
    }

    pub fn into_texts(self) -> Vec<String> {
        self.texts
    }
}

impl Extend<String> for Gathered {
    fn extend<I: IntoIterator<Item = String>>(&mut self, warnings: I) {
        warnings.into_iter().for_each(|warning| self.push(warning));
    }
}

/// The warnings that are sent: without duplicates, all of them in full if they fit, else the first
/// ones truncated.
pub fn sent(warnings: &[String]) -> Vec<&str> {
    let mut seen = HashSet::new();
    let once: Vec<&str> = warnings
        .iter()
        .map(String::as_str)
        .filter(|warning| !warning.is_empty() && seen.insert(*warning))
        .take(MOST_CHARACTERS)
        .collect();

    let whole = once
        .iter()
        .map(|warning| warning.chars().count())
        .sum::<usize>();

    if whole <= MOST_CHARACTERS {
        return once;
    }

    let mut written = 0;
    let cut = once
        .into_iter()
        .map(|warning| match warning.char_indices().nth(CUT) {
            Some((end, _)) => &warning[..end],
            None => warning,
        });

    cut.take_while(|warning| {
        let fits = written < MOST_CHARACTERS;
        written += warning.chars().count();
        fits
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_deduplicated_and_truncated() {
        let texts = |warnings: &[&str]| {
            warnings
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(sent(&texts(&["a", "b", "a", ""])), ["a", "b"]);

        let one = "x".repeat(4096);
        assert_eq!(sent(std::slice::from_ref(&one)), [one.as_str()]);

        let many: Vec<String> = (0..100)
            .map(|place| format!("{place:03}{}", "ä".repeat(500)))
            .collect();
        let found = sent(&many);
        assert_eq!(found.len(), 16);
        assert!(found.iter().all(|warning| warning.chars().count() == 256));
    }

    #[test]
    fn no_more_warnings_are_gathered_than_sent() {
        let mut gathered = Gathered::default();
        (0..1_000_000).for_each(|place| gathered.push(format!("warning {place}")));
        assert!(gathered.is_full());

        let texts = gathered.into_texts();
        assert!(texts.len() < 10_000, "{}", texts.len());
        assert!(
            sent(&texts)
                .iter()
                .map(|warning| warning.len())
                .sum::<usize>()
                >= MOST_CHARACTERS
        );
    }
}
