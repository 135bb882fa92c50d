//! Keeps a cache in sync with the server.
//!
//! It requests the initial objects and the changes in one stream (`sendInitialEvents`); if the
//! server does not support that, it lists in pages and watches from there. A stream that ends is
//! resumed where it ended; only when the server reports the resource version as expired does it
//! relist and compare. Requests to a server that is unreachable or overloaded are retried with
//! backoff.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::{Text, Value};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::state::{Shared, State};
use super::{Cached, Projection, Selection};
use crate::access::Access;
use crate::client::Client;
use crate::error::Error;
use crate::key::ObjectKey;
use crate::options::ListOptions;
use crate::retry::Backoff;
use crate::watch::{Watch, WatchEvent};

/// Objects per page of a list.
const PAGE: u32 = 500;
/// The minimum timeout of a watch in seconds; the maximum is twice that.
const WATCH_SECONDS: u64 = 300;
/// A watch that ends sooner without an event counts as a failure.
const TOO_SHORT: Duration = Duration::from_secs(1);

pub(super) struct Reflector<T> {
    client: Client,
    access: Access,
    selection: Selection,
    shared: Arc<Shared<T>>,
    backoff: Backoff,
    /// The last resource version received; empty: none yet.
    version: Text,
    /// Whether the server supports streaming lists.
    streams: bool,
}

type Objects<T> = BTreeMap<ObjectKey, Arc<Cached<T>>>;

impl<T: Projection> Reflector<T> {
    pub(super) fn new(
        client: Client,
        selection: Selection,
        shared: Arc<Shared<T>>,
    ) -> Reflector<T> {
        let mut access = client
            .resource(&selection.resource)
            .namespace(&selection.namespace)
            .shared();

        if T::METADATA_ONLY {
            access = access.metadata_only();
        }

        let backoff = Backoff::new(client.world());
        Reflector {
            client,
            access,
            selection,
            shared,
            backoff,
            version: Text::default(),
            streams: true,
        }
    }

    /// Never returns.
    pub(super) async fn run(mut self) {
        loop {
            let watch = self.establish().await;
            self.follow(watch).await;
        }
    }

    /// Fills the cache, retrying until it succeeds. Returns the stream that continues from there,
    /// if any.
    async fn establish(&mut self) -> Option<Watch> {
        loop {
            let established = match self.streams {
                true => self.stream().await.map(Some),
                false => self.list().await.map(|()| None),
            };

            match established {
                Ok(watch) => return watch,
                // The requested version is expired or not known: use the newest.
                Err(error) if error.is_expired() || error.is_version_too_large() => {
                    let is_first = !std::mem::take(&mut self.version).is_empty();
                    if !is_first {
                        self.back_off(&error).await;
                    }
                }
                Err(error) if self.streams && is_not_understood(&error) => {
                    info!(resource = %self.selection.resource, %error, "server does not support streaming lists; using list and watch");
                    self.streams = false;
                }
                Err(error) => self.back_off(&error).await,
            }
        }
    }

