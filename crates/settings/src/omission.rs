//! Flags and keys of upstream that a program does not have, and why.

use crate::command_line;

/// Flags and keys that are left out for one reason.
#[derive(Debug)]
pub struct Omission {
    /// Why they do not exist here. Completes a sentence: "…: there is no cloud provider".
    pub why: &'static str,
    pub treatment: Treatment,
    /// Flags that may be given without a value.
    pub switches: &'static [&'static str],
    /// Flags that need a value.
    pub values: &'static [&'static str],
    /// Keys of the configuration file, with everything below them.
    pub keys: &'static [&'static str],
}

impl Omission {
    /// An omission without names.
    pub const NONE: Omission = Omission {
        why: "",
        treatment: Treatment::Refused,
        switches: &[],
        values: &[],
        keys: &[],
    };

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.switches.contains(&name) || self.values.contains(&name)
    }

    pub(crate) fn has_key(&self, path: &str) -> bool {
        self.keys.contains(&path)
    }

    /// Treats a flag or key that was given with the value `text`.
    pub(crate) fn treat(
        &self,
        what: &str,
        text: &str,
        warnings: &mut Vec<String>,
        mistakes: &mut Vec<String>,
    ) {
        let why = self.why;
        match self.treatment {
            Treatment::Refused => mistakes.push(format!("{what} is not supported: {why}")),
            Treatment::Ignored => warnings.push(format!("{what} has no effect: {why}")),
            Treatment::Only(values) if values.contains(&text) => {}
            Treatment::Only(values) => {
                let accepted = command_line::alternatives(values);
                mistakes.push(format!("{what} accepts only {accepted}: {why}"));
            }
        }
    }
}

/// What happens when an omitted flag is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is an error.
    Refused,
    /// It is accepted with a warning.
    Ignored,
    /// It is accepted with these values, which describe what happens anyway.
    Only(&'static [&'static str]),
}
