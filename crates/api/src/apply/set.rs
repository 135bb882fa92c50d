//! Field sets, the representation of ownership.
//!
//! A set is a tree of path elements, each level sorted; an element is a member of the set, or leads
//! to members, or both. All operations walk two trees at once and are linear in their sizes.

use super::element::{Element, FieldPath};
use crate::fuzz::steps;
use std::cmp::Ordering;

/// A set of fields of an object. The object itself is never a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set {
    pub(super) nodes: Vec<Node>,
}

/// One path element of a set: a member, or the way to members.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) element: Element,
    pub(super) member: bool,
    pub(super) below: Set,
}

impl Node {
    /// Whether the node is a member or leads to one.
    fn is_used(&self) -> bool {
        self.member || !self.below.is_empty()
    }
}

impl Set {
    pub const fn new() -> Set {
        Set { nodes: Vec::new() }
    }

    pub fn of(paths: impl IntoIterator<Item = FieldPath>) -> Set {
        let mut set = Set::new();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.nodes
            .iter()
            .map(|node| usize::from(node.member) + node.below.len())
            .sum()
    }

    /// Adds the field at a path, not its parents. The empty path is the object itself, which is
    /// never a member.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let node = self.node_mut(first);
        match rest {
            [] => node.member = true,
            rest => node.below.insert(rest),
        }
    }

    pub fn has(&self, path: &[Element]) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return false;
        };
        let Some(node) = self.node(first) else {
            return false;
        };
        match rest {
            [] => node.member,
            rest => node.below.has(rest),
        }
    }

    /// Members of either.
    pub fn union(&self, other: &Set) -> Set {
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        zip(&self.nodes, &other.nodes, |ours, theirs| {
            match (ours, theirs) {
                (Some(ours), Some(theirs)) => nodes.push(Node {
                    element: ours.element.clone(),
                    member: ours.member || theirs.member,
                    below: ours.below.union(&theirs.below),
                }),
                (Some(only), None) | (None, Some(only)) => nodes.push(only.clone()),
                (None, None) => {}
            }
        });

        Set { nodes }
    }

    /// Members of both.
    pub fn intersection(&self, other: &Set) -> Set {
        self.combined(other, |ours, theirs| {
            let theirs = theirs?;
            Some(Node {
                element: ours.element.clone(),
                member: ours.member && theirs.member,
                below: ours.below.intersection(&theirs.below),
            })
        })
    }

    /// Members of this set and not of the other. A field stays though fields below it are removed,
    /// and the other way round.
    pub fn difference(&self, other: &Set) -> Set {
        self.combined(other, |ours, theirs| {
            let Some(theirs) = theirs else {
                return Some(ours.clone());
            };
            Some(Node {
                element: ours.element.clone(),
                member: ours.member && !theirs.member,
                below: ours.below.difference(&theirs.below),
            })
        })
    }

    /// Members of this set that are neither members of the other nor below one.
    pub fn recursive_difference(&self, other: &Set) -> Set {
        self.combined(other, |ours, theirs| match theirs {
            None => Some(ours.clone()),
            Some(theirs) if theirs.member => None,
            Some(theirs) => Some(Node {
                element: ours.element.clone(),
                member: ours.member,
                below: ours.below.recursive_difference(&theirs.below),
            }),
        })
    }

    /// The members without members below them.
    pub fn leaves(&self) -> Set {
        let leaf = |node: &Node| Node {
            element: node.element.clone(),
            member: node.member && node.below.is_empty(),
            below: node.below.leaves(),
        };
        Set {
            nodes: self.nodes.iter().map(leaf).collect(),
        }
    }

    /// Every member, level by level, in the order of conflict messages.
    pub fn paths(&self) -> Vec<FieldPath> {
        self.paths_within(&mut usize::MAX.clone())
    }

    /// As [`Set::paths`], limited to `left` bytes: each path repeats all its parents.
    pub(super) fn paths_within(&self, left: &mut usize) -> Vec<FieldPath> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), left, &mut paths);
        paths
    }

    fn collect_paths<'s>(
        &'s self,
        above: &mut Vec<&'s Element>,
        left: &mut usize,
        paths: &mut Vec<FieldPath>,
    ) {
        for node in self.nodes.iter().filter(|node| node.member) {
            if *left == 0 {
                return;
            }

            let path = FieldPath(
                above
                    .iter()
                    .copied()
                    .chain([&node.element])
                    .cloned()
                    .collect(),
            );
            *left = left.saturating_sub(path.bytes());

            paths.push(path);
        }

        for node in &self.nodes {
            above.push(&node.element);
            node.below.collect_paths(above, left, paths);
            above.pop();
        }
    }

    pub(super) fn node(&self, element: &Element) -> Option<&Node> {
        self.find(element).ok().map(|index| &self.nodes[index])
    }

    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        let order = |node: &Node| match &node.element {
            Element::Field(field) => field.as_str().cmp(name),
            _ => Ordering::Greater,
        };
        self.nodes
            .binary_search_by(order)
            .ok()
            .map(|index| &self.nodes[index])
    }

    /// Appends a node, unless it is unused. The caller keeps the order.
    pub(super) fn push(&mut self, element: Element, member: bool, below: Set) {
        let node = Node {
            element,
            member,
            below,
        };

        if node.is_used() {
            steps::count(1);
            debug_assert!(
                self.nodes
                    .last()
                    .is_none_or(|last| last.element < node.element),
                "steps come in order"
            );
            self.nodes.push(node);
        }
    }

    /// A node, created if it is absent. The caller must make it a member or give it members.
    pub(super) fn node_mut(&mut self, element: &Element) -> &mut Node {
        let index = match self.find(element) {
            Ok(index) => index,
            Err(index) => {
                self.nodes.insert(
                    index,
                    Node {
                        element: element.clone(),
                        member: false,
                        below: Set::new(),
                    },
                );

                index
            }
        };

        &mut self.nodes[index]
    }

    fn find(&self, element: &Element) -> Result<usize, usize> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
    }

    /// Our nodes, each changed next to the other set's node of the same element.
    fn combined(&self, other: &Set, change: impl Fn(&Node, Option<&Node>) -> Option<Node>) -> Set {
        let mut nodes = Vec::new();
        zip(&self.nodes, &other.nodes, |ours, theirs| {
            if let Some(ours) = ours {
                nodes.extend(change(ours, theirs).filter(Node::is_used));
            }
        });
        Set { nodes }
    }
}