    /// Receives all objects in one stream, up to the bookmark that ends the initial events.
    async fn stream(&mut self) -> Result<Watch, Error> {
        let options = ListOptions {
            resource_version: self.version.to_string(),
            resource_version_match: "NotOlderThan".to_string(),
            send_initial_events: Some(true),
            ..self.watch_options()
        };
        let mut watch = self.access.watch(&options).await?;

        let mut objects = Objects::new();
        loop {
            match watch.next().await?.ok_or_else(ended)? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    self.collect(&object, &mut objects)
                }
                WatchEvent::Deleted(object) => drop(objects.remove(&ObjectKey::of(&object))),
                // Initial objects come in the order of their keys, so only the bookmark has a
                // usable version.
                WatchEvent::Bookmark {
                    resource_version,
                    initial_events_end: true,
                } => {
                    self.replace(objects, resource_version);
                    return Ok(watch);
                }
                WatchEvent::Bookmark { .. } => {}
                WatchEvent::Error(status) => return Err((*status).into()),
            }
        }
    }

    /// Lists all objects in pages. The first time from the server's cache, then never older than
    /// the last version received.
    async fn list(&mut self) -> Result<(), Error> {
        let version = if self.version.is_empty() {
            "0"
        } else {
            &self.version
        };

        let first = ListOptions {
            resource_version: version.to_string(),
            // A resource version together with a limit would mean exactly that version.
            limit: if version == "0" { PAGE } else { 0 },
            ..self.list_options()
        };

        let mut objects = Objects::new();
        let mut options = first.clone();
        loop {
            let page = match self.access.list(&options).await {
                // The continue token expired between two pages: list everything at once.
                Err(error) if error.is_expired() && !options.continue_token.is_empty() => {
                    objects.clear();
                    self.access
                        .list(&ListOptions {
                            limit: 0,
                            ..first.clone()
                        })
                        .await?
                }
                page => page?,
            };

            page.items
                .into_iter()
                .for_each(|object| self.collect(&object.into(), &mut objects));

            if page.continue_token.is_empty() {
                self.replace(objects, page.resource_version);
                return Ok(());
            }

            options.resource_version = String::new();
            options.continue_token = page.continue_token.to_string();
        }
    }

    /// Watches until the server reports the resource version as expired.
    async fn follow(&mut self, mut watch: Option<Watch>) {
        loop {
            let begun = Instant::now();
            let heard = self.version.clone();
            let ended = match watch.take() {
                Some(watch) => self.drain(watch).await,
                None => match self.access.watch(&self.resume_options()).await {
                    Ok(watch) => self.drain(watch).await,
                    Err(error) => Err(error),
                },
            };

            match ended {
                Ok(()) if begun.elapsed() >= TOO_SHORT || heard != self.version => {}
                Ok(()) => {
                    self.back_off(&Error::Answer("the watch ended immediately".to_string()))
                        .await
                }
                Err(error) if error.is_expired() || error.is_version_too_large() => {
                    debug!(resource = %self.selection.resource, %error, "watch expired; relisting");
                    return;
                }
                Err(error) => self.back_off(&error).await,
            }
        }
    }

    /// Reads a stream until it ends.
    async fn drain(&mut self, mut watch: Watch) -> Result<(), Error> {
        while let Some(event) = watch.next().await? {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    let version = Text::new(object.meta().resource_version());
                    let object = self.cached(&object);
                    self.advance_version(version, |state| {
                        object.into_iter().for_each(|object| state.put(object))
                    });
                }
                WatchEvent::Deleted(object) => {
                    // It has the resource version of the deletion.
                    let version = Text::new(object.meta().resource_version());
                    let key = ObjectKey::of(&object);
                    let last = self.cached(&object);
                    self.advance_version(version, |state| state.remove(&key, last));
                }
                WatchEvent::Bookmark {
                    resource_version, ..
                } => self.advance_version(resource_version, |_| {}),
                WatchEvent::Error(status) => return Err((*status).into()),
            }
        }

        Ok(())
    }

    fn replace(&mut self, objects: Objects<T>, version: Text) {
        self.shared
            .replace(objects, version.parse().unwrap_or_default());
        self.version = version;
    }

    /// Sets the version together with the change, so that both are visible at once.
    fn advance_version(&mut self, version: Text, change: impl FnOnce(&mut State<T>)) {
        self.shared.change(|state| {
            change(state);
            state.advance_version(version.parse().unwrap_or_default());
        });
        self.version = version;
    }

    fn collect(&self, object: &Arc<Value>, objects: &mut Objects<T>) {
        if let Some(object) = self.cached(object) {
            // An unchanged object keeps its cache entry.
            let held = self.shared.read().objects.get(&object.key).cloned();
            let object = held
                .filter(|held| held.version == object.version && held.uid == object.uid)
                .unwrap_or(object);
            objects.insert(object.key.clone(), object);
        }
    }

    /// Objects that cannot be converted are skipped: one invalid object must not hide the others.
    fn cached(&self, object: &Arc<Value>) -> Option<Arc<Cached<T>>> {
        match Cached::of(object.clone()) {
            Ok(made) => Some(Arc::new(made)),
            Err(error) => {
                let key = ObjectKey::of(object);
                warn!(resource = %self.selection.resource, %key, %error, "cannot convert object; skipped");
                None
            }
        }
    }

    async fn back_off(&mut self, error: &Error) {
        let pause = self.backoff.next();
        debug!(resource = %self.selection.resource, %error, ?pause, "list or watch failed; retrying");
        tokio::time::sleep(pause).await;
    }

    fn list_options(&self) -> ListOptions {
        ListOptions {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            ..ListOptions::default()
        }
    }

    fn watch_options(&self) -> ListOptions {
        let share = (self.client.world().random)() % WATCH_SECONDS;
        ListOptions {
            bookmarks: true,
            timeout_seconds: WATCH_SECONDS + share,
            ..self.list_options()
        }
    }

    fn resume_options(&self) -> ListOptions {
        ListOptions {
            resource_version: self.version.to_string(),
            ..self.watch_options()
        }
    }
}

impl<T> Drop for Reflector<T> {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// Older servers reject unknown options.
fn is_not_understood(error: &Error) -> bool {
    error.is_invalid() || error.reason() == "BadRequest"
}

fn ended() -> Error {
    Error::Answer("the watch ended before the initial events were complete".to_string())
}
