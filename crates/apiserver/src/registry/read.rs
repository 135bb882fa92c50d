//! Get and list: from the cache, at the requested revision.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::Text;
use coracle_api::convert::field_label;
use coracle_api::selector::FieldSelector;
use coracle_store::{Content, KeyRange, RangeRequest, Revision, StoreError};
use tokio::time::Instant;

use super::continuation::Continuation;
use super::{BATCH, Registry, Scope};
use crate::ApiError;
use crate::cache::{Cache, Entries, Entry, Snapshot};
use crate::request::{ListOptions, Verb, VersionMatch};

/// So long a read waits for a version that is yet to come.
const WAIT_FOR_VERSION: Duration = Duration::from_secs(3);

/// A page of a list.
pub struct List {
    pub revision: Revision,
    pub entries: Vec<Arc<Entry>>,
    pub continue_token: String,
    pub remaining: Option<usize>,
}

/// Which versions of an object or a list a request accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredVersion {
    /// The newest there is.
    Newest,
    /// Any revision that the cache has.
    Any,
    NotOlderThan(Revision),
    Exactly(Revision),
}

impl RequiredVersion {
    /// The meaning of `resourceVersion` alone: unset, zero, or a minimum for the response.
    pub fn version(given: bool, version: u64) -> RequiredVersion {
        match version {
            0 if given => RequiredVersion::Any,
            0 => RequiredVersion::Newest,
            version => RequiredVersion::NotOlderThan(Revision::new(version)),
        }
    }

    /// The revision that a verb needs: writes start from the newest version; reads choose
    /// themselves.
    pub fn before(verb: Verb) -> RequiredVersion {
        if verb.is_read() {
            RequiredVersion::Any
        } else {
            RequiredVersion::Newest
        }
    }

    fn list(options: &ListOptions) -> RequiredVersion {
        match (
            RequiredVersion::version(options.version_given, options.version.0),
            options.version_match,
        ) {
            (RequiredVersion::NotOlderThan(revision), Some(VersionMatch::Exact)) => {
                RequiredVersion::Exactly(revision)
            }
            // Pages are of one revision, so the first has to be of the requested one.
            (RequiredVersion::NotOlderThan(revision), None) if options.limit > 0 => {
                RequiredVersion::Exactly(revision)
            }
            (wanted, _) => wanted,
        }
    }
}

impl Registry {
    /// The current object as it is stored; on a shared store, the one that the cache has.
    pub fn get(&self, scope: &Scope<'_>, name: &str) -> Result<Arc<Entry>, ApiError> {
        self.cache(scope)?
            .get(&scope.key(name))
            .ok_or_else(|| ApiError::not_found(scope.resource, name))
    }

    /// The current object in the version of the request.
    pub(super) async fn current(
        &self,
        scope: &Scope<'_>,
        name: &str,
    ) -> Result<Arc<Entry>, ApiError> {
        let entry = self.get(scope, name)?;
        self.shown(scope, entry).await
    }

    /// One object, of a version that the client is content with.
    pub async fn read(
        &self,
        scope: &Scope<'_>,
        name: &str,
        wanted: RequiredVersion,
    ) -> Result<Arc<Entry>, ApiError> {
        self.reach(wanted).await?;
        self.current(scope, name).await
    }

