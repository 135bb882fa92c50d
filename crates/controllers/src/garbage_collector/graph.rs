//! The graph of owners and dependents, built from informers. Pure: every change returns the objects
//! to process.
//!
//! An owner known only from references is *virtual*: its informer may be behind, or it was deleted,
//! or never existed. So a virtual owner is queued to be verified, and if it does not exist this
//! comes back as [`Graph::absent`]. References may also disagree with each other or with the object
//! about its name and namespace: then dependents with wrong references are processed one by one,
//! and those with right ones keep their owner.

use std::collections::HashMap;
use std::sync::Arc;

use coracle_client::{Cached, Resource};

use super::absent::AbsentOwners;
use super::identity::{Id, Identity};
use super::node::{Node, Source};
use crate::views::{Owned, Owner};

/// All objects and their owners.
#[derive(Default)]
pub struct Graph {
    nodes: HashMap<Id, Node>,
    /// Owners that are known to be absent.
    pub absent: AbsentOwners,
}

/// The effects of a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Objects to process: may they stay?
    pub look_at: Vec<Id>,
    /// An object to process again, with backoff.
    pub requeue_after: Option<Id>,
    /// An object whose dependents are to be orphaned.
    pub orphan: Option<Id>,
    /// Dependents that name an owner of another namespace, with that owner.
    pub misplaced: Vec<(Identity, Identity)>,
}

impl Graph {
    /// A node.
    pub fn get(&self, id: &Id) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The dependents of a node.
    pub fn dependents<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (&'a Id, &'a Node)> {
        node.dependents
            .iter()
            .filter_map(|id| self.nodes.get_key_value(id))
    }

    /// An informer reported an object, new or changed.
    pub fn observed(&mut self, of: &Arc<Resource>, object: &Arc<Cached<Owned>>) -> Effects {
        let mut effects = Effects::default();
        let id = Id::of(&object.uid);
        let known = Source::Informer {
            of: of.clone(),
            object: object.clone(),
        };

        let before = match self.nodes.get_mut(&id) {
            None => {
                self.nodes.insert(id.clone(), Node::new(known));
                None
            }
            Some(node) => {
                let before = std::mem::replace(&mut node.source, known);
                if let Source::Reference(said) = &before {
                    self.correct(&id, said, &mut effects);
                }
                Some(before)
            }
        };

        let before = match before {
            Some(Source::Informer { object, .. }) => Some(object),
            _ => None,
        };

        if before
            .as_ref()
            .is_none_or(|before| before.owners != object.owners)
        {
            self.relink(&id, before.as_deref(), object, &mut effects);
        }

        self.transition(&id, before.as_deref(), object, &mut effects);

        effects
    }

    /// An informer reported a deletion.
    pub fn deleted(&mut self, object: &Cached<Owned>) -> Effects {
        let mut effects = Effects::default();
        let id = Id::of(&object.uid);
        if let Some(identity) = self.nodes.get(&id).map(Node::identity) {
            self.remove(&id, &identity, &mut effects);
        }
        effects
    }

    /// The server has no such object.
    pub fn absent(&mut self, identity: &Identity) -> Effects {
        let mut effects = Effects::default();
        let id = Id::of(&identity.uid);
        let Some(node) = self.nodes.get(&id) else {
            return effects;
        };
        let is_same = node.identity() == *identity;

        let (right, wrong) = self.by_reference(node, identity);
        if node.is_virtual() && wrong.is_empty() || !node.is_virtual() && is_same {
            self.remove(&id, identity, &mut effects);
            return effects;
        }

        // It may still exist under another name: only dependents that used this one are concerned.
        let next = (node.is_virtual() && is_same)
            .then(|| self.alternative(&wrong, identity))
            .flatten();

        if !right.is_empty() {
            self.absent.add(identity);
            effects.look_at = right;
        }

        if let Some(next) = next {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.source = Source::Reference(Box::new(next));
            }
            effects.requeue_after = Some(id);
        }

