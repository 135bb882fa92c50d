//! A watch: its events in the requested form, until it times out, its reader is too slow, or the
//! server shuts down.

mod events;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use coracle_client::transport::{TakesTrees, Trees};
use futures_util::stream;
use http::{Extensions, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::time::Instant;

use crate::ApiError;
use crate::answer::{self, Answer};
use crate::handler::Server;
use crate::lifecycle::Stage;
use crate::registry::Scope;
use crate::render::{EventWriter, Rendering};
use crate::request::ListOptions;
use crate::served::Served;
use crate::status::Reason;
use events::{WatchEnd, WatchStream};

/// The interval of bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// How long before a watch ends it gets its last one.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

impl Server {
    /// Responds with a stream of events.
    pub(crate) async fn watch(
        self: &Arc<Self>,
        scope: &Scope<'_>,
        served: &Served,
        options: &ListOptions,
        rendering: Rendering,
        extensions: &Extensions,
    ) -> Result<Answer, ApiError> {
        let began = Instant::now();
        let watch = self.registry.watch(scope, served, options).await;
        let mut writer = EventWriter::new(rendering, served.clone(), self.registry.now)?
            .with_sizes(self.metrics.watch_event_sizes(served));

        let trees = extensions.get::<TakesTrees>().map(|_| Trees::default());
        if let Some(trees) = &trees {
            let caches = &self.registry.caches;
            writer = writer.for_trees(trees.clone(), caches.trees.clone());
            let cache = scope
                .resource
                .storage
                .as_ref()
                .and_then(|storage| caches.get(&storage.prefix));
            cache.inspect(|cache| cache.read_as_trees.store(true, Ordering::Relaxed));
        }

        let content_type = writer.content_type();
        let events = match watch {
            Ok(mut events) => {
                let durations = self.metrics.watch_lists(served, scope.namespace);
                events.time_listing(durations, began);
                events
            }
            // The stream has begun, so an expired version is reported as an ERROR event.
            Err(gone) if gone.code == StatusCode::GONE => {
                return Ok(error_stream(&gone, writer, trees));
            }
            Err(error) => return Err(error),
        };

        // A watch without a version would first wait for the newest revision, and there is no time
        // for that.
        if options.timeout == Some(Duration::ZERO) && !options.version_given {
            let (code, reason) = (StatusCode::INTERNAL_SERVER_ERROR, Reason::InternalError);
            return Ok(error_stream(
                &ApiError::new(code, reason, "context deadline exceeded"),
                writer,
                trees,
            ));
        }

        let now = Instant::now();
        let asked = options.timeout.and_then(|timeout| now.checked_add(timeout));
        let ends = asked.unwrap_or_else(|| now + self.watch_lasts());

        let sent = self.metrics.watch_events(served);
        let state = (
            events,
            writer,
            self.lifecycle.subscribe(),
            sent,
            bookmark_after(now, ends),
        );

        let body = StreamBody::new(stream::unfold(
            state,
            move |(mut events, mut writer, mut stages, sent, mut bookmark_at)| async move {
                let chunk = tokio::select! {
                    biased;
                    chunk = next_chunk(&mut events, &mut writer, &mut bookmark_at, ends) => chunk?,
                    // A client that finds its stream ended watches on, with another server if there
                    // is one.
                    _ = stages.wait_for(|stage| *stage >= Stage::Draining) => return None,
                };

                sent.add(writer.take_written());

                Some((
                    Ok::<_, answer::BrokenOff>(Frame::data(Bytes::from(chunk))),
                    (events, writer, stages, sent, bookmark_at),
                ))
            },
        ));
        let mut response = Response::new(body.boxed_unsync());

        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));

        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-cache, private"),
        );

        Ok(with_trees(response, trees))
    }

    /// Random, so that watches that began together do not reconnect together.
    fn watch_lasts(&self) -> Duration {
        let share = (self.registry.random)() % 1000;
        self.min_watch
            + self
                .min_watch
                .mul_f64(f64::from(u32::try_from(share).unwrap_or_default()) / 1000.0)
    }
}

/// A stream that is nothing but an error.
fn error_stream(error: &ApiError, mut writer: EventWriter, trees: Option<Trees>) -> Answer {
    let mut body = Vec::new();
    writer.error(error, &mut body);
    with_trees(
        answer::bytes(StatusCode::OK, writer.content_type(), body),
        trees,
    )
}

/// Attaches the events of a watch for a reader in the same process.
fn with_trees(mut answer: Answer, trees: Option<Trees>) -> Answer {
    if let Some(trees) = trees {
        answer.extensions_mut().insert(trees);
    }
    answer
}

/// When a watch gets its next bookmark: at the interval, and shortly before it ends, so that the
/// next watch resumes from a recent revision.
fn bookmark_after(now: Instant, ends: Instant) -> Instant {
    let regular = now + BOOKMARK_EVERY;
    match ends.checked_sub(BOOKMARK_BEFORE_END) {
        Some(last) if now < last => last.min(regular),
        _ => regular,
    }
}

/// What a watch sends next; `None`: its time is over.
async fn next_chunk(
    events: &mut WatchStream,
    writer: &mut EventWriter,
    bookmark_at: &mut Instant,
    ends: Instant,
) -> Option<Vec<u8>> {
    loop {
        let chunk = {
            let next = pin!(events.next(writer));
            tokio::select! {
                biased;
                chunk = next => Some(chunk),
                () = tokio::time::sleep_until(ends) => return None,
                () = tokio::time::sleep_until(*bookmark_at) => None,
            }
        };

        let chunk = match chunk {
            Some(chunk) => chunk.map(Some),
            None => {
                *bookmark_at = bookmark_after(Instant::now(), ends);
                events.bookmark(writer).map_err(WatchEnd::from)
            }
        };
        match chunk {
            Ok(Some(chunk)) => return Some(chunk),
            Ok(None) => {}
            // It gets the end of the stream, and watches again from its last version.
            Err(WatchEnd::Overtaken) => {
                events.count_overtaken();
                return None;
            }
            Err(WatchEnd::Failed) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_come_every_minute_and_shortly_before_the_end() {
        let began = Instant::now();
        let check = |now: u64, ends: u64, expected: u64| {
            let at = |seconds| began + Duration::from_secs(seconds);
            assert_eq!(
                bookmark_after(at(now), at(ends)),
                at(expected),
                "{now} of {ends}"
            );
        };

        check(0, 1800, 60);
        check(60, 1800, 120);
        check(1740, 1800, 1798);
        check(1798, 1800, 1858);
        check(0, 5, 3);
        check(0, 2, 60);
        check(0, 1, 60);
    }
}
