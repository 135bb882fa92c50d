//! Watch: a cursor over a resource's history, filtered, and written as a stream of events.

use std::collections::VecDeque;
use std::sync::Arc;

use coracle_api::selector::{FieldSelector, LabelSelector};
use coracle_metrics::Histogram;
use coracle_store::Revision;
use tokio::time::Instant;

use crate::ApiError;
use crate::cache::{
    Cache, Caches, Change, Cursor, CursorOvertaken, Custom, Entry, Event, Listening,
};
use crate::registry::{BATCH, Registry, Requested, RequiredVersion, Scope, field_selector};
use crate::render::EventWriter;
use crate::request::ListOptions;
use crate::served::Served;

/// No more than this is gathered before it is sent.
const CHUNK: usize = 64 * 1024;

/// Events of one watch, as they happen.
pub(super) struct WatchStream {
    caches: Arc<Caches>,
    cache: Arc<Cache>,
    /// How often the cache had been loaded when the watch began.
    loaded: u64,
    /// Where the time until the end of the initial events is counted, and when it began.
    listing: Option<(Arc<Histogram>, Instant)>,
    listening: Listening,
    /// Events that happened before the cursor begins.
    missed: VecDeque<Event>,
    cursor: Cursor,
    /// Where a webhook converts objects.
    conversion: Option<EventConversion>,
    /// The initial events that are not sent yet.
    initial: VecDeque<Arc<Entry>>,
    /// A bookmark is owed once the initial versions are sent.
    end_of_initial: Option<Revision>,
    view: View,
    bookmarks: bool,
    /// The size of the last chunk: the next one is probably as large.
    last_chunk: usize,
}

/// Events that are read from the history before a webhook has converted their objects.
struct EventConversion {
    registry: Arc<Registry>,
    custom: Arc<Custom>,
    version: usize,
    /// In the version of the store.
    stored: VecDeque<Event>,
    /// In the version of the client.
    shown: VecDeque<Event>,
    /// A conversion failed, and the client knows.
    has_failed: bool,
}

/// Why a watch ends.
#[derive(Debug)]
pub(super) enum WatchEnd {
    /// The client reads too slowly, and the events that it has not read are no longer in the
    /// history.
    Overtaken,
    /// A webhook has not converted an object.
    Failed,
}

impl From<CursorOvertaken> for WatchEnd {
    fn from(_: CursorOvertaken) -> WatchEnd {
        WatchEnd::Overtaken
    }
}

/// What the client sees of what happens.
struct View {
    served: Served,
    filter: Filter,
    /// What happened up to here, the client has seen.
    since: Revision,
    /// The revision up to which the client has all events.
    sent: Revision,
}

struct Filter {
    prefix: String,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    fn matches(&self, entry: &Entry, served: &Served) -> bool {
        entry.key().starts_with(&self.prefix)
            && entry.matches(
                &self.labels,
                &self.fields,
                served.storage_version().resource,
            )
    }
}

impl Registry {
    pub(super) async fn watch(
        self: &Arc<Self>,
        scope: &Scope<'_>,
        served: &Served,
        options: &ListOptions,
    ) -> Result<WatchStream, ApiError> {
        let cache = self.cache(scope)?.clone();
        let prefix = if scope.namespace.is_empty() {
            String::new()
        } else {
            format!("{}/", scope.namespace)
        };

        let filter = Filter {
            prefix,
            labels: options.labels.clone(),
            fields: field_selector(scope, &options.fields)?,
        };

        let from_now = options.version.0 == 0;

        // Initial events show a state at least as new as what the client has seen.
        let initial = options.send_initial_events == Some(true) || from_now;
        let wanted = RequiredVersion::version(options.version_given, options.version.0);
        self.reach(if initial {
            wanted
        } else {
            RequiredVersion::Any
        })
        .await?;
        let wants_initial = wants_initial(options);

        let loaded = cache.counts.initializations.get();
        let interest = cache.interest(scope.namespace, &filter.fields);
        let (initial, start, sent) = if wants_initial || from_now {
            // Read before the snapshot is taken: changes that are applied afterwards are sent as
            // events.
            let applied = self.caches.applied();
            let (snapshot, start) = cache.snapshot_and_after(&interest);
            let initial: VecDeque<_> = match (wants_initial, scope.requested()) {
                (false, _) => VecDeque::new(),
                (true, None) => {
                    let entries = snapshot.entries.iter();
                    let shown = entries.filter(|entry| filter.matches(entry, served));
                    shown.cloned().collect()
                }
                (true, Some(_)) => {
                    let entries = snapshot.entries.iter();
                    let stored = entries.filter(|entry| entry.key().starts_with(&filter.prefix));
                    let shown = self.all_shown(scope, stored.cloned().collect()).await?;
                    let shown = shown.into_iter();
                    shown
                        .filter(|entry| filter.matches(entry, served))
                        .collect()
                }
            };
            let newest = initial.iter().map(|entry| entry.revision).max();

            (
                initial,
                start,
                newest.map_or(applied, |newest| newest.max(applied)),
            )
        } else {
            let since = Revision::new(options.version.0);
            let start = cache.after(since, &interest).map_err(|oldest| {
                ApiError::expired(format!("too old resource version: {since} ({oldest})"))
            })?;
            (VecDeque::new(), start, since)
        };
        let end_of_initial = is_end_marked(options).then_some(sent);
        cache.counts.initial.add(initial.len() as u64);

        Ok(WatchStream {
            caches: self.caches.clone(),
            cache,
            loaded,
            listing: None,
            listening: start.listening,
            missed: start.missed.into(),
            cursor: start.cursor,
            conversion: EventConversion::of(self, scope, served),
            initial,
            end_of_initial,
            view: View {
                served: served.clone(),
                filter,
                since: sent,
                sent,
            },
            bookmarks: options.bookmarks,
            last_chunk: 0,
        })
    }
}