/// Iterates over two sorted levels side by side.
fn zip<'n>(
    a: &'n [Node],
    b: &'n [Node],
    mut visit: impl FnMut(Option<&'n Node>, Option<&'n Node>),
) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    loop {
        steps::count(1);
        let order = match (a.peek(), b.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.element.cmp(&b.element),
        };
        visit(a.next_if(|_| order.is_le()), b.next_if(|_| order.is_ge()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set of dotted paths.
    fn set(paths: &str) -> Set {
        let path = |text: &str| FieldPath::fields(&text.split('.').collect::<Vec<_>>());
        Set::of(paths.split_whitespace().map(path))
    }

    #[test]
    fn set_operations() {
        type Operation = fn(&Set, &Set) -> Set;

        let check = |name: &str, operation: Operation, a: &str, b: &str, expected: &str| {
            assert_eq!(
                operation(&set(a), &set(b)),
                set(expected),
                "{name} of {a:?} and {b:?}"
            );
        };

        check("union", Set::union, "a a.b", "a.c d", "a a.b a.c d");
        check("union", Set::union, "", "a.b", "a.b");
        check(
            "intersection",
            Set::intersection,
            "a a.b c",
            "a.b c d",
            "a.b c",
        );

        check("intersection", Set::intersection, "a", "a.b", "");
        check("intersection", Set::intersection, "a.b", "a.c", "");
        check("difference", Set::difference, "a a.b a.c", "a", "a.b a.c");

        check("difference", Set::difference, "a a.b", "a.b", "a");
        check("difference", Set::difference, "a.b c", "a.b", "c");
        check(
            "recursive difference",
            Set::recursive_difference,
            "a a.b a.c d",
            "a",
            "d",
        );

        check(
            "recursive difference",
            Set::recursive_difference,
            "a a.b a.c.d",
            "a.c",
            "a a.b",
        );

        check(
            "leaves",
            |a, _| a.leaves(),
            "a a.b c c.d c.d.e f",
            "",
            "a.b c.d.e f",
        );
    }

    #[test]
    fn members_are_found_counted_and_listed() {
        let set = set("b a a.c a.b.d");
        assert_eq!(
            (set.len(), set.is_empty(), Set::new().is_empty()),
            (4, false, true)
        );
        let has = |path: &str| set.has(&FieldPath::fields(&path.split('.').collect::<Vec<_>>()).0);
        assert!(has("a") && has("a.c") && has("a.b.d"));
        assert!(!has("a.b") && !has("c") && !set.has(&[]));
        let listed: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
        assert_eq!(listed, [".a", ".b", ".a.c", ".a.b.d"]);
    }

    #[test]
    fn the_object_itself_is_never_a_member() {
        assert!(Set::of([FieldPath::default()]).is_empty());
    }
}
