//! What a mutating plugin remembers of the webhooks or policies that it has invoked, from its first
//! run to its second.

use std::collections::BTreeSet;

use coracle_api::Value;

/// Those that want it are invoked once more, if the object was changed after them.
#[derive(Default)]
pub(super) struct Invoked {
    /// The object after the last of them.
    output: Option<Value>,
    /// Invoked, and to be invoked again if the object changes.
    waiting: BTreeSet<String>,
    /// To be invoked again.
    due: BTreeSet<String>,
}

impl Invoked {
    /// One of these was invoked that may be invoked again.
    pub(super) fn add(&mut self, which: &str) {
        self.waiting.insert(which.to_owned());
    }

    /// The object was changed after those so far.
    pub(super) fn changed(&mut self) {
        self.due.append(&mut self.waiting);
    }

    /// Whether one is to be invoked in the second run.
    pub(super) fn is_due(&self, which: &str) -> bool {
        self.due.contains(which)
    }

    /// Begins the second run: other plugins may have changed the object since.
    pub(super) fn compare(&mut self, object: &Value) {
        if self.output.as_ref() != Some(object) {
            self.changed();
        }
    }

    /// Ends a run.
    pub(super) fn end(&mut self, object: &Value) {
        self.output = Some(object.clone());
    }
}
