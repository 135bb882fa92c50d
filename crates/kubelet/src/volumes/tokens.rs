//! The tokens that pods speak to the API with: asked for in their account's name, good for one pod,
//! renewed in time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::time::{Duration, Time, Timestamp};
use coracle_client::{Client, Resource};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};

use crate::pod::PodView as _;

/// A token is not used for longer, however long it is good for.
const LONGEST_USE: Duration = Duration::from_secs(24 * 60 * 60);
/// The server's rule where the pod says nothing.
const USUAL_SECONDS: i64 = 3600;
/// Renewals of many pods that began together drift apart by as much.
const SPREAD_SECONDS: f64 = 10.0;

/// The tokens of this node's pods. They are in memory only: a new kubelet asks anew.
pub(super) struct Tokens {
    client: Client,
    kept: Mutex<BTreeMap<Key, Kept>>,
}

/// Tokens are shared by what they are good for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    uid: String,
    account: String,
    audience: Option<String>,
    seconds: Option<i64>,
}

#[derive(Clone, Debug)]
struct Kept {
    token: Token,
    /// When it was asked for, by this machine's clock.
    asked: Timestamp,
    expires: Timestamp,
}

impl Kept {
    /// Whether another one is to be asked for: its time is nearly over, or the clock was set back
    /// since, and the server takes it for one that was issued in the future.
    fn is_due(&self, now: Timestamp) -> bool {
        now >= self.token.renew_at || now < self.asked
    }
}

/// A token, and when another one is to be asked for.
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
            kept: Mutex::default(),
        }
    }

    /// A token as a pod wants it: the one that there is, until it is to be renewed; and then also
    /// as long as there is no other, and it is good.
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
        let kept = self.lock().get(&key).cloned();
        if let Some(kept) = kept.as_ref().filter(|kept| !kept.is_due(now)) {
            return Ok(kept.token.clone());
        }

        match (self.ask(pod, &key).await, kept) {
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
                tracing::warn!(pod = %pod.id(), reason, "the token could not be renewed yet");
                Ok(old.token)
            }
        }
    }

    pub(super) fn forget(&self, uid: &str) {
        self.lock().retain(|key, _| key.uid != uid);
    }

    async fn ask(&self, pod: &Pod, key: &Key) -> Result<Kept, String> {
        let accounts = self.client.resource(&Resource::of::<ServiceAccount>());
        let access = accounts.namespace(pod.namespace()).subresource("token");
        let asked = self.client.world().now();
        let answer = access.create_below(&key.account, &request(pod, key)).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let spread = Duration::from_nanos(nanos(self.client.world().fraction() * SPREAD_SECONDS));
        read(&answer, spread, asked).ok_or_else(|| "the answer has no token".to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The token of an answer: to be renewed when four fifths of its time are over, or after a day.
fn read(answer: &Value, spread: Duration, asked: Timestamp) -> Option<Kept> {
    let text = answer.at(&["status", "token"])?.as_str()?.to_owned();
    let expires = Time::parse(answer.at(&["status", "expirationTimestamp"])?.as_str()?)
        .ok()?
        .0;

    let seconds = answer
        .at(&["spec", "expirationSeconds"])
        .and_then(Value::as_int)
        .unwrap_or(USUAL_SECONDS);
    let issued = expires.plus_seconds(seconds.saturating_neg());
    let renew_at = (issued + LONGEST_USE).min(expires.plus_seconds((seconds / 5).saturating_neg()));

    Some(Kept {
        token: Token {
            text,
            renew_at: renew_at + spread.negated(),
        },
        asked,
        expires,
    })
}

/// A few seconds as nanoseconds.
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
            let kept = read(
                &json::parse(answer.as_bytes()).unwrap(),
                Duration::ZERO,
                NOON,
            )
            .unwrap();
            assert_eq!(Time(kept.token.renew_at).text(), expected, "{seconds}");
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

        let kept = Kept {
            token,
            asked: NOON,
            expires: NOON.plus_seconds(3600),
        };

        let check = |seconds: i64, expected: bool| {
            assert_eq!(
                kept.is_due(NOON.plus_seconds(seconds)),
                expected,
                "{seconds} s after it was asked for"
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
