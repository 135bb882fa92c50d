//! Command lines as upstream's components read them: `--flag value`, `--flag=value`, `-v 4`, `-v4`;
//! `_` and `-` in names are the same; `--` ends the flags.

use coracle_api::go_text::Quoted;

use crate::{Program, Setting};

/// A flag of a command line.
pub(crate) struct Occurrence<'a, T: 'static> {
    pub(crate) setting: &'static Setting<T>,
    pub(crate) text: &'a str,
}

pub(crate) enum Scanned<'a, T: 'static> {
    Help,
    Version,
    Flags(Vec<Occurrence<'a, T>>),
}

/// The kind of a field whose flag needs no value.
pub(crate) const SWITCH: &str = "bool";

/// Finds the flags of a command line.
pub(crate) fn scan<'a, T: Default>(
    program: &Program<T>,
    arguments: &'a [String],
    warnings: &mut Vec<String>,
    mistakes: &mut Vec<String>,
) -> Scanned<'a, T> {
    let mut given = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some((name, value)) = split(argument) else {
            if argument == "--" {
                mistakes.extend(rest.map(|argument| positional(program.name, argument)));
                break;
            }
            mistakes.push(positional(program.name, argument));
            continue;
        };

        match name.as_str() {
            "help" => return Scanned::Help,
            "version" if matches!(value, None | Some("true" | "raw")) => return Scanned::Version,
            "version" => continue,
            _ => {}
        }

        let setting = program.find(&name);
        let omission = program.omissions().find(|omission| omission.flag(&name));
        let is_switch = setting.is_some_and(|setting| program.kind(setting) == SWITCH)
            || omission.is_some_and(|omission| omission.switches.contains(&name.as_str()));
        let is_known = setting.is_some() || omission.is_some();

        let text = match value {
            Some(text) => text,
            None if is_switch => "true",
            None if is_known => match rest.next() {
                Some(text) => text,
                None => {
                    mistakes.push(format!("flag needs an argument: {}", shown(&name)));
                    continue;
                }
            },
            // What follows an unknown flag is its value, unless it is a flag itself.
            None => {
                if rest
                    .as_slice()
                    .first()
                    .is_some_and(|next| !next.starts_with('-'))
                {
                    rest.next();
                }
                ""
            }
        };

        match (setting, omission) {
            (Some(setting), _) => given.push(Occurrence { setting, text }),
            (None, Some(omission)) => {
                omission.treat(&format!("--{name}"), text, warnings, mistakes);
            }
            (None, None) => mistakes.push(format!("unknown flag: --{name}")),
        }
    }

    Scanned::Flags(given)
}

/// The name and the value of a flag; `None`: it is none.
fn split(argument: &str) -> Option<(String, Option<&str>)> {
    if argument == "-h" {
        return Some((String::from("help"), None));
    }

    // Upstream has one other flag with a short form.
    if let Some(level) = argument.strip_prefix("-v") {
        let level = level.strip_prefix('=').unwrap_or(level);
        return Some((
            String::from("v"),
            Some(level).filter(|level| !level.is_empty()),
        ));
    }

    let given = argument
        .strip_prefix("--")
        .filter(|given| !given.is_empty())?;
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (given, None),
    };

    Some((name.replace('_', "-"), value))
}

fn positional(program: &str, argument: &str) -> String {
    if argument.starts_with('-') && argument.len() > 1 {
        return format!("unknown shorthand flag: {argument}");
    }
    format!("{program:?} does not take any arguments, got [{argument:?}]")
}

/// How messages show a flag.
fn shown(name: &str) -> String {
    match name {
        "v" => String::from("-v, --v"),
        name => format!("--{name}"),
    }
}

pub(crate) fn invalid(name: &str, text: &str, why: &str) -> String {
    format!(
        "invalid argument {} for \"{}\" flag: {why}",
        Quoted(text),
        shown(name)
    )
}

/// `"a" or "b"`.
pub(crate) fn alternatives(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    quoted.join(" or ")
}
