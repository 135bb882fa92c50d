//! What is logged.

use coracle_api::Value;
use coracle_settings::{Field, Part, Patterns, Setting};

/// How much is logged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs {
    pub(crate) verbosity: i32,
    pub(crate) modules: Patterns,
    pub(crate) format: LogFormat,
}

/// How lines look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

impl Field for LogFormat {
    fn kind(&self) -> &'static str {
        "string"
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        *self = match text {
            "text" => LogFormat::Text,
            "json" => LogFormat::Json,
            _ => return Err("Unsupported log format".to_owned()),
        };
        Ok(())
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        self.set(value.as_str().unwrap_or_default())
    }

    fn value(&self) -> Value {
        Value::from(match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        })
    }
}

pub(crate) const fn logs<T: Part<Logs>>() -> [Setting<T>; 3] {
    [
        Setting::new(
            "logging-format",
            "text",
            "Format of log lines: text or json",
            |options: &mut T| &mut options.part().format,
        )
        .key("logging.format"),
        Setting::new(
            "v",
            "0",
            "Log level: -1 logs warnings and errors, -2 errors, 4 and above details, 6 and above everything",
            |options: &mut T| &mut options.part().verbosity,
        )
        .key("logging.verbosity"),
        Setting::new(
            "vmodule",
            "",
            "Log levels of single source files, by patterns of their names without .rs; a mod.rs has the name of its \
             folder: scheduler*=4,queue=6",
            |options: &mut T| &mut options.part().modules,
        )
        .key("logging.vmodule"),
    ]
}
