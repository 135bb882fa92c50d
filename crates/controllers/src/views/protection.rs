//! Protection finalizers, which keep an object while it is in use: which objects lack theirs, and
//! which wait to lose it.

use coracle_api::meta::ObjectMeta;

/// The state of an object with regard to its protection finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing to do.
    Settled,
    /// The finalizer is missing.
    Missing,
    /// It is being deleted and waits until it is not in use.
    Waiting,
}

impl Protection {
    /// The state of an object.
    pub fn of(meta: ObjectMeta<'_>, finalizer: &str) -> Protection {
        match (meta.is_being_deleted(), meta.has_finalizer(finalizer)) {
            (false, false) => Protection::Missing,
            (true, true) => Protection::Waiting,
            (false, true) | (true, false) => Protection::Settled,
        }
    }
}
