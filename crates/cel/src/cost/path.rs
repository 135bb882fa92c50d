//! The way from a variable to a part of it: `self`, `spec`, `@items`.
//!
//! Upstream's paths are slices of Go, and two paths that grow from one may share their memory: the
//! later overwrites what the earlier appended. In `x.a.all(y, x.b == '')` the size of `x.a` is then
//! taken from `x.b`. Users see the estimates, so the sharing is kept: a path is a length over
//! memory that its siblings may change.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A path; empty where a value does not come from a variable.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    memory: Option<Rc<RefCell<Memory>>>,
    length: usize,
}

#[derive(Debug)]
struct Memory {
    names: Vec<Arc<str>>,
    capacity: usize,
}

impl Path {
    pub(super) fn of(variable: &Arc<str>) -> Self {
        Self::default().append(Arc::clone(variable))
    }

    /// The path with one more name: in the same memory, where that has room.
    pub(super) fn append(&self, name: Arc<str>) -> Self {
        let length = self.length + 1;
        if let Some(memory) = &self.memory {
            let mut shared = memory.borrow_mut();
            if self.length < shared.capacity {
                match shared.names.get_mut(self.length) {
                    Some(place) => *place = name,
                    None => shared.names.push(name),
                }
                return Self {
                    memory: Some(Rc::clone(memory)),
                    length,
                };
            }
        }

        let mut names = self.names();
        names.push(name);
        Self {
            memory: Some(Rc::new(RefCell::new(Memory {
                names,
                // Go doubles a slice's capacity, and these are sizes its allocator has.
                capacity: (self.length * 2).max(1),
            }))),
            length,
        }
    }

    /// What it says now.
    pub(super) fn names(&self) -> Vec<Arc<str>> {
        match &self.memory {
            Some(memory) => memory.borrow().names[..self.length].to_vec(),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        path.names().join(".")
    }

    #[test]
    fn a_later_path_overwrites_an_earlier_one_only_in_shared_memory() {
        let element = Path::of(&"self".into())
            .append("l".into())
            .append("@items".into());
        let first = element.append("a".into());
        assert_eq!(text(&first), "self.l.@items.a");
        let second = element.append("b".into());
        assert_eq!(
            text(&first),
            "self.l.@items.b",
            "four names fit where three are"
        );
        assert_eq!(text(&second), "self.l.@items.b");

        let deep = first.append("c".into());
        let other = second.append("d".into());
        assert_eq!(text(&deep), "self.l.@items.b.c");
        assert_eq!(text(&other), "self.l.@items.b.d");
    }
}
