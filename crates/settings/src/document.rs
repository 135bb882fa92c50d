//! Pages of documentation, made from what is declared.

use std::fmt::Write;

use crate::command_line::{SWITCH, alternatives};
use crate::help::{capital, sections};
use crate::{Format, Omission, Program, Setting, Treatment};

/// A flag of upstream's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamFlag {
    pub name: String,
    pub section: String,
}

/// What a program does with a flag of upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Taken,
    /// With the reason.
    Omitted(Treatment, &'static str),
    /// Neither declared nor omitted.
    Unknown,
}

impl<T: Default> Program<T> {
    /// What the program does with a flag.
    pub fn standing(&self, name: &str) -> Standing {
        if self.find(name).is_some() || matches!(name, "help" | "version") {
            return Standing::Taken;
        }
        let omission = self.omissions().find(|omission| omission.flag(name));
        omission.map_or(Standing::Unknown, |omission| {
            Standing::Omitted(omission.treatment, omission.why)
        })
    }

    /// The flags of the program as tables, one for each section.
    pub fn tables(&self) -> String {
        let has_keys = matches!(self.format, Format::Kind { .. });
        let mut page = format!("{}\n", self.about);
        for (section, settings) in sections(self) {
            write_to(&mut page, format_args!("\n**{}**\n\n", capital(section)));
            page.push_str(match has_keys {
                true => "| flag | default | key in the file | meaning |\n|---|---|---|---|\n",
                false => "| flag | default | meaning |\n|---|---|---|\n",
            });

            for setting in settings {
                let kind = self.kind(setting);
                let value = if kind == SWITCH {
                    String::new()
                } else {
                    format!(" {kind}")
                };
                write_to(
                    &mut page,
                    format_args!(
                        "| `--{}{value}` | {} |",
                        setting.name,
                        code(setting.default)
                    ),
                );
                if has_keys {
                    write_to(&mut page, format_args!(" {} |", code(setting.key)));
                }
                write_to(&mut page, format_args!(" {} |\n", cell(setting.help)));
            }
        }

        self.file_only(&mut page);
        page
    }

    /// The settings that have no flag.
    fn file_only(&self, page: &mut String) {
        let Format::Kind { kind, .. } = self.format else {
            return;
        };
        let settings: Vec<_> = self
            .settings()
            .filter(|setting| setting.name.is_empty())
            .collect();
        if !settings.is_empty() {
            write_to(
                page,
                format_args!(
                    "\n**In the {kind} only**\n\n| key | default | meaning |\n|---|---|---|\n"
                ),
            );
            for setting in settings {
                write_to(
                    page,
                    format_args!(
                        "| `{}` | {} | {} |\n",
                        setting.key,
                        code(setting.default),
                        cell(setting.help)
                    ),
                );
            }
        }

        let omitted = self
            .omissions()
            .filter(|omission| !omission.keys.is_empty());
        let rows: String = omitted
            .map(|omission| {
                let keys: Vec<String> =
                    omission.keys.iter().map(|key| format!("`{key}`")).collect();
                format!(
                    "| {} | {} | {} |\n",
                    keys.join(", "),
                    treatment(omission.treatment),
                    cell(omission.why)
                )
            })
            .collect();
        if !rows.is_empty() {
            write_to(
                page,
                format_args!(
                    "\n**Keys of {kind} without effect**\n\n| keys | | why |\n|---|---|---|\n{rows}"
                ),
            );
        }
    }

    /// What the program does with each of upstream's flags, and how many it takes.
    pub fn comparison(&self, upstream: &[UpstreamFlag]) -> (String, usize) {
        let mut taken = Vec::new();
        let mut rows = String::new();
        for flag in upstream {
            match self.standing(&flag.name) {
                Standing::Taken => taken.push(format!("`{}`", flag.name)),
                Standing::Omitted(how, why) => write_to(
                    &mut rows,
                    format_args!("| `{}` | {} | {} |\n", flag.name, treatment(how), cell(why)),
                ),
                Standing::Unknown => {
                    write_to(&mut rows, format_args!("| `{}` | unknown | |\n", flag.name))
                }
            }
        }

        let page = format!(
            "Taken: {}.\n\n| not taken | | why |\n|---|---|---|\n{rows}",
            taken.join(", ")
        );

        (page, taken.len())
    }

    /// The headings of the help in their order, each with its flags by name.
    pub fn headings(&self) -> Vec<(&'static str, Vec<&'static Setting<T>>)> {
        sections(self)
    }

    /// The flags of upstream that the program does not have.
    pub fn omitted(&self) -> impl Iterator<Item = &'static str> {
        let names = |omission: &'static Omission| omission.switches.iter().chain(omission.values);
        self.omissions().flat_map(names).copied()
    }

    /// Names in the declarations that appear twice.
    pub fn duplicates(&self) -> Vec<&'static str> {
        let flags = self
            .settings()
            .map(|setting| setting.name)
            .filter(|name| !name.is_empty());
        let mut names: Vec<&str> = flags.chain(self.omitted()).collect();
        names.sort_unstable();
        let twice = names.windows(2).filter(|pair| pair[0] == pair[1]);
        twice.map(|pair| pair[0]).collect()
    }
}

fn treatment(treatment: Treatment) -> String {
    match treatment {
        Treatment::Refused => String::from("refused"),
        Treatment::Ignored => String::from("no effect"),
        Treatment::Only(values) => format!("only {}", alternatives(values)),
    }
}

fn code(text: &str) -> String {
    match text {
        "" => String::from("–"),
        text => format!("`{text}`"),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

fn write_to(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("strings take everything");
}
