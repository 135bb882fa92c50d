//! Operations on files and trees that untrusted programs can write.
//!
//! A container may nest directories deeper than any stack or path limit, put a pipe or a symlink
//! where a file is expected, and change both at any moment. So nothing here recurses, follows a
//! symlink, crosses into a mount or blocks on a pipe; descriptors and memory are bounded whatever
//! the tree looks like. All functions block on disk I/O: call them on blocking threads, never on
//! async worker threads.
//!
//! [`remove_tree`] removes, [`walk`] visits, [`read`] reads, [`private`] creates files that others
//! must not read.

mod open;
pub mod private;
pub mod read;
mod remove;
mod trail;
mod walk;

pub use open::open_folder;
pub use remove::{remove_tree, remove_tree_at};
pub use walk::{Usage, Visitor, WalkEntry, usage, walk};
