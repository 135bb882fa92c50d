//! Where in an object something is: `spec.containers[0].ports[1].containerPort`.
//!
//! A path is built on the way down as links on the stack and costs nothing until somebody prints it.

use std::fmt;

/// A place below the root of an object.
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
        for (place, link) in self.links().into_iter().enumerate() {
            match link {
                Path::Field(_, name) if place == 0 => write!(out, "{name}")?,
                Path::Field(_, name) => write!(out, ".{name}")?,
                Path::Index(_, index) => write!(out, "[{index}]")?,
                Path::Key(_, key) => write!(out, "[{key}]")?,
                Path::Root => {}
            }
        }
        Ok(())
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
}
