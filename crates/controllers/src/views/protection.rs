//! Finalizers that keep an object while it is in use: which objects lack theirs, and which wait to
//! lose it.

use coracle_api::meta::ObjectMeta;

/// How an object stands with a finalizer that protects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// As it should.
    Settled,
    /// It lacks it.
    Missing,
    /// It is going, and only waits until nobody uses it.
    Waiting,
}

impl Protection {
    /// How an object stands.
    pub fn of(meta: ObjectMeta<'_>, finalizer: &str) -> Protection {
        match (meta.is_being_deleted(), meta.has_finalizer(finalizer)) {
            (false, false) => Protection::Missing,
            (true, true) => Protection::Waiting,
            (false, true) | (true, false) => Protection::Settled,
        }
    }
}
