//! Pods with a controller: how changes wake their owner, which pods belong to it, and how they are
//! created and deleted.
//!
//! `handlers` turns changes of pods into keys of their owners; [`claims`] sorts pods by owner;
//! [`PodControl`] adopts and releases, creates with slow start, deletes, records events, and notes
//! in [`Unseen`] what has to be observed before the next decision.

mod claims;
mod control;
mod handlers;
pub mod rank;
mod unobserved;

use coracle_api::{Map, Value};
use coracle_client::ownership::Controller;
use coracle_client::{Cached, ObjectKey, ObjectReference, Projection};

pub use claims::{Claims, claims};
pub use control::{Done, PodControl, PodError};
pub use handlers::{follow_owners, follow_pods};
pub use unobserved::{Unobserved, requeue_after};

/// An object that controls the pods it selects.
pub trait PodOwner: Projection {
    /// `apps/v1`.
    const API_VERSION: &'static str;
    /// `ReplicaSet`.
    const KIND: &'static str;

    /// The whole object.
    fn object(&self) -> &Value;

    /// Whether the selector matches these labels.
    fn selects(&self, labels: &Map) -> bool;
}

/// The owner of pods that are created and deleted.
#[derive(Clone, Debug)]
pub struct Owner {
    /// Its key.
    pub key: ObjectKey,
    /// The controller reference in its pods.
    pub controller: Controller,
    /// The object reference in events.
    pub about: ObjectReference,
}

impl Owner {
    /// The owner that an object is.
    pub fn of<O: PodOwner>(owner: &Cached<O>) -> Owner {
        Owner::named(owner.object.object(), O::API_VERSION, O::KIND)
    }

    /// The same for an object that may lack `apiVersion` and `kind`.
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
