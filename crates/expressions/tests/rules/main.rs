//! Rules of custom resources and type-checking of policies, compared with upstream's own code through `tests/tools/cel-oracle`.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod access;
mod admission;
mod compare;
mod lists;
mod objects;
mod oracle;
mod type_check;
