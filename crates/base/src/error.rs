//! The text of an error with its causes.

use std::error::Error;
use std::fmt::Write as _;

/// The text of an error with all its causes, in one line: `cannot read x: permission denied`.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(text, ": {error}").expect("strings take everything");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Step(&'static str, Option<Box<Step>>);

    impl std::fmt::Display for Step {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Step {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|step| step as &(dyn Error + 'static))
        }
    }

    #[test]
    fn every_cause_follows_after_a_colon() {
        let root = Step("permission denied", None);
        assert_eq!(error_chain(&root), "permission denied");

        let read = Step("cannot read x", Some(Box::new(root)));
        let started = Step("cannot start", Some(Box::new(read)));
        assert_eq!(
            error_chain(&started),
            "cannot start: cannot read x: permission denied"
        );
    }
}
