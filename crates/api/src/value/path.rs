//! The path of a field: `spec.containers[0].ports[1].containerPort`.
//!
//! A path is built during a walk as links on the stack and costs nothing until it is printed.

use std::fmt::{self, Write};

/// A path from the root of an object.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    Root,
    /// A member of a struct: `.name`.
    Field(&'a Path<'a>, &'a str),
    /// An element of a list: `[0]`.
    Index(&'a Path<'a>, usize),
    /// A key of a map: `[key]`.
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    pub fn field(&'a self, name: &'a str) -> Path<'a> {
        Path::Field(self, name)
    }

    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    /// The steps from the root to here.
    pub(crate) fn links(&self) -> Vec<&Path<'a>> {
        let mut links = Vec::new();
        let mut at = self;
        while let Path::Field(up, _) | Path::Index(up, _) | Path::Key(up, _) = at {
            links.push(at);
            at = up;
        }
        links.reverse();
        links
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(out, |out, key| write!(out, "[{key}]"))
    }
}

/// A path with keys of maps printed as fields.
struct WithDots<'a>(&'a Path<'a>);

impl fmt::Display for WithDots<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(out, |out, key| write!(out, ".{key}"))
    }
}

impl Path<'_> {
    /// The path with keys of maps printed as fields: a dot precedes each, even the first.
    pub(crate) fn with_dots(&self) -> impl fmt::Display {
        WithDots(self)
    }

    /// Writes the path, with keys of maps as `key` has them. A long path is truncated: a key may be
    /// as long as the object, and every error below it would repeat it.
    fn write(
        &self,
        out: &mut fmt::Formatter<'_>,
        key: impl Fn(&mut Truncating<'_, '_>, &str) -> fmt::Result,
    ) -> fmt::Result {
        let mut short = Truncating {
            out,
            left: MOST_BYTES,
        };

        for (place, link) in self.links().into_iter().enumerate() {
            let written = match link {
                Path::Field(_, name) if place == 0 => write!(short, "{name}"),
                Path::Field(_, name) => write!(short, ".{name}"),
                Path::Index(_, index) => write!(short, "[{index}]"),
                Path::Key(_, name) => key(&mut short, name),
                Path::Root => Ok(()),
            };

            if short.left == 0 {
                return Ok(());
            }

            written?;
        }

        Ok(())
    }
}

/// Maximum length of a printed path, without the truncation mark.
const MOST_BYTES: usize = 4096;

/// Writes a limited number of bytes.
struct Truncating<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    /// 0: the limit is reached, and nothing more is written.
    left: usize,
}

impl Write for Truncating<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() < self.left {
            self.left -= text.len();
            return self.out.write_str(text);
        }
        if self.left > 0 {
            let end = text.floor_char_boundary(self.left);
            self.left = 0;
            self.out.write_str(&text[..end])?;
            self.out.write_str("…")?;
        }
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prints_as_users_write_it() {
        let root = Path::Root;
        let spec = root.field("spec");
        let containers = spec.field("containers");
        let first = containers.index(0);
        assert_eq!(first.field("name").to_string(), "spec.containers[0].name");
        let metadata = root.field("metadata");
        let labels = metadata.field("labels");
        assert_eq!(labels.key("a/b").to_string(), "metadata.labels[a/b]");
        assert_eq!(root.to_string(), "");
    }

    #[test]
    fn a_printed_path_is_limited_in_length() {
        let long = "ä".repeat(100_000);
        let (root, inner) = (Path::Root, "x".repeat(100_000));
        let spec = root.field("spec");
        let key = spec.key(&long);

        let shown = key.field(&inner).to_string();
        assert!(
            shown.starts_with("spec[ää") && shown.ends_with("ä…"),
            "{}",
            shown.len()
        );

        assert!(
            (MOST_BYTES - 4..MOST_BYTES + 4).contains(&shown.len()),
            "{}",
            shown.len()
        );
    }
}