/// Whether the watch begins with the existing objects; one without a version does.
fn wants_initial(options: &ListOptions) -> bool {
    options
        .send_initial_events
        .unwrap_or(options.version.0 == 0)
}

/// Whether a bookmark marks the end of the initial events.
fn is_end_marked(options: &ListOptions) -> bool {
    wants_initial(options) && options.bookmarks
}

impl WatchStream {
    /// Counts the time since `began` until the client has the mark of the end of the initial events.
    pub(super) fn time_listing(&mut self, durations: Arc<Histogram>, began: Instant) {
        self.listing = Some((durations, began));
    }

    /// Counts a client that was disconnected because it reads too slowly. Watchers are disconnected
    /// too where the cache was loaded anew.
    pub(super) fn count_overtaken(&self) {
        if self.cache.counts.initializations.get() == self.loaded {
            self.cache.counts.overtaken.inc();
        }
    }

    /// The next events as the writer encodes them; waits until there are some.
    ///
    /// # Errors
    /// The watch cannot go on.
    ///
    /// # Cancellation
    /// Cancel-safe: no event is lost.
    pub(super) async fn next(&mut self, writer: &mut EventWriter) -> Result<Vec<u8>, WatchEnd> {
        let mut out = Vec::new();
        while let Some(entry) = self.initial.pop_front() {
            writer.write("ADDED", &entry, &mut out);
            if out.len() >= CHUNK {
                return Ok(out);
            }
        }

        if let Some(revision) = self.end_of_initial.take() {
            self.view.sent = self.view.sent.max(revision);
            writer.bookmark(revision, true, &mut out);
            if let Some((durations, began)) = self.listing.take() {
                durations.took(began.elapsed());
            }
        }
        // What follows may wait, and may be given up then.
        if !out.is_empty() {
            self.last_chunk = out.len();
            return Ok(out);
        }

        loop {
            let notifier = self.listening.notifier.clone();

            // Subscribed before the history is read, so that no event in between is missed.
            let notified = notifier.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            self.convert(writer, &mut out).await?;
            while out.len() < CHUNK && self.show_next(writer, &mut out)? {}

            if !out.is_empty() {
                self.last_chunk = out.len();
                return Ok(out);
            }

            notified.await;
        }
    }

    /// Shows what happened next; whether anything did.
    fn show_next(
        &mut self,
        writer: &mut EventWriter,
        out: &mut Vec<u8>,
    ) -> Result<bool, CursorOvertaken> {
        let before = match &mut self.conversion {
            Some(conversion) => match conversion.shown.pop_front() {
                Some(event) => Some(event),
                None => return Ok(false),
            },
            None => self.missed.pop_front(),
        };
        let event = match &before {
            Some(event) => event,
            None => match self.cursor.advance()? {
                Some(event) => event,
                None => return Ok(false),
            },
        };

        if out.capacity() == 0 {
            out.reserve(self.last_chunk);
        }

        self.view.show(event, writer, out);

        Ok(true)
    }

    /// Reads events and has their objects converted, where that is to be done. A failure is the
    /// last that the client hears.
    async fn convert(
        &mut self,
        writer: &mut EventWriter,
        out: &mut Vec<u8>,
    ) -> Result<(), WatchEnd> {
        let Some(conversion) = &mut self.conversion else {
            return Ok(());
        };
        if conversion.has_failed {
            return Err(WatchEnd::Failed);
        }

        conversion.read(&mut self.missed, &mut self.cursor)?;
        if let Err(error) = conversion.run().await {
            conversion.has_failed = true;
            writer.error(&error, out);
        }

        Ok(())
    }

