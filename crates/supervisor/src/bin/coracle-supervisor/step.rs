//! The error of a failed step: what was attempted, and the errno.

use coracle_supervisor::protocol::Failure;
use rustix::io::Errno;

#[derive(Debug)]
pub(crate) struct StepError {
    text: String,
    errno: Errno,
}

impl StepError {
    pub(crate) fn new(text: impl Into<String>, errno: Errno) -> Self {
        Self {
            text: text.into(),
            errno,
        }
    }
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Failure::Step {
            text: error.text,
            errno: error.errno.raw_os_error(),
        }
    }
}

/// Adds the failed step to an error.
pub(crate) trait During<T> {
    fn during(self, step: impl FnOnce() -> String) -> Result<T, StepError>;
}

impl<T> During<T> for rustix::io::Result<T> {
    fn during(self, step: impl FnOnce() -> String) -> Result<T, StepError> {
        self.map_err(|errno| StepError::new(step(), errno))
    }
}

impl<T> During<T> for std::io::Result<T> {
    fn during(self, step: impl FnOnce() -> String) -> Result<T, StepError> {
        self.map_err(|error| {
            StepError::new(step(), Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })
    }
}
