//! Configuration files: the keys of a mapping become settings.

use std::io;
use std::path::{Path, PathBuf};

use coracle_api::Value;
use coracle_api::codec::yaml;
use coracle_api::value::Map;

use crate::program::CONFIG;
use crate::{Format, Program, Setting, Unknown};

/// Reads a configuration file into options.
pub(crate) struct Reader<'a, T: 'static> {
    pub(crate) program: &'a Program<T>,
    /// Whether the command line has the flag.
    pub(crate) is_given: &'a dyn Fn(&str) -> bool,
    pub(crate) options: &'a mut T,
    pub(crate) warnings: &'a mut Vec<String>,
    pub(crate) mistakes: &'a mut Vec<String>,
}

impl<T> Reader<'_, T> {
    /// Reads the files; each is merged into those before it. Mistakes and warnings start with the
    /// name of the first one, or of the one that cannot be read.
    pub(crate) fn read_files(
        &mut self,
        files: &[PathBuf],
        load: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) {
        let mut merged = Map::new();
        for file in files {
            let map = load(file)
                .map_err(|error| error.to_string())
                .and_then(|text| self.parse(&text));
            match map {
                Ok(map) => merge(&mut merged, map),
                Err(why) => self.mistakes.push(format!("{}: {why}", file.display())),
            }
        }

        let (warnings, mistakes) = (self.warnings.len(), self.mistakes.len());
        match self.program.format {
            Format::None => {}
            Format::Names => self.names(&merged),
            Format::Kind { unknown, .. } => self.keys(&merged, "", unknown),
        }

        let first = files.first().map_or(Path::new(""), PathBuf::as_path);
        let own = self.warnings[warnings..].iter_mut();
        for message in own.chain(&mut self.mistakes[mistakes..]) {
            *message = format!("{}: {message}", first.display());
        }
    }

    fn parse(&self, text: &[u8]) -> Result<Map, String> {
        let (tree, duplicates) = yaml::decode_strict(text).map_err(|error| error.to_string())?;
        if let Some(duplicates) = duplicates {
            return Err(duplicates.to_string());
        }

        let map = match (tree, self.program.format) {
            (Value::Object(map), _) => map,
            (Value::Null, Format::Names) => Map::new(),
            _ => return Err(String::from("expected a mapping")),
        };

        if let Format::Kind {
            api_version, kind, ..
        } = self.program.format
        {
            check_kind(&map, api_version, kind)?;
        }
        Ok(map)
    }

    /// A file whose keys are the names of flags.
    fn names(&mut self, map: &Map) {
        for (name, value) in map.iter() {
            let Some(setting) = self.program.find(name).filter(|_| name != CONFIG) else {
                self.mistakes.push(format!(
                    "unknown key {name:?}; keys are the flags of `coracle {}`, without the dashes",
                    self.program.name
                ));
                continue;
            };

            if (self.is_given)(name) {
                continue;
            }

            let field = (setting.field)(self.options);
            if let Err(why) = from_plain(value, |text, is_first| match is_first {
                true => field.set(text),
                false => field.add(text),
            }) {
                self.mistakes.push(format!("key {name:?}: {why}"));
            }
        }
    }

    /// The keys of an object below `prefix`.
    fn keys(&mut self, map: &Map, prefix: &str, unknown: Unknown) {
        for (name, value) in map.iter() {
            if prefix.is_empty() && matches!(name, "apiVersion" | "kind") {
                continue;
            }

            let path = format!("{prefix}{name}");
            let setting = self.program.settings().find(|setting| setting.key == path);
            let omission = self
                .program
                .omissions()
                .find(|omission| omission.has_key(&path));
            match (setting, omission) {
                (Some(setting), _) => self.set(setting, &path, value),
                (None, Some(_)) if is_zero(value) => {}
                (None, Some(omission)) => {
                    let text = scalar(value).unwrap_or_default();
                    omission.treat(&path, &text, self.warnings, self.mistakes);
                }
                (None, None) if self.is_prefix(&path) => match value {
                    Value::Object(below) => self.keys(below, &format!("{path}."), unknown),
                    Value::Null => {}
                    _ => self.mistakes.push(format!("{path}: expected a mapping")),
                },
                (None, None) => {
                    let message = format!("unknown field {path:?}");
                    match unknown {
                        Unknown::Error => self.mistakes.push(message),
                        Unknown::Warning => self.warnings.push(message),
                    }
                }
            }
        }
    }

    /// Sets a setting, unless the value is what upstream's defaulting replaces.
    fn set(&mut self, setting: &Setting<T>, path: &str, value: &Value) {
        let is_unset = match value {
            Value::Null => true,
            _ if setting.null_is_default => false,
            Value::String(text) => matches!(text.as_str(), "" | "0s"),
            value => setting.zero_is_default && is_zero(value),
        };
        if is_unset {
            return;
        }

        if let Err(why) = (setting.field)(self.options).read(value) {
            self.mistakes.push(format!("{path}: {why}"));
        }
    }

    /// Whether something below the path is known.
    fn is_prefix(&self, path: &str) -> bool {
        let below = |key: &str| {
            key.strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        let omitted = self.program.omissions().flat_map(|omission| omission.keys);
        self.program.settings().any(|setting| below(setting.key))
            || omitted.into_iter().any(|key| below(key))
    }
}

/// The files of a directory that end with `.conf`, by name, as upstream reads them.
pub(crate) fn drop_ins(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "conf") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Merges a mapping into another: mappings grow, other values are replaced, null removes.
fn merge(into: &mut Map, from: Map) {
    for (name, value) in from {
        match value {
            Value::Null => drop(into.remove(&name)),
            Value::Object(below) => match into.get_mut(&name) {
                Some(Value::Object(known)) => merge(known, below),
                _ => drop(into.insert(name, Value::Object(below))),
            },
            value => drop(into.insert(name, value)),
        }
    }
}

fn check_kind(map: &Map, api_version: &str, kind: &str) -> Result<(), String> {
    let text = |name| map.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        (found, of) if (found, of) == (api_version, kind) => Ok(()),
        (found, of) => Err(format!(
            "no kind \"{of}\" is registered for version \"{found}\": want {kind} of {api_version}"
        )),
    }
}

/// Hands on a plain value, or each of a list, as a text.
fn from_plain(
    value: &Value,
    mut hand_on: impl FnMut(&str, bool) -> Result<(), String>,
) -> Result<(), String> {
    let Value::Array(items) = value else {
        let text = scalar(value).ok_or("expected a plain value or a list of them")?;
        return hand_on(&text, true);
    };

    if items.is_empty() {
        return hand_on("", true);
    }

    for (index, item) in items.iter().enumerate() {
        let text = scalar(item).ok_or("expected a list of plain values")?;
        hand_on(&text, index == 0)?;
    }

    Ok(())
}

/// Whether a value is what a field has that was not set.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(number) => *number == 0.0,
        Value::String(text) => matches!(text.as_str(), "" | "0" | "0s"),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
        Value::Bool(true) | Value::Int(_) | Value::Raw(_) => false,
    }
}

pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Null | Value::Raw(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
