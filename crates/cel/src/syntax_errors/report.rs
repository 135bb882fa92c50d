//! Syntax errors, up to the number at which cel-go gives up.

use std::sync::Arc;

use crate::source::{Issues, Location, Source};

/// How many errors are reported before reading stops.
const MOST: usize = 100;

pub(super) struct Reporter<'a> {
    source: Arc<Source>,
    issues: &'a mut Issues,
    reported: usize,
    halted: bool,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(source: &Arc<Source>, issues: &'a mut Issues) -> Self {
        Self {
            source: Arc::clone(source),
            issues,
            reported: 0,
            halted: false,
        }
    }

    /// Reading stopped for good.
    pub(super) fn halted(&self) -> bool {
        self.halted
    }

    /// Stops reading, for a reason that has no place.
    pub(super) fn halt(&mut self, message: &str) {
        if !self.halted {
            self.issues.report(Location::NONE, message);
        }
        self.halted = true;
    }

    /// Stops reading; why is reported.
    pub(super) fn stop(&mut self) {
        self.halted = true;
    }

    /// Reports a syntax error.
    pub(super) fn syntax(&mut self, offset: i32, message: &str) {
        if self.halted {
            return;
        }
        let location = match u32::try_from(offset) {
            Ok(offset) => self.source.location(offset),
            Err(_) => Location {
                line: 1,
                column: -1,
            },
        };
        if self.reported == MOST {
            self.issues.report(
                location,
                format!("Syntax error: More than {MOST} syntax errors"),
            );
            self.halted = true;
            return;
        }
        self.reported += 1;
        self.issues
            .report(location, format!("Syntax error: {}", reserved(message)));
    }
}

/// A reserved word after a dot is reported as a missing name.
fn reserved(message: &str) -> String {
    const NO_VIABLE: &str = "no viable alternative at input '";
    for word in ["true", "false", "null"] {
        let ending = format!("{word}'");
        if let Some(before) = message.strip_suffix(&ending)
            && let Some(input) = before.strip_prefix(NO_VIABLE)
            && input.chars().count() == 1
        {
            return format!("mismatched input '{word}' expecting IDENTIFIER");
        }
    }
    message.into()
}
