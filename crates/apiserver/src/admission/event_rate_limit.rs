//! EventRateLimit: so many events per second of the whole server, of a namespace, of a user, or about
//! one object from one source.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::Part;
use http::StatusCode;
use tokio::time::Instant;

use super::configuration::{EventLimit, EventLimitType};
use super::{Attributes, Plugin, together};
use crate::ApiError;
use crate::status::Reason;

pub(super) struct EventRateLimit {
    limits: Vec<(EventLimit, Mutex<Buckets>)>,
}

impl EventRateLimit {
    pub(super) fn new(limits: &[EventLimit]) -> EventRateLimit {
        let limits = limits.iter().cloned();
        EventRateLimit {
            limits: limits.map(|limit| (limit, Mutex::default())).collect(),
        }
    }
}

#[async_trait]
impl Plugin for EventRateLimit {
    async fn validate(
        &self,
        event: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let cx = &attributes.cx;
        let is_event = cx.kind.group.is_empty() && cx.kind.name == "Event" && cx.part == Part::Main;
        let Some(event) = event.filter(|_| is_event && !cx.dry_run) else {
            return Ok(());
        };

        let now = Instant::now();
        let refused = self.limits.iter().filter_map(|(limit, buckets)| {
            let key = match limit.per {
                EventLimitType::Server => String::new(),
                EventLimitType::Namespace => cx.namespace.to_owned(),
                EventLimitType::User => cx.user.name.clone(),
                EventLimitType::SourceAndObject => source_and_object(event),
            };
            let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = buckets.take(&key, limit, now);
            let name = limit.per.name();
            (!taken).then(|| format!("limit reached on type {name} for key {key}"))
        });
        match together(refused.collect()) {
            None => Ok(()),
            // Without a time to retry after, as upstream: clients are told, and do not wait.
            Some(why) => Err(ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                Reason::TooManyRequests,
                format!("Too many requests: {why}"),
            )),
        }
    }
}

fn source_and_object(event: &Value) -> String {
    let paths = [
        ["source", "component"],
        ["source", "host"],
        ["involvedObject", "kind"],
        ["involvedObject", "namespace"],
        ["involvedObject", "name"],
        ["involvedObject", "uid"],
        ["involvedObject", "apiVersion"],
    ];
    let part = |path: [&str; 2]| event.at(&path).and_then(Value::as_str).unwrap_or_default();
    paths.map(part).concat()
}

/// A bucket of tokens for each key; those that were used longest ago are forgotten.
#[derive(Default)]
struct Buckets {
    by_key: HashMap<String, Bucket>,
    /// Keys by their last use.
    by_use: BTreeMap<u64, String>,
    uses: u64,
}

struct Bucket {
    tokens: f64,
    filled: Instant,
    used: u64,
}

impl Buckets {
    /// Takes one token, if there is one.
    fn take(&mut self, key: &str, limit: &EventLimit, now: Instant) -> bool {
        let most = f64::from(limit.burst);
        self.uses += 1;
        let used = self.uses;
        if !self.by_key.contains_key(key) && self.by_key.len() >= limit.cache_size {
            let oldest = self.by_use.pop_first().map(|(_, key)| key);
            oldest.map(|key| self.by_key.remove(&key));
        }

        let bucket = self.by_key.entry(key.to_owned()).or_insert(Bucket {
            tokens: most,
            filled: now,
            used,
        });
        self.by_use.remove(&bucket.used);
        self.by_use.insert(used, key.to_owned());
        bucket.used = used;

        let since = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.tokens = (bucket.tokens + since * f64::from(limit.qps)).min(most);
        bucket.filled = now;
        let has_one = bucket.tokens >= 1.0;
        if has_one {
            bucket.tokens -= 1.0;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_bucket_fills_again_and_the_oldest_is_forgotten() {
        let limit = EventLimit {
            per: EventLimitType::Namespace,
            qps: 2,
            burst: 3,
            cache_size: 2,
        };
        let start = Instant::now();
        let mut buckets = Buckets::default();
        let mut take =
            |key: &str, after: u64| buckets.take(key, &limit, start + Duration::from_millis(after));

        assert_eq!(
            [0, 0, 0, 0].map(|after| take("a", after)),
            [true, true, true, false]
        );
        assert!(!take("a", 400));
        assert!(take("a", 500));
        assert!(take("b", 500));
        assert!(take("c", 500));
        assert!(take("a", 500), "the bucket of a is a new one");
    }
}
