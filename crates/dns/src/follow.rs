//! Applies API changes to the zone, and saves the zone to disk.
//!
//! The last saved zone is served until all resources have been listed; then the new zone replaces
//! it as a whole, so that deleted objects disappear, and no name is missing while the lists are
//! read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::typed::TypedError;
use coracle_client::informer::{Change, Informers, Metadata, Projection, Selection, Subscription};
use coracle_client::{ObjectKey, Resource};
use tokio::time::{Instant, sleep_until};

use crate::Zone;
use crate::customization::{Customization, CustomizationError};
use crate::server::Handler;
use crate::state::{self, State};
use crate::zone::facts::{Key, Service, Slice};

/// The fields that DNS uses of an object, if it has any names.
#[derive(Debug)]
struct Relevant<T>(Option<T>);

impl Projection for Relevant<Service> {
    fn project(object: &Arc<Value>) -> Result<Relevant<Service>, TypedError> {
        Ok(Relevant(Service::read(object)))
    }
}

impl Projection for Relevant<Slice> {
    fn project(object: &Arc<Value>) -> Result<Relevant<Slice>, TypedError> {
        Ok(Relevant(Slice::read(object)))
    }
}

/// The customization in a ConfigMap.
#[derive(Debug)]
struct Custom(Result<Customization, CustomizationError>);

impl Projection for Custom {
    fn project(object: &Arc<Value>) -> Result<Custom, TypedError> {
        let data = object.get("data").and_then(Value::as_object);
        let entries = data.into_iter().flat_map(|data| data.iter());
        let texts = entries.filter_map(|(key, value)| Some((key, value.as_str()?)));
        Ok(Custom(Customization::read(texts)))
    }
}

async fn next(subscription: Option<&mut Subscription<Custom>>) -> Change<Custom> {
    match subscription {
        Some(subscription) => subscription.next().await,
        None => std::future::pending().await,
    }
}

/// Changes are saved together, this long after the first of them.
const SAVE_DELAY: Duration = Duration::from_secs(1);

/// Follows the API forever.
pub(crate) async fn follow(
    handler: &Handler,
    informers: &Informers,
    config_map: Option<&ObjectKey>,
    file: Option<PathBuf>,
) {
    let all = |group, plural| Selection::all(&Resource::builtin(group, "v1", plural));
    let mut follower = Follower {
        handler,
        partial: Some(PartialZone::default()),
        has_config_map: false,
        file,
        write_at: None,
    };

    let mut namespaces = informers.of::<Metadata>(all("", "namespaces")).subscribe();
    let mut services = informers
        .of::<Relevant<Service>>(all("", "services"))
        .subscribe();

    let mut slices = informers
        .of::<Relevant<Slice>>(all("discovery.k8s.io", "endpointslices"))
        .subscribe();
    let mut config_maps = config_map.map(|key| {
        let own = all("", "configmaps")
            .namespace(&key.namespace)
            .fields(&format!("metadata.name={}", key.name));
        informers.of::<Custom>(own).subscribe()
    });

    loop {
        let write_at = follower.write_at;
        tokio::select! {
            biased;
            change = namespaces.next() => follower.namespace(change),
            change = services.next() => follower.service(&change),
            change = slices.next() => follower.slice(&change),
            change = next(config_maps.as_mut()) => follower.config_map(&change),
            () = until(write_at) => follower.write().await,
        }
    }
}

/// A zone whose lists are not complete yet.
#[derive(Default)]
struct PartialZone {
    zone: Zone,
    /// How many of the three resources are complete.
    synced: u8,
}

struct Follower<'a> {
    handler: &'a Handler,
    partial: Option<PartialZone>,
    /// Whether there is one.
    has_config_map: bool,
    file: Option<PathBuf>,
    write_at: Option<Instant>,
}

impl Follower<'_> {
    fn namespace(&mut self, change: Change<Metadata>) {
        match change {
            Change::Added { object, .. } => {
                self.change(|zone| zone.add_namespace(&object.key.name))
            }
            Change::Deleted { object, .. } => {
                self.change(|zone| zone.remove_namespace(&object.key.name))
            }
            Change::Updated { .. } => {}
            Change::Synced => self.resource_synced(),
        }
    }

    fn service(&mut self, change: &Change<Relevant<Service>>) {
        match state_of(change) {
            Some((_, Some(service))) => self.change(|zone| zone.set_service(service.clone())),
            Some((object, None)) => self.change(|zone| zone.remove_service(&key(object))),
            None => self.resource_synced(),
        }
    }

    fn slice(&mut self, change: &Change<Relevant<Slice>>) {
        match state_of(change) {
            Some((_, Some(slice))) => self.change(|zone| zone.set_slice(slice.clone())),
            Some((object, None)) => self.change(|zone| zone.remove_slice(&key(object))),
            None => self.resource_synced(),
        }
    }

    /// One with a mistake changes nothing.
    fn config_map(&mut self, change: &Change<Custom>) {
        let read = match change {
            Change::Added { object, .. } | Change::Updated { new: object, .. } => {
                self.has_config_map = true;
                object.0.clone()
            }
            Change::Deleted { .. } => Ok(Customization::default()),
            // There is none any more.
            Change::Synced if !self.has_config_map => Ok(Customization::default()),
            Change::Synced => return,
        };

        let read = match read {
            Ok(read) if read == self.handler.customization() => return,
            Ok(read) => read,
            Err(error) => {
                return tracing::error!(%error, "invalid DNS ConfigMap; keeping the last valid one");
            }
        };
        match self.handler.customize(read) {
            Ok(()) => {
                tracing::info!("DNS customization changed");
                self.changed();
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                tracing::error!(error, "cannot use the servers of the DNS ConfigMap");
            }
        }
    }

    fn change(&mut self, how: impl FnOnce(&mut Zone)) {
        match &mut self.partial {
            Some(partial) => how(&mut partial.zone),
            None => {
                self.handler.change(how);
                self.changed();
            }
        }
    }

    fn resource_synced(&mut self) {
        let Some(partial) = &mut self.partial else {
            return;
        };
        partial.synced += 1;
        if partial.synced == 3
            && let Some(partial) = self.partial.take()
        {
            self.handler.change(|zone| *zone = partial.zone);
            self.handler.set_complete();
            self.changed();
        }
    }

    fn changed(&mut self) {
        if self.file.is_some() && self.write_at.is_none() {
            self.write_at = Some(Instant::now() + SAVE_DELAY);
        }
    }

    async fn write(&mut self) {
        self.write_at = None;
        let Some(file) = self.file.clone() else {
            return;
        };
        let state = State {
            names: self.handler.read(Zone::snapshot),
            customization: self.handler.customization(),
        };
        if let Err(error) = state::save(file, state).await {
            // Queries are still answered; only the saved state is outdated.
            tracing::warn!(%error, "cannot save DNS state");
        }
    }
}

/// The object of a change and its new state. `None`: the list is complete.
fn state_of<T>(change: &Change<Relevant<T>>) -> Option<(&ObjectKey, Option<&T>)> {
    match change {
        Change::Added { object, .. } | Change::Updated { new: object, .. } => {
            Some((&object.key, object.object.0.as_ref()))
        }
        Change::Deleted { object, .. } => Some((&object.key, None)),
        Change::Synced => None,
    }
}

fn key(object: &ObjectKey) -> Key {
    Key {
        namespace: object.namespace.to_string(),
        name: object.name.to_string(),
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
