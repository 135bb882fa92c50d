//! Service account tokens of pods: requested for the pod's account, bound to the pod, renewed
//! before they expire.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::time::{Duration, Time, Timestamp};
use coracle_base::sync::Mutex;
use coracle_client::{Client, Resource};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};

use crate::pod::PodView as _;

/// A token is renewed after this time, even if it is valid for longer.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The server's default.
const DEFAULT_SECONDS: i64 = 3600;
/// Jitter of renewals.
const SPREAD_SECONDS: f64 = 10.0;

/// The tokens of this node's pods, in memory only: they are requested again after a restart.
pub(super) struct Tokens {
    client: Client,
    cached: Mutex<BTreeMap<Key, CachedToken>>,
}

/// Identifies a token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    uid: String,
    account: String,
    audience: Option<String>,
    seconds: Option<i64>,
}

#[derive(Clone, Debug)]
struct CachedToken {
    token: Token,
    /// When it was requested, by this machine's clock.
    requested_at: Timestamp,
    expires: Timestamp,
}

impl CachedToken {
    /// Whether to request a new one: its lifetime is nearly over, or the clock was set back since,
    /// and the server takes it for one that was issued in the future.
    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.token.renew_at || now < self.requested_at
    }
}

/// A token, and when to renew it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) renew_at: Timestamp,
}

/// Why there is no token. The texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("failed to fetch token: {0}")]
    First(String),
    #[error("token of account {account} expired and refresh failed: {reason}")]
    Renewal { account: String, reason: String },
}

impl Tokens {
    pub(super) fn new(client: Client) -> Tokens {
        Tokens {
            client,
            cached: Mutex::default(),
        }
    }

    /// The token of a projection: the cached one until its renewal is due, and also while the
    /// renewal fails and it has not expired.
    pub(super) async fn get(
        &self,
        pod: &Pod,
        wanted: &ServiceAccountTokenProjection,
    ) -> Result<Token, TokenError> {
        let key = Key {
            uid: pod.uid().to_owned(),
            account: pod
                .pod_spec()
                .service_account_name
                .clone()
                .unwrap_or_default(),
            audience: wanted
                .audience
                .clone()
                .filter(|audience| !audience.is_empty()),
            seconds: wanted.expiration_seconds,
        };

        let now = self.client.world().now();
        let cached = self.lock().get(&key).cloned();
        if let Some(cached) = cached.as_ref().filter(|cached| !cached.is_due(now)) {
            return Ok(cached.token.clone());
        }

        match (self.request_token(pod, &key).await, cached) {
            (Ok(fresh), _) => {
                let token = fresh.token.clone();
                self.lock().insert(key, fresh);
                Ok(token)
            }
            (Err(reason), None) => Err(TokenError::First(reason)),
            (Err(reason), Some(old)) if now > old.expires => Err(TokenError::Renewal {
                account: key.account,
                reason,
            }),
            (Err(reason), Some(old)) => {
                tracing::warn!(pod = %pod.id(), reason, "cannot renew service account token; retrying");
                Ok(old.token)
            }
        }
    }

    pub(super) fn forget(&self, uid: &str) {
        self.lock().retain(|key, _| key.uid != uid);
    }

    async fn request_token(&self, pod: &Pod, key: &Key) -> Result<CachedToken, String> {
        let accounts = self.client.resource(&Resource::of::<ServiceAccount>());
        let access = accounts.namespace(pod.namespace()).subresource("token");
        let requested_at = self.client.world().now();
        let answer = access.create_below(&key.account, &request(pod, key)).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let spread = Duration::from_nanos(nanos(self.client.world().fraction() * SPREAD_SECONDS));
        read(&answer, spread, requested_at)
            .ok_or_else(|| "the TokenRequest response has no token".to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, CachedToken>> {
        self.cached.lock()
    }
}

fn request(pod: &Pod, key: &Key) -> Value {
    let mut spec = serde_json::json!({
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.name(), "uid": pod.uid()},
        "audiences": key.audience.iter().collect::<Vec<_>>(),
    });
    if let Some(seconds) = key.seconds {
        spec["expirationSeconds"] = seconds.into();
    }
    let request = serde_json::json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    json::parse(request.to_string().as_bytes()).expect("this is JSON")
}

/// Parses a response: renewal is due after four fifths of the lifetime, or after a day.
fn read(answer: &Value, spread: Duration, requested_at: Timestamp) -> Option<CachedToken> {
    let text = answer.at(&["status", "token"])?.as_str()?.to_owned();
    let expires = Time::parse(answer.at(&["status", "expirationTimestamp"])?.as_str()?)
        .ok()?
        .0;

    let seconds = answer
        .at(&["spec", "expirationSeconds"])
        .and_then(Value::as_int)
        .unwrap_or(DEFAULT_SECONDS);
    let issued = expires.plus_seconds(seconds.saturating_neg());
    let renew_at = (issued + MAX_AGE).min(expires.plus_seconds((seconds / 5).saturating_neg()));

    Some(CachedToken {
        token: Token {
            text,
            renew_at: renew_at + spread.negated(),
        },
        requested_at,
        expires,
    })
}

/// Seconds as nanoseconds.
fn nanos(seconds: f64) -> i64 {
    let span = std::time::Duration::from_secs_f64(seconds.clamp(0.0, SPREAD_SECONDS));
    i64::try_from(span.as_nanos()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_after_four_fifths_of_its_time_or_a_day() {
        let check = |seconds: i64, expected: &str| {
            let answer = format!(
                r#"{{"spec":{{"expirationSeconds":{seconds}}},"status":{{"token":"t","expirationTimestamp":"2026-03-10T00:00:00Z"}}}}"#
            );
            let answer = json::parse(answer.as_bytes()).unwrap();
            let cached = read(&answer, Duration::ZERO, NOON).unwrap();
            assert_eq!(Time(cached.token.renew_at).text(), expected, "{seconds}");
        };

        check(600, "2026-03-09T23:58:00Z");
        check(3607, "2026-03-09T23:47:59Z");
        check(24 * 3600, "2026-03-09T19:12:00Z");
        check(5 * 24 * 3600, "2026-03-06T00:00:00Z");
    }

    const NOON: Timestamp = Timestamp::from_unix(1_773_100_800, 0);

    #[test]
    fn a_token_that_was_issued_before_the_clock_was_set_back_is_renewed() {
        let token = Token {
            text: "t".to_owned(),
            renew_at: NOON.plus_seconds(2880),
        };

        let cached = CachedToken {
            token,
            requested_at: NOON,
            expires: NOON.plus_seconds(3600),
        };

        let check = |seconds: i64, expected: bool| {
            assert_eq!(
                cached.is_due(NOON.plus_seconds(seconds)),
                expected,
                "{seconds} s after it was requested"
            );
        };

        check(0, false);
        check(2879, false);
        check(2880, true);
        check(4000, true);
        check(-3600, true);
    }

    #[test]
    fn a_request_is_bound_to_the_pod() {
        let pod: Pod = serde_json::from_str(r#"{"metadata":{"name":"p","uid":"u"}}"#).unwrap();
        let key = Key {
            uid: "u".to_owned(),
            account: "a".to_owned(),
            audience: Some("vault".to_owned()),
            seconds: Some(600),
        };
        assert_eq!(
            json::to_string(&request(&pod, &key)),
            r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":["vault"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"},"expirationSeconds":600}}"#
        );
    }
}
