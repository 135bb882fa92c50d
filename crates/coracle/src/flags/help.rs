//! The `--help` text of a table of flags.

use std::fmt::Write;

use super::{Flag, Table, Takes};

/// Column at which descriptions wrap.
const WIDTH: usize = 100;

/// The whole text of `--help`.
pub(crate) fn help<T>(table: &Table<T>) -> String {
    let mut text = format!(
        "{}\n\nUsage:\n  coracle {} [flags]\n",
        table.about, table.component
    );

    for section in table.sections {
        let mut flags: Vec<_> = table
            .flags
            .iter()
            .flat_map(|part| part.iter())
            .filter(|flag| flag.section == *section)
            .collect();
        flags.sort_by_key(|flag| flag.name);

        if flags.is_empty() {
            continue;
        }

        text.push_str(&format!("\n{} flags:\n\n", capital(section)));
        flags.iter().for_each(|flag| describe(flag, &mut text));
    }

    text.push_str(
        "\nGlobal flags:\n\n  -h, --help\n      Show this text\n  --version\n      Show the version\n",
    );

    text
}

fn describe<T>(flag: &Flag<T>, text: &mut String) {
    text.push_str("  --");
    text.push_str(flag.name);

    if let Takes::Value(what) = flag.takes {
        text.push(' ');
        text.push_str(what);
    }

    if !flag.default.is_empty() {
        write!(text, " (default {})", flag.default).expect("strings take everything");
    }

    text.push('\n');
    let mut column = 0;
    for word in flag.about.split_whitespace() {
        if column + word.len() + 1 > WIDTH {
            column = 0;
            text.push('\n');
        }

        if column == 0 {
            text.push_str("      ");
            column = 6;
        } else {
            text.push(' ');
            column += 1;
        }

        text.push_str(word);
        column += word.len();
    }

    text.push('\n');
}

fn capital(section: &str) -> String {
    let mut letters = section.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}