    pub async fn list(&self, scope: &Scope<'_>, options: &ListOptions) -> Result<List, ApiError> {
        let fields = field_selector(scope, &options.fields)?;
        let start = match options.continue_token.as_str() {
            "" => None,
            _ if options.version_given && options.version.0 != 0 => {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            token => Some(Continuation::decode(token)?),
        };

        let (revision, snapshot) = match &start {
            None => self.snapshot(scope, RequiredVersion::list(options)).await?,
            Some(Continuation { revision: None, .. }) => {
                self.snapshot(scope, RequiredVersion::Newest).await?
            }
            Some(
                page @ Continuation {
                    revision: Some(revision),
                    ..
                },
            ) => {
                let found = self
                    .snapshot(scope, RequiredVersion::Exactly(*revision))
                    .await;
                found.map_err(|error| expired_page(error, page))?
            }
        };

        // A list at any revision is not paged.
        let paged = start.is_some() || RequiredVersion::list(options) != RequiredVersion::Any;
        let limit = if paged { options.limit } else { 0 };

        let prefix = if scope.namespace.is_empty() {
            String::new()
        } else {
            format!("{}/", scope.namespace)
        };
        let from = format!("{prefix}{}", start.as_ref().map_or("", |page| &page.start));

        let matches = |entry: &Arc<Entry>| {
            entry.matches(&options.labels, &fields, scope.storage_version.resource)
        };
        let counts = options.labels.is_everything() && fields.is_everything();
        let Page {
            entries,
            read,
            more,
            left,
        } = match scope.requested() {
            None => page(
                snapshot.entries.below(&prefix, &from),
                limit,
                counts,
                matches,
            ),
            Some(_) => {
                let stored = snapshot.entries.below(&prefix, &from).cloned().collect();
                Box::pin(self.converted_page(scope, stored, limit, matches)).await?
            }
        };

        if let Ok(cache) = self.cache(scope) {
            cache.counts.lists.list(read, entries.len());
        }

        let remaining = (more && counts).then_some(left);
        let continue_token = match entries.last().filter(|_| more) {
            None => String::new(),
            Some(last) => {
                self.cache(scope)?.keep(revision, snapshot.clone());
                let start = format!("{}\0", &last.key()[prefix.len()..]);
                Continuation {
                    revision: Some(revision),
                    start,
                }
                .encode()
            }
        };

        Ok(List {
            revision,
            entries,
            continue_token,
            remaining,
        })
    }

    /// A page of entries in the version of the request: selectors see what the webhook made.
    async fn converted_page(
        &self,
        scope: &Scope<'_>,
        stored: Vec<Arc<Entry>>,
        limit: usize,
        matches: impl Fn(&Arc<Entry>) -> bool,
    ) -> Result<Page, ApiError> {
        let batch = match limit {
            0 => stored.len().max(1),
            limit => (limit + 1).min(BATCH),
        };

        let mut found = Page::default();
        for (number, stored_batch) in stored.chunks(batch).enumerate() {
            let shown = self.all_shown(scope, stored_batch.to_vec()).await?;
            for (place, entry) in shown.into_iter().enumerate() {
                found.read += 1;
                if !matches(&entry) {
                    continue;
                }
                if limit > 0 && found.entries.len() == limit {
                    found.more = true;
                    found.left = stored.len() - (number * batch + place);
                    return Ok(found);
                }
                found.entries.push(entry);
            }
        }

        Ok(found)
    }

    /// Waits until the caches are as new as wanted, and in any case have what there was when this
    /// server began.
    pub async fn reach(&self, wanted: RequiredVersion) -> Result<(), ApiError> {
        self.caches.complete(&*self.store).await;
        let revision = match wanted {
            RequiredVersion::Any => return Ok(()),
            // This server is the only writer: what was acknowledged has been applied.
            RequiredVersion::Newest if !self.shared_store => return Ok(()),
            RequiredVersion::Newest => {
                let newest = self.store.current_revision().await;
                newest.map_err(|error| super::update::store_error(&error))?
            }
            RequiredVersion::NotOlderThan(revision) | RequiredVersion::Exactly(revision) => {
                revision
            }
        };

        if self.caches.applied() >= revision {
            return Ok(());
        }

        let caught_up = self.caches.caught_up(&*self.store, revision);
        tokio::time::timeout(WAIT_FOR_VERSION, caught_up)
            .await
            .map_err(|_| ApiError::version_too_large(revision.get(), self.caches.applied().get()))
    }

    /// As [`Registry::reach`], counted for the cache that is listed.
    async fn reach_for_list(&self, cache: &Cache, wanted: RequiredVersion) -> Result<(), ApiError> {
        let began = Instant::now();
        let result = self.reach(wanted).await;

        if wanted != RequiredVersion::Any {
            cache.counts.read_waits.took(began.elapsed());
        }
        if wanted == RequiredVersion::Newest {
            cache.counts.consistent_reads[usize::from(result.is_err())].inc();
        }

        result
    }

    async fn snapshot(
        &self,
        scope: &Scope<'_>,
        wanted: RequiredVersion,
    ) -> Result<(Revision, Arc<Snapshot>), ApiError> {
        let cache = self.cache(scope)?;
        self.reach_for_list(cache, wanted).await?;

        // Taken before the snapshot: what the list claims to show, it shows.
        let applied = self.caches.applied();
        let snapshot = cache.snapshot();
        match wanted {
            RequiredVersion::Exactly(revision) => {
                let unchanged = (snapshot.revision <= revision).then_some(snapshot);
                match unchanged.or_else(|| cache.snapshot_at(revision)) {
                    Some(snapshot) => {
                        self.require_kept(revision).await?;
                        Ok((revision, snapshot))
                    }
                    None => Ok((
                        revision,
                        Arc::new(Box::pin(self.stored_at(scope, revision)).await?),
                    )),
                }
            }
            _ => Ok((applied.max(snapshot.revision), snapshot)),
        }
    }

    /// Refuses a past revision that the store has compacted, though a cache may still have what
    /// there was: so it expires for every resource and on every server of a store at the same time.
    async fn require_kept(&self, revision: Revision) -> Result<(), ApiError> {
        if revision >= self.caches.applied() {
            return Ok(());
        }
        let probe = RangeRequest {
            content: Content::CountOnly,
            ..RangeRequest::new(KeyRange::single(Bytes::from_static(b"\0"))).at(revision)
        };
        match self.store.range(probe).await {
            Ok(_) => Ok(()),
            Err(error) => Err(past_error(error)),
        }
    }

    /// What the store held at a revision that no cache remembers.
    async fn stored_at(&self, scope: &Scope<'_>, revision: Revision) -> Result<Snapshot, ApiError> {
        let prefix = scope.store_key("");
        let root = prefix.len() - scope.key("").len();
        let range = RangeRequest::new(KeyRange::prefix(prefix)).at(revision);
        let answer = self.store.range(range).await.map_err(past_error)?;

        let storage_version = match scope.requested() {
            Some(requested) => requested.custom.storage_version(),
            None => scope.storage_version,
        };

        let mut entries = Entries::default();
        for kv in &answer.kvs {
            let key = String::from_utf8_lossy(&kv.key[root..]);
            let entry = Entry::stored(&key, &kv.value, kv.mod_revision, &storage_version);
            let entry = entry.map_err(|bad| ApiError::internal(bad.to_string()))?;
            entries.insert(Arc::new(entry));
        }

        let (read, returned) = (answer.kvs.len(), entries.count());
        if let Ok(cache) = self.cache(scope) {
            cache.counts.stored_lists.list(read, returned);
        }

        Ok(Snapshot { revision, entries })
    }
}

/// What of a snapshot a list shows.
#[derive(Default)]
struct Page {
    entries: Vec<Arc<Entry>>,
    /// How many were compared with the selectors.
    read: usize,
    /// Whether more of what follows matches, …
    more: bool,
    /// … and then how many follow, if they are counted.
    left: usize,
}

fn page<'e>(
    mut entries: impl Iterator<Item = &'e Arc<Entry>>,
    limit: usize,
    counts: bool,
    matches: impl Fn(&Arc<Entry>) -> bool,
) -> Page {
    let mut page = Page::default();
    for entry in entries.by_ref() {
        page.read += 1;
        if !matches(entry) {
            continue;
        }
        if limit > 0 && page.entries.len() == limit {
            page.more = true;
            break;
        }
        page.entries.push(entry.clone());
    }

    if page.more && counts {
        page.left = 1 + entries.count();
    }
    page
}

fn past_error(error: StoreError) -> ApiError {
    match error {
        StoreError::Compacted { .. } => {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        }
        error => super::update::store_error(&error),
    }
}

/// The revision of a continue token is compacted: the client may continue with the newest one.
fn expired_page(error: ApiError, page: &Continuation) -> ApiError {
    if error.code != http::StatusCode::GONE {
        return error;
    }

    let mut expired = ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );

    expired.continue_token = Continuation {
        revision: None,
        start: page.start.clone(),
    }
    .encode();

    expired
}

/// A field selector over the fields of the resource, by their names in the storage version.
pub(crate) fn field_selector(scope: &Scope<'_>, text: &str) -> Result<FieldSelector, ApiError> {
    let selector = text
        .parse::<FieldSelector>()
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    selector
        .transform(|field, value| match field_label(scope.resource, field) {
            Ok(field) => Ok((Text::new(field), Text::new(value))),
            Err(unknown) => Err(unknown.to_string()),
        })
        .map_err(ApiError::bad_request)
}
