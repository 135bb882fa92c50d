//! Operations on files and trees that untrusted programs can write.
//!
//! A container may nest folders deeper than any stack or path, put a pipe or a link where a file is
//! expected, and change both at any moment. So nothing in here recurses, follows a link, crosses
//! into a mount or waits for the other end of a pipe; descriptors and memory are bounded whatever
//! the tree looks like. All of it waits for disks: it belongs on threads that may wait, never on
//! those that serve requests.
//!
//! [`remove_tree`] removes, [`walk`] visits, [`read`] reads, [`private`] makes what others must not
//! read.

mod open;
pub mod private;
pub mod read;
mod remove;
mod trail;
mod walk;

pub use open::open_folder;
pub use remove::{remove_tree, remove_tree_at};
pub use walk::{Found, Usage, Visitor, usage, walk};
