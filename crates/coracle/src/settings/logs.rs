//! What is logged.

use coracle_settings::{Part, Patterns, Setting};

/// How much is logged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs {
    pub(crate) verbosity: i32,
    pub(crate) modules: Patterns,
}

pub(crate) const fn logs<T: Part<Logs>>() -> [Setting<T>; 2] {
    [
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
