//! What a program declares, and what reading it returns.

use std::io;
use std::path::{Path, PathBuf};

use coracle_api::{Map, Value};

use crate::command_line::{self, Occurrence};
use crate::{Field, Omission, file, help};

/// A setting of the options `T`.
pub struct Setting<T: 'static> {
    /// The flag without its dashes; empty: the setting is in the file only.
    pub name: &'static str,
    /// The default, as a text that the field reads; empty: that of the field's type.
    pub default: &'static str,
    pub help: &'static str,
    /// The path in the configuration file, with dots; empty: the setting is a flag only.
    pub key: &'static str,
    /// Whether the flag is ignored when a configuration file is given.
    pub yields_to_file: bool,
    /// The default where a configuration file is given, if it is another.
    pub(crate) default_in_file: &'static str,
    /// Whether 0 in the file means the default.
    pub(crate) zero_is_default: bool,
    /// Whether only null in the file means the default.
    pub(crate) null_is_default: bool,
    pub(crate) field: fn(&mut T) -> &mut dyn Field,
}

impl<T> Setting<T> {
    pub const fn new(
        name: &'static str,
        default: &'static str,
        help: &'static str,
        field: fn(&mut T) -> &mut dyn Field,
    ) -> Setting<T> {
        Setting {
            name,
            default,
            help,
            key: "",
            yields_to_file: false,
            default_in_file: "",
            zero_is_default: false,
            null_is_default: false,
            field,
        }
    }

    /// The setting with its path in the configuration file.
    #[must_use]
    pub const fn key(self, key: &'static str) -> Setting<T> {
        Setting { key, ..self }
    }

    /// The setting, whose flag is ignored when a configuration file is given.
    #[must_use]
    pub const fn yields_to_file(self) -> Setting<T> {
        Setting {
            yields_to_file: true,
            ..self
        }
    }

    /// The setting with another default where a configuration file is given.
    #[must_use]
    pub const fn default_in_file(self, default: &'static str) -> Setting<T> {
        Setting {
            default_in_file: default,
            ..self
        }
    }

    /// The setting, for which only null in the file means the default: it is a pointer upstream.
    #[must_use]
    pub const fn null_is_default(self) -> Setting<T> {
        Setting {
            null_is_default: true,
            ..self
        }
    }

    /// The setting, for which 0 in the file means the default.
    #[must_use]
    pub const fn zero_is_default(self) -> Setting<T> {
        Setting {
            zero_is_default: true,
            ..self
        }
    }
}

/// Settings under one heading of the help. Sections of the same name are one.
pub struct Section<T: 'static> {
    pub name: &'static str,
    pub settings: &'static [Setting<T>],
}

/// A part of the options that several programs have, with the settings declared for it.
pub trait Part<P> {
    fn part(&mut self) -> &mut P;
}

/// A program and everything that can be set in it.
pub struct Program<T: 'static> {
    pub name: &'static str,
    pub about: &'static str,
    /// In the order of the help.
    pub sections: &'static [Section<T>],
    /// Flags and keys of upstream that it does not have.
    pub omissions: &'static [&'static [Omission]],
    /// The format of the file that `--config` names.
    pub format: Format,
}

/// The format of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The program has none.
    None,
    /// A mapping from the names of flags to values.
    Names,
    /// An object of a configuration API.
    Kind {
        api_version: &'static str,
        kind: &'static str,
        unknown: Unknown,
    },
}

/// What an unknown key of a configuration file leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    Error,
    Warning,
}

/// What a command line requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Request<T> {
    /// Run with these options. The warnings are about settings without effect.
    Run {
        options: T,
        warnings: Vec<String>,
    },
    Help,
    Version,
}

/// All mistakes of a command line and a configuration file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Mistakes(pub Vec<String>);

impl<T: Default> Program<T> {
    /// The options with their defaults.
    ///
    /// # Panics
    /// A declared default is not a text of its type.
    pub fn defaults(&self) -> T {
        let mut options = T::default();
        self.set_defaults(&mut options, |setting| setting.default);
        options
    }

    fn set_defaults(&self, options: &mut T, default: fn(&Setting<T>) -> &'static str) {
        for setting in self
            .settings()
            .filter(|setting| !default(setting).is_empty())
        {
            if let Err(why) = (setting.field)(options).set(default(setting)) {
                panic!("default of {}: {why}", setting.name);
            }
        }
    }

