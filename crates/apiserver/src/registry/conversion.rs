//! Custom resources whose versions a webhook converts: between the store's version of an object and
//! the one that a request works on.
//!
//! The cache holds what the store holds. A request for another version gets converted entries from
//! here ([`Registry::shown`]), which are kept beside the cached ones, so that a webhook is asked once
//! for each version of an object. What a request writes is converted to the storage version
//! ([`Registry::to_store`]), and what was stored back again for the answer.

use std::sync::Arc;

use coracle_api::Value;
use coracle_api::codec::{canonical, json};
use futures_util::{StreamExt, TryStreamExt, stream};
use tracing::warn;

use super::{Registry, Scope};
use crate::ApiError;
use crate::cache::{Custom, Entry};

/// So many objects are converted by one call, …
pub(crate) const BATCH: usize = 500;

/// … in so many calls at a time.
const CALLS: usize = 4;

/// One version of a definition whose versions a webhook converts.
#[derive(Clone, Copy)]
pub(crate) struct Requested<'a> {
    pub(crate) custom: &'a Custom,
    /// Its place in the definition.
    pub(crate) version: usize,
}

impl Requested<'_> {
    /// Whether a cached entry is in this version.
    fn has(&self, entry: &Entry) -> bool {
        self.version == self.custom.storage() && !entry.is_old()
    }

    fn name(&self) -> &str {
        &self.custom.versions[self.version].name
    }

    /// A converted object as an entry: fields that its version does not have are dropped.
    fn entry(&self, key: &str, mut object: Value) -> Entry {
        let of = self.custom.of(self.version);
        self.custom.versions[self.version].prune(&mut object);
        object.meta_mut().members().remove("resourceVersion");
        canonical::canonicalize(&mut object, of.node());

        let bytes = Entry::encode(&object, of);
        let resource = self.custom.resource(self.version);
        let revision = coracle_store::Revision::ZERO;
        Entry::of(key, &object, bytes, revision, resource)
    }
}

impl<'a> Scope<'a> {
    /// The version that a webhook makes for this request; `None`: nothing is converted.
    pub(crate) fn requested(&self) -> Option<Requested<'a>> {
        let (custom, version) = self.custom?;
        custom.conversion.as_ref()?;
        let version = custom.place(&version.name)?;
        Some(Requested { custom, version })
    }
}

impl Registry {
    /// A cached entry in the version of the request.
    pub(crate) async fn shown(
        &self,
        scope: &Scope<'_>,
        entry: Arc<Entry>,
    ) -> Result<Arc<Entry>, ApiError> {
        match scope.requested() {
            Some(requested) => Box::pin(self.converted(requested, entry)).await,
            None => Ok(entry),
        }
    }

    /// The same for several, in their order.
    pub(crate) async fn all_shown(
        &self,
        scope: &Scope<'_>,
        entries: Vec<Arc<Entry>>,
    ) -> Result<Vec<Arc<Entry>>, ApiError> {
        match scope.requested() {
            Some(requested) => Box::pin(self.all_converted(requested, entries)).await,
            None => Ok(entries),
        }
    }

    pub(crate) async fn all_converted(
        &self,
        requested: Requested<'_>,
        entries: Vec<Arc<Entry>>,
    ) -> Result<Vec<Arc<Entry>>, ApiError> {
        let missing: Vec<Arc<Entry>> = entries
            .iter()
            .filter(|entry| {
                !requested.has(entry) && entry.converted().of(requested.name()).get().is_none()
            })
            .cloned()
            .collect();

        // One that is missing alone is shared with other readers that miss it.
        if missing.len() > 1 {
            let batches: Vec<Vec<Arc<Entry>>> = missing.chunks(BATCH).map(<[_]>::to_vec).collect();
            let convert = |batch: Vec<Arc<Entry>>| async move {
                let made = self.convert_batch(requested, &batch).await?;
                for (entry, made) in batch.iter().zip(made) {
                    // Another reader may have been faster.
                    drop(entry.converted().of(requested.name()).set(made));
                }
                Ok::<_, ApiError>(())
            };
            let calls = stream::iter(batches).map(convert).buffer_unordered(CALLS);
            calls.try_collect::<Vec<()>>().await?;
        }

        let mut shown = Vec::with_capacity(entries.len());
        for entry in entries {
            shown.push(self.converted(requested, entry).await?);
        }
        Ok(shown)
    }

    async fn converted(
        &self,
        requested: Requested<'_>,
        entry: Arc<Entry>,
    ) -> Result<Arc<Entry>, ApiError> {
        if requested.has(&entry) {
            return Ok(entry);
        }

        let made = entry.converted().of(requested.name());
        let made = made
            .get_or_try_init(|| async {
                let mut made = self
                    .convert_batch(requested, std::slice::from_ref(&entry))
                    .await?;
                made.pop()
                    .ok_or_else(|| ApiError::unexplained("CR conversion failed"))
            })
            .await?;

        Ok(match made.revision == entry.revision {
            true => made.clone(),
            false => Arc::new(made.at(entry.revision)),
        })
    }

    async fn convert_batch(
        &self,
        requested: Requested<'_>,
        entries: &[Arc<Entry>],
    ) -> Result<Vec<Arc<Entry>>, ApiError> {
        let of = requested.custom.of(requested.custom.storage());
        let objects = entries.iter().map(|entry| {
            let decoded = json::decode(entry.bytes(), Some(of.node()));
            decoded
                .expect("the cache holds what this server encoded")
                .value
        });

        let objects = self.convert(requested, objects.collect()).await?;
        let made = objects.into_iter().zip(entries).map(|(object, entry)| {
            let made = requested.entry(entry.key(), object);
            Arc::new(made.made_of(entry))
        });
        Ok(made.collect())
    }

    /// Objects in the requested version, as the webhook makes them.
    pub(crate) async fn convert(
        &self,
        requested: Requested<'_>,
        objects: Vec<Value>,
    ) -> Result<Vec<Value>, ApiError> {
        let to = requested.custom.kind(requested.version).api_version();
        self.conversion
            .convert(requested.custom, objects, &to)
            .await
            .map_err(ApiError::unexplained)
    }

    /// What the store gets of an object that a request has made, and the object as it is stored.
    pub(super) async fn to_store(
        &self,
        scope: &Scope<'_>,
        entry: Arc<Entry>,
        object: Value,
    ) -> Result<(Arc<Entry>, Value), ApiError> {
        let Some(requested) = scope.requested() else {
            return Ok((entry, object));
        };
        let storage = requested.custom.storage();
        if requested.version == storage {
            return Ok((entry, object));
        }

        let stored = Requested {
            version: storage,
            ..requested
        };
        let mut converted = self.convert(stored, vec![object]).await?;
        let mut object = converted
            .pop()
            .ok_or_else(|| ApiError::unexplained("CR conversion failed"))?;
        let version = &stored.custom.versions[storage];
        version.prune(&mut object);
        if let Err(error) = version.default(&mut object) {
            warn!(name = object.meta().name(), %error, "cannot apply all defaults of the storage version");
        }

        let stored = Arc::new(stored.entry(entry.key(), object));
        let object = stored.value(requested.custom.of(storage));
        Ok((stored, object))
    }
}
