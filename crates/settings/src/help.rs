//! The text of `--help`.

use std::fmt::Write;

use crate::command_line::SWITCH;
use crate::{Program, Setting};

/// Column at which descriptions wrap.
const WIDTH: usize = 100;

pub(crate) fn help<T: Default>(program: &Program<T>) -> String {
    let mut text = format!(
        "{}\n\nUsage:\n  coracle {} [flags]\n",
        program.about, program.name
    );

    for (section, settings) in sections(program) {
        text.push_str(&format!("\n{} flags:\n\n", capital(section)));
        for setting in settings {
            describe(setting, program.kind(setting), &mut text);
        }
    }

    text.push_str(
        "\nGlobal flags:\n\n  -h, --help\n      Show this text\n  --version\n      Show the version\n",
    );

    text
}

/// The headings in their order, each with its flags by name.
pub(crate) fn sections<T>(program: &Program<T>) -> Vec<(&'static str, Vec<&'static Setting<T>>)> {
    let mut sections: Vec<(&str, Vec<&Setting<T>>)> = Vec::new();
    for section in program.sections {
        let flags = section
            .settings
            .iter()
            .filter(|setting| !setting.name.is_empty());
        match sections.iter_mut().find(|(name, _)| *name == section.name) {
            Some((_, settings)) => settings.extend(flags),
            None => sections.push((section.name, flags.collect())),
        }
    }

    sections.retain(|(_, settings)| !settings.is_empty());
    for (_, settings) in &mut sections {
        settings.sort_by_key(|setting| setting.name);
    }

    sections
}

fn describe<T>(setting: &Setting<T>, kind: &str, text: &mut String) {
    text.push_str("  ");
    if setting.name == "v" {
        text.push_str("-v, ");
    }

    text.push_str("--");
    text.push_str(setting.name);
    if kind != SWITCH {
        text.push(' ');
        text.push_str(kind);
    }

    if !setting.default.is_empty() {
        write!(text, " (default {})", setting.default).expect("strings take everything");
    }

    text.push('\n');
    let mut column = 0;
    for word in setting.help.split_whitespace() {
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

pub(crate) fn capital(section: &str) -> String {
    let mut letters = section.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}