    /// A bookmark at the newest applied revision, if the client requested bookmarks; before it, the
    /// events up to there.
    ///
    /// # Errors
    /// As [`WatchStream::next`].
    pub(super) fn bookmark(
        &mut self,
        writer: &mut EventWriter,
    ) -> Result<Option<Vec<u8>>, CursorOvertaken> {
        // Read before the history: no event up to there may follow the bookmark.
        let applied = self.caches.applied();
        if !self.bookmarks || applied < self.view.sent {
            return Ok(None);
        }
        if let Some(conversion) = &mut self.conversion {
            conversion.read(&mut self.missed, &mut self.cursor)?;
            if conversion.is_busy() {
                return Ok(None);
            }
        }

        let mut out = Vec::new();
        while self.show_next(writer, &mut out)? {
            if out.len() >= CHUNK {
                return Ok(Some(out));
            }
        }

        self.view.sent = self.view.sent.max(applied);

        if out.is_empty() {
            // Readers of trees have long read the last events.
            self.caches.trees.let_go();
        }

        writer.bookmark(self.view.sent, false, &mut out);

        Ok(Some(out))
    }
}

impl EventConversion {
    fn of(registry: &Arc<Registry>, scope: &Scope<'_>, served: &Served) -> Option<EventConversion> {
        let requested = scope.requested()?;
        let Served::Custom(custom, _) = served else {
            return None;
        };
        Some(EventConversion {
            registry: registry.clone(),
            custom: custom.clone(),
            version: requested.version,
            stored: VecDeque::new(),
            shown: VecDeque::new(),
            has_failed: false,
        })
    }

    /// Whether the client has not seen all that was read.
    fn is_busy(&self) -> bool {
        self.has_failed || !self.stored.is_empty() || !self.shown.is_empty()
    }

    /// Reads what has happened.
    fn read(
        &mut self,
        missed: &mut VecDeque<Event>,
        cursor: &mut Cursor,
    ) -> Result<(), CursorOvertaken> {
        while self.stored.len() < BATCH {
            let event = match missed.pop_front() {
                Some(event) => event,
                None => match cursor.advance()? {
                    Some(event) => event.clone(),
                    None => break,
                },
            };
            self.stored.push_back(event);
        }
        Ok(())
    }

    async fn run(&mut self) -> Result<(), ApiError> {
        if self.stored.is_empty() {
            return Ok(());
        }

        let requested = Requested {
            custom: &self.custom,
            version: self.version,
        };
        let of_event = |event: &Event| {
            let previous = event.previous.clone();
            std::iter::once(event.entry.clone()).chain(previous)
        };
        let stored = self.stored.iter().flat_map(of_event).collect();
        let converted = self.registry.all_converted(requested, stored).await?;

        let mut converted = converted.into_iter();
        for mut event in self.stored.drain(..) {
            let mut next = || converted.next().expect("each entry is converted");
            event.entry = next();
            if event.previous.is_some() {
                event.previous = Some(next());
            }
            self.shown.push_back(event);
        }

        Ok(())
    }
}

impl View {
    /// An object that begins to match is an ADDED event for this client, one that no longer matches
    /// a DELETED one.
    fn show(&mut self, event: &Event, writer: &mut EventWriter, out: &mut Vec<u8>) {
        // Not compared with the sent revision: several objects may have changed at one revision.
        if event.revision() <= self.since {
            return;
        }

        let before = event
            .previous
            .as_ref()
            .is_some_and(|entry| self.filter.matches(entry, &self.served));

        let after =
            event.change != Change::Deleted && self.filter.matches(&event.entry, &self.served);
        let shown = match (before, after) {
            (false, false) => return,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };

        self.sent = event.revision();

        match &event.previous {
            // It still exists, but not to this client: its last version that did.
            Some(previous) if shown == "DELETED" && event.change != Change::Deleted => {
                writer.write(shown, &previous.at(event.revision()), out);
            }
            _ => writer.write(shown, &event.entry, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Query;

    #[test]
    fn the_end_of_initial_events_is_marked_for_those_who_take_bookmarks() {
        let check = |query: &str, initial: bool, marked: bool| {
            let options = ListOptions::parse(&Query::parse(&format!("watch=1&{query}"))).unwrap();
            assert_eq!(
                (wants_initial(&options), is_end_marked(&options)),
                (initial, marked),
                "{query}"
            );
        };

        check("", true, false);
        check("resourceVersion=0", true, false);
        check("allowWatchBookmarks=true", true, true);
        check("allowWatchBookmarks=true&resourceVersion=0", true, true);
        check("allowWatchBookmarks=true&resourceVersion=7", false, false);

        let streamed = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        check(streamed, true, false);
        check(&format!("{streamed}&allowWatchBookmarks=true"), true, true);
        check(
            &format!("{streamed}&allowWatchBookmarks=true&resourceVersion=7"),
            true,
            true,
        );

        let not = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
        check(&format!("{not}&allowWatchBookmarks=true"), false, false);
    }
}
