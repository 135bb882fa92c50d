//! Objects in the versions of their owners.
//!
//! The engine does not convert. Where a manager owns fields in another version than the request's,
//! it calls the caller's conversion; owners in a version that no longer exists are dropped.

use std::borrow::Cow;

use super::types::Type;
use super::walk::{Duplicates, TypeErrors, validate};
use crate::{Text, Value};

/// The result of converting an object to another version.
#[derive(Clone, Debug)]
pub enum Conversion<'a> {
    /// The object, and the type of objects of that version.
    Done(Value, Type<'a>),
    /// There is no such version (any more).
    NoSuchVersion,
    /// Conversion failed, and why.
    Failed(String),
}

/// Converts an object to a version (`apps/v1`).
pub type Convert<'a> = dyn Fn(&Value, &str) -> Conversion<'a> + 'a;

/// Why an object could not be converted to a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    #[error("{reason}")]
    Conversion { version: Text, reason: String },
    #[error("{errors}")]
    Invalid { version: Text, errors: TypeErrors },
}

/// An object with its version and type.
#[derive(Clone, Debug)]
pub(super) struct Typed<'v, 'a> {
    pub(super) value: Cow<'v, Value>,
    pub(super) of: Type<'a>,
    pub(super) version: Text,
}

impl<'v, 'a> Typed<'v, 'a> {
    pub(super) fn new(value: &'v Value, of: Type<'a>, version: &str) -> Typed<'v, 'a> {
        Typed {
            value: Cow::Borrowed(value),
            of,
            version: Text::new(version),
        }
    }

    /// Another value of the same type.
    pub(super) fn with(&self, value: Value) -> Typed<'static, 'a> {
        Typed {
            value: Cow::Owned(value),
            of: self.of,
            version: self.version.clone(),
        }
    }

    /// The object in a version; `None`: there is no such version.
    pub(super) fn in_version(
        &self,
        version: &str,
        convert: &Convert<'a>,
    ) -> Result<Option<Typed<'_, 'a>>, VersionError> {
        if self.version == version {
            return Ok(Some(Typed {
                value: Cow::Borrowed(&self.value),
                of: self.of,
                version: self.version.clone(),
            }));
        }

        match convert(&self.value, version) {
            Conversion::NoSuchVersion => Ok(None),
            Conversion::Failed(reason) => Err(VersionError::Conversion {
                version: Text::new(version),
                reason,
            }),
            Conversion::Done(value, of) => {
                let invalid = |errors| VersionError::Invalid {
                    version: Text::new(version),
                    errors,
                };
                validate(&value, of, Duplicates::Refused).map_err(invalid)?;

                Ok(Some(Typed {
                    value: Cow::Owned(value),
                    of,
                    version: Text::new(version),
                }))
            }
        }
    }
}
