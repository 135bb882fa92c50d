//! The slices of one controller: found by their Service, written, and expected in the cache.
//!
//! The two controllers of slices (from pods, and from manually written Endpoints) are told apart by
//! a label; an own write must be in the cache before the same Service is reconciled again, so
//! nothing is created twice.

use std::sync::Arc;

use coracle_api::Text;
use coracle_client::{
    Access, Cached, DeleteOptions, Error, Informer, ObjectKey, Resource, WorkQueue,
};

use super::fill::{Changes, Slice};
use super::{MANAGED_BY, SERVICE_NAME};
use crate::framework::{Context, Feeds};
use crate::own_writes::OwnWrites;

/// The resource name under which own writes are noted.
const SLICES: &str = "endpointslices";
/// The index of slices by their Service.
const BY_SERVICE: &str = "service";

/// The slices of one controller.
pub(crate) struct Slices {
    cache: Informer<Slice>,
    access: Access,
    /// The controller's name in the `managed-by` label.
    manager: &'static str,
    written: OwnWrites,
}

/// Why slices could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    #[error("cannot write endpoint slice")]
    Write(#[source] Error),
    #[error("cannot delete endpoint slice")]
    Delete(#[source] Error),
}

impl Slices {
    /// Follows the slices of a manager, written with an account. A Service is woken when one of its
    /// slices changes.
    pub(crate) fn follow(
        context: &Context,
        account: &str,
        manager: &'static str,
        queue: &WorkQueue<ObjectKey>,
        feeds: &mut Feeds,
    ) -> Slices {
        let resource = Resource::builtin("discovery.k8s.io", "v1", SLICES);
        let cache: Informer<Slice> = context.informers.of(&resource);
        cache.ensure_index(BY_SERVICE, by_service);

        let concerned = queue.clone();
        feeds.follow(&cache, move |change| {
            let Some(slice) = change
                .object()
                .filter(|slice| is_managed_by(slice, manager))
            else {
                return;
            };
            if let Some(service) = slice.0.meta().label(SERVICE_NAME) {
                concerned.add(ObjectKey::new(&slice.key.namespace, service));
            }
        });

        let access = context.client(account).resource(&resource);
        Slices {
            cache,
            access,
            manager,
            written: OwnWrites::default(),
        }
    }

    /// The slices of a Service; `None` if the last write has not been observed yet.
    pub(crate) fn of(&self, service: &ObjectKey) -> Option<Vec<Arc<Cached<Slice>>>> {
        if self
            .written
            .is_behind(service, &[(SLICES, self.cache.version())])
        {
            return None;
        }

        let slices = self
            .cache
            .by_index(BY_SERVICE, &service.to_string())
            .unwrap_or_default();

        Some(
            slices
                .into_iter()
                .filter(|slice| is_managed_by(slice, self.manager))
                .collect(),
        )
    }

    /// Forgets a deleted Service.
    pub(crate) fn forget(&self, service: &ObjectKey) {
        self.written.forget(service);
    }

    pub(crate) async fn write(
        &self,
        service: &ObjectKey,
        changes: &Changes,
    ) -> Result<(), SliceError> {
        let slices = self.access.clone().namespace(&service.namespace);
        for slice in &changes.create {
            match slices.create(slice).await {
                Ok(made) => self.written.note(service, SLICES, &made),
                // The namespace is being deleted, with everything in it.
                Err(error) if error.has_cause("NamespaceTerminating") => return Ok(()),
                Err(error) => return Err(SliceError::Write(error)),
            }
        }

        for slice in &changes.update {
            let written = slices.update(slice).await.map_err(SliceError::Write)?;
            self.written.note(service, SLICES, &written);
        }

        for name in &changes.delete {
            match slices.delete(name, &DeleteOptions::default()).await {
                Err(error) if !error.is_not_found() => return Err(SliceError::Delete(error)),
                _ => {}
            }
        }

        Ok(())
    }
}

fn by_service(slice: &Cached<Slice>) -> Vec<Text> {
    let service = slice
        .0
        .meta()
        .label(SERVICE_NAME)
        .filter(|service| !service.is_empty());
    service
        .map(|service| Text::from(format!("{}/{service}", slice.key.namespace)))
        .into_iter()
        .collect()
}

fn is_managed_by(slice: &Slice, manager: &str) -> bool {
    slice.0.meta().label(MANAGED_BY) == Some(manager)
}