        effects
    }

    /// A virtual object was reported by an informer: dependents with wrong references are
    /// processed.
    fn correct(&mut self, id: &Id, said: &Identity, effects: &mut Effects) {
        let node = &self.nodes[id];
        let identity = node.identity();
        if identity == *said {
            return;
        }

        let (_, wrong) = self.by_reference(node, &identity);
        for dependent in wrong {
            let node = &self.nodes[&dependent];
            if !identity.namespace.is_empty() && node.namespace() != identity.namespace {
                effects.misplaced.extend(misplaced(node, &identity.uid));
            }
            effects.look_at.push(dependent);
        }
    }

    /// Follows the owner references of an object: removed, added, and no longer blocking.
    fn relink(
        &mut self,
        id: &Id,
        old: Option<&Cached<Owned>>,
        new: &Cached<Owned>,
        effects: &mut Effects,
    ) {
        let before = old.map(|old| &*old.owners).unwrap_or_default();
        let find =
            |owners: &[Owner], uid: &str| owners.iter().find(|owner| owner.uid == uid).cloned();
        for owner in before {
            let now = find(&new.owners, &owner.uid);

            // The owner's deletion may wait for this object alone.
            if owner.blocks && !now.as_ref().is_some_and(|now| now.blocks) {
                effects.look_at.extend(
                    self.nodes
                        .contains_key(&Id::of(&owner.uid))
                        .then(|| Id::of(&owner.uid)),
                );
            }

            if now.is_none() {
                self.unlink(id, &owner.uid);
            }
        }

        let mut is_doubtful = false;
        for owner in new
            .owners
            .iter()
            .filter(|owner| find(before, &owner.uid).is_none())
        {
            is_doubtful |= self.link(id, new, owner, effects);
        }

        if is_doubtful {
            effects.look_at.push(id.clone());
        }
    }

    /// Adds an object as dependent of an owner. Returns whether the reference may be wrong.
    fn link(
        &mut self,
        id: &Id,
        object: &Cached<Owned>,
        owner: &Owner,
        effects: &mut Effects,
    ) -> bool {
        let owner_id = Id::of(&owner.uid);
        let namespace = &object.key.namespace;
        if !self.nodes.contains_key(&owner_id) {
            let said = Identity::of_owner(owner, namespace);
            self.nodes.insert(
                owner_id.clone(),
                Node::new(Source::Reference(Box::new(said))),
            );
            // Verify that it exists.
            effects.look_at.push(owner_id.clone());
        }

        let Some(found) = self.nodes.get_mut(&owner_id) else {
            return false;
        };
        found.dependents.insert(id.clone());

        let identity = found.identity();
        if !identity.namespace.is_empty() && identity.namespace != *namespace {
            if !found.is_virtual() {
                effects
                    .misplaced
                    .extend(misplaced(&self.nodes[id], &owner.uid));
            }
            return true;
        }

        !identity.is_named_by(owner)
    }

    fn unlink(&mut self, id: &Id, owner: &str) {
        if let Some(node) = self.nodes.get_mut(&Id::of(owner)) {
            node.dependents.remove(id);
        }
    }

    /// Takes effect once, when an object's deletion starts to concern its dependents.
    fn transition(
        &mut self,
        id: &Id,
        old: Option<&Cached<Owned>>,
        new: &Owned,
        effects: &mut Effects,
    ) {
        if new.orphans_dependents() && !old.is_some_and(|old| old.orphans_dependents()) {
            effects.orphan = Some(id.clone());
        } else if new.deletes_dependents() && !old.is_some_and(|old| old.deletes_dependents()) {
            effects
                .look_at
                .extend(self.nodes[id].dependents.iter().cloned());
            effects.look_at.push(id.clone());
        }
    }

    /// Removes a node; `identity` is remembered as absent.
    fn remove(&mut self, id: &Id, identity: &Identity, effects: &mut Effects) {
        let Some(node) = self.nodes.remove(id) else {
            return;
        };
        for owner in node.owners() {
            self.unlink(id, &owner.uid);
            let owner = Id::of(&owner.uid);
            // Its deletion may have waited for this one.
            if self.nodes.get(&owner).is_some_and(Node::deletes_dependents) {
                effects.look_at.push(owner);
            }
        }

        if !node.dependents.is_empty() {
            self.absent.add(identity);
            effects.look_at.extend(node.dependents);
        }
    }

    /// The dependents with right and with wrong references to `owner`; with two references an
    /// object can be in both.
    fn by_reference(&self, node: &Node, owner: &Identity) -> (Vec<Id>, Vec<Id>) {
        let (mut right, mut wrong) = (Vec::new(), Vec::new());
        for (id, dependent) in self.dependents(node) {
            let is_elsewhere =
                !owner.namespace.is_empty() && dependent.namespace() != owner.namespace;
            let mut named = dependent
                .owners()
                .iter()
                .filter(|named| named.uid == owner.uid);

            if is_elsewhere || named.clone().any(|named| !owner.is_named_by(named)) {
                wrong.push(id.clone());
            }
            if !is_elsewhere && named.any(|named| owner.is_named_by(named)) {
                right.push(id.clone());
            }
        }

        (right, wrong)
    }

    /// Another identity that the dependents use for an owner: in turn, so that each is tried.
    fn alternative(&self, dependents: &[Id], not: &Identity) -> Option<Identity> {
        let named = dependents
            .iter()
            .filter_map(|id| self.nodes.get(id))
            .flat_map(|dependent| {
                let of = dependent
                    .owners()
                    .iter()
                    .filter(|named| named.uid == not.uid);
                of.map(|named| Identity::of_owner(named, dependent.namespace()))
            });
        let mut others: Vec<Identity> = named.filter(|identity| identity != not).collect();
        others.sort();

        let next = others
            .iter()
            .find(|identity| *identity > not)
            .or(others.first());

        next.cloned()
    }
}

/// The event about a dependent whose owner is in another namespace.
fn misplaced(dependent: &Node, owner: &str) -> Option<(Identity, Identity)> {
    let named = dependent.owners().iter().find(|named| named.uid == owner)?;
    Some((
        dependent.identity(),
        Identity::of_owner(named, dependent.namespace()),
    ))
}
