//! Pods that something controls: how changes of them wake their owner, which are its own, and how
//! they are made and deleted.
//!
//! `hear` turns changes of pods into keys of their owners; [`claims`] says which pods are whose;
//! [`PodControl`] acts: it adopts and releases, creates in batches that double, deletes, tells
//! people, and notes in [`Unseen`] what is to be seen before the next decision.

mod claims;
mod control;
mod hear;
pub mod rank;
mod unseen;

use coracle_api::{Map, Value};
use coracle_client::ownership::Controller;
use coracle_client::{Cached, ObjectKey, ObjectReference, Projection};

pub use claims::{Claims, claims};
pub use control::{Done, PodControl, PodError};
pub use hear::{follow_owners, follow_pods};
pub use unseen::{Unseen, look_again};

/// An object that controls the pods which it selects.
pub trait PodOwner: Projection {
    /// `apps/v1`.
    const API_VERSION: &'static str;
    /// `ReplicaSet`.
    const KIND: &'static str;

    /// The whole of it.
    fn object(&self) -> &Value;

    /// Whether a pod with these labels is its own, as far as labels go.
    fn selects(&self, labels: &Map) -> bool;
}

/// Whose pods are made and deleted.
#[derive(Clone, Debug)]
pub struct Owner {
    /// Its key.
    pub key: ObjectKey,
    /// What stands in its pods.
    pub controller: Controller,
    /// What events are about.
    pub about: ObjectReference,
}

impl Owner {
    /// The owner that an object is.
    pub fn of<O: PodOwner>(owner: &Cached<O>) -> Owner {
        Owner::named(owner.object.object(), O::API_VERSION, O::KIND)
    }

    /// The owner that an object of this kind is, whether or not it says its kind.
    pub fn named(object: &Value, api_version: &str, kind: &str) -> Owner {
        let (key, uid) = (ObjectKey::of(object), object.meta().uid());
        let controller = Controller {
            api_version: api_version.into(),
            kind: kind.into(),
            name: key.name.clone(),
            uid: uid.into(),
        };

        let mut about = ObjectReference::of(object);
        (about.api_version, about.kind) = (api_version.into(), kind.into());

        Owner {
            key,
            controller,
            about,
        }
    }
}
