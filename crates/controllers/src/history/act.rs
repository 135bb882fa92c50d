//! Writes revisions.

use std::sync::Arc;

use coracle_api::Value;
use coracle_client::{Access, Cached, DeleteOptions, Error, ObjectKey, ownership};

use super::{History, Revision, new_revision, template_in};
use crate::own_writes::OwnWrites;
use crate::pods::Owner;

/// The resource name under which own writes of revisions are noted.
pub(super) const REVISIONS: &str = "controllerrevisions";

/// Writes the revisions of one kind of owner.
pub struct Revisions {
    owners: Access,
    revisions: Access,
    written: Arc<OwnWrites>,
    hash_label: &'static str,
}

/// Why revisions could not be written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("cannot adopt or release controller revision")]
    Claim(#[source] Error),
    #[error("{0} was deleted or replaced; adoption skipped")]
    Replaced(ObjectKey),
    #[error("controller revision {0} already exists and is not in the cache yet")]
    Unobserved(String),
    #[error("cannot write controller revision")]
    Write(#[source] Error),
    #[error("cannot delete old controller revision")]
    Forget(#[source] Error),
}

/// What was done so that there is a revision of the current template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing.
    Already,
    /// A revision was written and will be observed; with the collision count if names collided.
    Written(Option<i64>),
}

impl Revisions {
    /// Creates a writer; `hash` is the label with the hash.
    pub fn new(
        owners: Access,
        revisions: Access,
        written: Arc<OwnWrites>,
        hash_label: &'static str,
    ) -> Revisions {
        Revisions {
            owners,
            revisions,
            written,
            hash_label,
        }
    }

    fn revisions_in(&self, owner: &Owner) -> Access {
        self.revisions.clone().namespace(&owner.key.namespace)
    }

    /// Adopts and releases revisions, and writes that of the current template if it is missing or
    /// not the newest.
    pub async fn settle(
        &self,
        owner: &Owner,
        parent: &Value,
        template: &Value,
        history: &History,
    ) -> Result<Settled, HistoryError> {
        self.claim(owner, history).await?;
        let number = history.next_number();

        let collisions = parent
            .at(&["status", "collisionCount"])
            .and_then(Value::as_int);
        match &history.current {
            None => self
                .create(owner, parent, template, number, collisions)
                .await
                .map(Settled::Written),
            Some(current) if current.number < number => {
                let mut next = Value::clone(&current.object.object);
                if let Some(members) = next.as_object_mut() {
                    members.insert("revision", number);
                }

                let written = self
                    .revisions_in(owner)
                    .update(&next)
                    .await
                    .map_err(HistoryError::Write)?;
                self.written.note(&owner.key, REVISIONS, &written);

                Ok(Settled::Written(collisions))
            }
            Some(_) => Ok(Settled::Already),
        }
    }

    async fn claim(&self, owner: &Owner, history: &History) -> Result<(), HistoryError> {
        let revisions = self.revisions_in(owner);
        for revision in &history.release {
            let (name, uid) = (&revision.key.name, &revision.uid);
            let released = ownership::release(&revisions, name, uid, &owner.controller.uid).await;
            released.map_err(HistoryError::Claim)?;
        }

        if history.adopt.is_empty() {
            return Ok(());
        }

        let live = self
            .owners
            .clone()
            .namespace(&owner.key.namespace)
            .get(&owner.key.name)
            .await;

        let live = live.map_err(HistoryError::Claim)?;
        if live.meta().uid() != owner.controller.uid || live.meta().is_being_deleted() {
            return Err(HistoryError::Replaced(owner.key.clone()));
        }

        for revision in &history.adopt {
            let (name, uid) = (&revision.key.name, &revision.uid);
            match ownership::adopt(&revisions, name, uid, &owner.controller, &[]).await {
                Err(error) if !error.is_not_found() => return Err(HistoryError::Claim(error)),
                _ => {}
            }
        }

        Ok(())
    }

    /// Creates a revision; under another name if its name is taken by a revision of another
    /// template or owner.
    async fn create(
        &self,
        owner: &Owner,
        parent: &Value,
        template: &Value,
        number: i64,
        mut collisions: Option<i64>,
    ) -> Result<Option<i64>, HistoryError> {
        let revisions = self.revisions_in(owner);
        loop {
            let wanted = new_revision(owner, parent, template, self.hash_label, number, collisions);
            let taken = match revisions.create(&wanted).await {
                Ok(made) => {
                    self.written.note(&owner.key, REVISIONS, &made);
                    return Ok(collisions);
                }
                Err(error) if error.is_already_exists() => revisions
                    .get(wanted.meta().name())
                    .await
                    .map_err(HistoryError::Write)?,
                Err(error) => return Err(HistoryError::Write(error)),
            };

            let is_same = template_in(&taken) == template_in(&wanted);
            match ownership::Controller::of(taken.meta()).map(|controller| controller.uid) {
                // It is our own; the cache does not show it yet.
                Some(uid) if is_same && uid == owner.controller.uid => {
                    self.written.note(&owner.key, REVISIONS, &taken);
                    return Ok(collisions);
                }
                // It is adopted when it is observed.
                None if is_same => {
                    return Err(HistoryError::Unobserved(taken.meta().name().to_string()));
                }
                // It is of another template, or belongs to a deleted set of the same name.
                _ => collisions = Some(collisions.unwrap_or_default() + 1),
            }
        }
    }

    /// Deletes revisions beyond the history limit.
    pub async fn forget(
        &self,
        owner: &Owner,
        surplus: &[Arc<Cached<Revision>>],
    ) -> Result<(), HistoryError> {
        for revision in surplus {
            let only = DeleteOptions::only(&revision.uid);
            match self
                .revisions_in(owner)
                .delete(&revision.key.name, &only)
                .await
            {
                Err(error) if !error.is_not_found() && !error.is_conflict() => {
                    return Err(HistoryError::Forget(error));
                }
                _ => {}
            }
        }

        Ok(())
    }
}
