//! The configuration file of `coracle server`: its keys are the names of flags. Flags on the
//! command line take precedence. An unknown key is an error, so that a typo is not ignored.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use coracle_api::Value;
use coracle_api::codec::yaml;

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{}: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("{}: {why}", file.display())]
    Yaml { file: PathBuf, why: String },
    #[error("{}: expected a mapping of flag names to values", file.display())]
    NoMapping { file: PathBuf },
    #[error("{}: unknown key {key:?}; keys are the flags of `coracle server`, without the dashes", file.display())]
    UnknownKey { file: PathBuf, key: String },
    #[error("{}: key {key:?}: expected {expected}", file.display())]
    Value {
        file: PathBuf,
        key: String,
        expected: &'static str,
    },
}

/// The command line with the flags of its `--config` file inserted.
pub(crate) fn expand(
    arguments: Vec<OsString>,
    known: &Command,
) -> Result<Vec<OsString>, FileError> {
    let Some(server) = arguments.iter().position(|argument| argument == "server") else {
        return Ok(arguments);
    };
    let Some(file) = named(&arguments[server..]) else {
        return Ok(arguments);
    };
    let text = fs::read_to_string(&file).map_err(|error| FileError::Read {
        file: file.clone(),
        error,
    })?;

    let added = flags(&file, &text, known, |flag| {
        is_given(&arguments[server..], flag)
    })?;
    let mut expanded = arguments;
    expanded.splice(server + 1..server + 1, added);

    Ok(expanded)
}

fn named(arguments: &[OsString]) -> Option<PathBuf> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--config" {
            return rest.next().map(PathBuf::from);
        }

        if let Some(file) = argument
            .to_str()
            .and_then(|argument| argument.strip_prefix("--config="))
        {
            return Some(PathBuf::from(file));
        }
    }

    None
}

fn is_given(arguments: &[OsString], flag: &str) -> bool {
    let is = |argument: &OsStr| {
        let text = argument.to_string_lossy();
        let name = text
            .strip_prefix("--")
            .map(|text| text.split('=').next().unwrap_or(text));
        name == Some(flag)
    };
    arguments.iter().any(|argument| is(argument))
}

/// The file's settings as flags, without those that the command line has (`is_given`).
fn flags(
    file: &Path,
    text: &str,
    known: &Command,
    is_given: impl Fn(&str) -> bool,
) -> Result<Vec<OsString>, FileError> {
    let settings = yaml::decode(text.as_bytes()).map_err(|why| FileError::Yaml {
        file: file.to_path_buf(),
        why: why.to_string(),
    })?;

    let settings = match settings {
        Value::Null => return Ok(Vec::new()),
        Value::Object(settings) => settings,
        _ => {
            return Err(FileError::NoMapping {
                file: file.to_path_buf(),
            });
        }
    };

    let mut flags = Vec::new();
    for (key, value) in settings.iter() {
        let argument = known.get_arguments().find(|argument| {
            argument.get_long() == Some(key) && !matches!(key, "config" | "help" | "version")
        });
        let argument = argument.ok_or_else(|| FileError::UnknownKey {
            file: file.to_path_buf(),
            key: key.to_string(),
        })?;

        if is_given(key) {
            continue;
        }

        let refuse = |expected| FileError::Value {
            file: file.to_path_buf(),
            key: key.to_string(),
            expected,
        };

        if !argument.get_action().takes_values() {
            match value {
                Value::Bool(true) => flags.push(format!("--{key}").into()),
                Value::Bool(false) => {}
                _ => return Err(refuse("true or false")),
            }
            continue;
        }

        let text = match value {
            Value::Array(items) => {
                let items: Option<Vec<String>> = items.iter().map(scalar).collect();
                items
                    .ok_or_else(|| refuse("a list of plain values"))?
                    .join(",")
            }
            value => scalar(value).ok_or_else(|| refuse("a plain value"))?,
        };
        flags.push(format!("--{key}={text}").into());
    }

    Ok(flags)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Null | Value::Raw(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;
    use crate::server::Server;

    fn check(text: &str, given: &[&str], expected: &str) {
        let known = Server::augment_args(Command::new("server"));
        let result = flags(Path::new("c.yaml"), text, &known, |flag| {
            given.contains(&flag)
        });

        let found = match result {
            Ok(flags) => flags
                .iter()
                .map(|flag| flag.to_string_lossy())
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn each_flag_is_a_key_and_the_command_line_takes_precedence() {
        check("", &[], "");
        check(
            "https-port: 7443\nno-node: true\n",
            &[],
            "--https-port=7443 --no-node",
        );

        check("https-port: 7443\nno-node: false\n", &["https-port"], "");
        check(
            "controllers: ['*', '-job-controller']",
            &[],
            "--controllers=*,-job-controller",
        );

        check(
            "cluster-cidr: 10.1.0.0/16",
            &[],
            "--cluster-cidr=10.1.0.0/16",
        );
    }

    #[test]
    fn unknown_keys_and_wrong_types_are_errors() {
        check(
            "htps-port: 1",
            &[],
            "c.yaml: unknown key \"htps-port\"; keys are the flags of `coracle server`, without the dashes",
        );

        check(
            "config: other.yaml",
            &[],
            "c.yaml: unknown key \"config\"; keys are the flags of `coracle server`, without the dashes",
        );

        check(
            "no-node: 1",
            &[],
            "c.yaml: key \"no-node\": expected true or false",
        );

        check(
            "https-port: {}",
            &[],
            "c.yaml: key \"https-port\": expected a plain value",
        );

        check(
            "- a",
            &[],
            "c.yaml: expected a mapping of flag names to values",
        );
    }

    #[test]
    fn the_file_is_named_by_the_command_line() {
        let arguments = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            named(&arguments("server --config a.yaml")),
            Some(PathBuf::from("a.yaml"))
        );

        assert_eq!(
            named(&arguments("server --config=a.yaml --no-node")),
            Some(PathBuf::from("a.yaml"))
        );

        assert_eq!(named(&arguments("server --no-node")), None);
        assert!(is_given(&arguments("server --https-port=1"), "https-port"));
        assert!(!is_given(
            &arguments("server --https-ports=1"),
            "https-port"
        ));
    }
}