    /// Reads a command line and the configuration file that it names.
    ///
    /// # Errors
    /// All mistakes of both.
    pub fn read(
        &self,
        arguments: &[String],
        load: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Request<T>, Mistakes> {
        let mut mistakes = Vec::new();
        let mut warnings = Vec::new();
        let given = match command_line::scan(self, arguments, &mut warnings, &mut mistakes) {
            command_line::Scanned::Help => return Ok(Request::Help),
            command_line::Scanned::Version => return Ok(Request::Version),
            command_line::Scanned::Flags(given) => given,
        };

        let mut options = self.defaults();
        let files = match self.format {
            Format::None => Vec::new(),
            _ => files(&given, &mut mistakes),
        };
        if !files.is_empty() {
            self.set_defaults(&mut options, |setting| setting.default_in_file);
            let is_given = |name: &str| given.iter().any(|flag| flag.setting.name == name);
            let mut reader = file::Reader {
                program: self,
                is_given: &is_given,
                options: &mut options,
                warnings: &mut warnings,
                mistakes: &mut mistakes,
            };
            reader.read_files(&files, load);
        }

        self.apply(
            &given,
            !files.is_empty(),
            &mut options,
            &mut warnings,
            &mut mistakes,
        );

        if mistakes.is_empty() {
            Ok(Request::Run { options, warnings })
        } else {
            Err(Mistakes(mistakes))
        }
    }

    /// Sets the flags of a command line. The first of a name replaces what was there, further ones
    /// are added.
    fn apply(
        &self,
        given: &[Occurrence<'_, T>],
        has_file: bool,
        options: &mut T,
        warnings: &mut Vec<String>,
        mistakes: &mut Vec<String>,
    ) {
        for (index, flag) in given.iter().enumerate() {
            let name = flag.setting.name;
            if has_file && flag.setting.yields_to_file {
                warnings.push(format!(
                    "--{name} is ignored: the configuration file decides"
                ));
                continue;
            }

            let repeated = given[..index]
                .iter()
                .any(|other| other.setting.name == name);
            let field = (flag.setting.field)(options);
            let result = if repeated {
                field.add(flag.text)
            } else {
                field.set(flag.text)
            };
            if let Err(why) = result {
                mistakes.push(command_line::invalid(name, flag.text, &why));
            }
        }
    }

    /// The flags with their values in `options`, by name.
    pub fn flags(&self, options: &mut T) -> Vec<(String, String)> {
        let mut flags: Vec<_> = self
            .settings()
            .filter(|setting| !setting.name.is_empty())
            .map(|setting| (setting.name.to_owned(), (setting.field)(options).text()))
            .collect();
        flags.sort();
        flags
    }

    /// The configuration file that leads to `options`: all settings that have a key.
    pub fn configuration(&self, options: &mut T) -> Value {
        let mut file = Map::new();
        if let Format::Kind {
            api_version, kind, ..
        } = self.format
        {
            file.insert("apiVersion", api_version);
            file.insert("kind", kind);
        }

        for setting in self.settings().filter(|setting| !setting.key.is_empty()) {
            let value = (setting.field)(options).value();
            if value == Value::Null {
                continue;
            }

            let (parents, name) = setting.key.rsplit_once('.').unwrap_or(("", setting.key));
            let parents = parents.split('.').filter(|parent| !parent.is_empty());
            let map = parents.fold(&mut file, |map, parent| map.object_mut(parent));
            map.insert(name, value);
        }

        Value::Object(file)
    }

    /// The text of `--help`.
    pub fn help(&self) -> String {
        help::help(self)
    }

    /// How the help shows the type of a setting.
    pub fn kind(&self, setting: &Setting<T>) -> &'static str {
        (setting.field)(&mut T::default()).kind()
    }
}

impl<T> Program<T> {
    /// All settings, in the order of their declarations.
    pub fn settings(&self) -> impl Iterator<Item = &'static Setting<T>> + use<T> {
        let sections: &'static [Section<T>] = self.sections;
        sections.iter().flat_map(|section| section.settings)
    }

    pub(crate) fn omissions(&self) -> impl Iterator<Item = &'static Omission> + use<T> {
        let groups: &'static [&'static [Omission]] = self.omissions;
        groups.iter().copied().flatten()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'static Setting<T>> {
        self.settings()
            .find(|setting| !name.is_empty() && setting.name == name)
    }
}

/// The configuration file, and those of a directory of drop-ins by name.
fn files<T>(given: &[Occurrence<'_, T>], mistakes: &mut Vec<String>) -> Vec<PathBuf> {
    let named = |name: &str| {
        let flag = given.iter().rfind(|flag| flag.setting.name == name);
        let text = flag.map(|flag| flag.text);
        text.filter(|text| !text.is_empty()).map(PathBuf::from)
    };

    let mut files: Vec<PathBuf> = named(CONFIG).into_iter().collect();
    if let Some(folder) = named(CONFIG_DIR) {
        match file::drop_ins(&folder) {
            Ok(drop_ins) => files.extend(drop_ins),
            Err(error) => mistakes.push(format!("{}: {error}", folder.display())),
        }
    }
    files
}

/// The flags that name the configuration file, and a directory of further ones.
pub(crate) const CONFIG: &str = "config";
const CONFIG_DIR: &str = "config-dir";
