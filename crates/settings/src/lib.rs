//! Settings of a program, each declared once: name, type, default, help, and key in the
//! configuration file.
//!
//! A [`Program`] has [`Section`]s of [`Setting`]s. A setting says which field of the program's
//! options it sets; the type of the field ([`Field`]) decides how a text is read. [`Program::read`]
//! makes the options: defaults first, then the configuration file (`file`), then the command line
//! (`command_line`). All mistakes are reported together. Spelling and error texts are those of
//! upstream's components. Flags of upstream that a program does not have are in [`Omission`]s,
//! with the reason. [`Program::help`] and [`document`] print what is declared.

mod command_line;
pub mod document;
mod field;
mod file;
mod help;
mod omission;
mod program;
#[cfg(test)]
mod tests;

pub use field::{Each, Element, Field, OptionalText, Pairs, Pattern, Patterns, PortRange, Tree};
pub use omission::{Omission, Treatment};
pub use program::{Format, Mistakes, Part, Program, Request, Section, Setting, Unknown};
