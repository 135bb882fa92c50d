//! The Lease by which other servers of the cluster, and its administrators, see this server.
//!
//! It lasts an hour. Upstream renews it every ten seconds; here it is renewed often enough to last.
//! Leases of servers that are gone are deleted.

use std::time::Duration;

use coracle_api::time::{MicroTime, Timestamp};
use coracle_api::{Map, Value};
use coracle_kinds::Part;
use ring::digest::{SHA256, digest};

use super::{MANAGER, complain, storage_versions};
use crate::ApiError;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};

const NAMESPACE: &str = "kube-system";
const COMPONENT: &str = "kube-apiserver";
const IDENTITY: &str = "apiserver.kubernetes.io/identity";
const HOST: &str = "kubernetes.io/hostname";
const SECONDS: i64 = 3600;
const RENEWED_EVERY: Duration = Duration::from_secs(900);
const RETRIED_AFTER: Duration = Duration::from_secs(10);

pub(super) async fn run(loopback: &Loopback, lease: &Hook, garbage: &Hook) {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let name = server_name(&host);
    let holder = format!("{name}_{}", loopback.registry.new_uid());

    loop {
        let now = (loopback.registry.now)();
        let renewed = match renew(loopback, &name, &host, &holder, now).await {
            Ok(()) => storage_versions::write(loopback, &name).await,
            error => error,
        };
        let collected = collect(loopback, now).await;

        let mut is_done = true;
        for (hook, result) in [(lease, renewed), (garbage, collected)] {
            match result {
                Ok(()) => hook.done(),
                Err(error) => {
                    complain(hook, &error);
                    is_done = false;
                }
            }
        }
        tokio::time::sleep(if is_done {
            RENEWED_EVERY
        } else {
            RETRIED_AFTER
        })
        .await;
    }
}

async fn renew(
    loopback: &Loopback,
    name: &str,
    host: &str,
    holder: &str,
    now: Timestamp,
) -> Result<(), ApiError> {
    let leases = resource("coordination.k8s.io", "v1", "leases");
    let found = loopback.get(leases, &format!("{NAMESPACE}/{name}"));
    let is_new = found.is_none();

    let mut lease = found.unwrap_or_else(|| empty(name));
    {
        let mut metadata = lease.meta_mut();
        let labels = metadata.members().object_mut("labels");
        labels.insert(IDENTITY, COMPONENT);
        labels.insert(HOST, host);
    }
    if let Some(lease) = lease.as_object_mut() {
        let spec = lease.object_mut("spec");
        spec.insert("holderIdentity", holder);
        spec.insert("leaseDurationSeconds", SECONDS);
        spec.insert("renewTime", MicroTime(now).to_string());
    }

    match is_new {
        true => loopback.ensure(leases, NAMESPACE, MANAGER, &lease).await,
        false => loopback
            .update(leases, NAMESPACE, Part::Main, MANAGER, &lease)
            .await
            .map(drop),
    }
}

/// Deletes the leases of servers that did not renew them.
async fn collect(loopback: &Loopback, now: Timestamp) -> Result<(), ApiError> {
    let leases = resource("coordination.k8s.io", "v1", "leases");
    for lease in loopback.registry.lookup_all(leases, NAMESPACE) {
        if lease.meta().label(IDENTITY) == Some(COMPONENT) && is_expired(&lease, now) {
            loopback
                .delete(leases, NAMESPACE, lease.meta().name())
                .await?;
        }
    }
    Ok(())
}

fn is_expired(lease: &Value, now: Timestamp) -> bool {
    let renewed = lease.at(&["spec", "renewTime"]).and_then(Value::as_str);
    let renewed = renewed.and_then(|text| MicroTime::parse(text).ok());
    let lasts = lease
        .at(&["spec", "leaseDurationSeconds"])
        .and_then(Value::as_int);
    renewed
        .zip(lasts)
        .is_none_or(|(renewed, lasts)| renewed.0.plus_seconds(lasts) < now)
}

fn empty(name: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name", name);
    metadata.insert("namespace", NAMESPACE);
    let mut lease = Map::new();
    lease.insert("apiVersion", "coordination.k8s.io/v1");
    lease.insert("kind", "Lease");
    lease.insert("metadata", metadata);
    Value::Object(lease)
}

/// The name that a server has by its host, the same in every life.
fn server_name(host: &str) -> String {
    let mut hashed = Vec::new();
    for part in [host, COMPONENT] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        hashed.extend(length.to_be_bytes());
        hashed.extend(part.as_bytes());
    }
    format!(
        "apiserver-{}",
        base32(&digest(&SHA256, &hashed).as_ref()[..16])
    )
}

/// Lower-case base 32 without padding.
fn base32(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let (mut text, mut held, mut bits) = (String::new(), 0_u16, 0);
    for byte in bytes {
        held = held << 8 | u16::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(DIGITS[usize::from(held >> bits & 31)]));
        }
        held &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(DIGITS[usize::from(held << (5 - bits) & 31)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    #[test]
    fn base32_is_that_of_the_rfc_in_lower_case() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "my"),
            ("fo", "mzxq"),
            ("foobar", "mzxw6ytboi"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), expected);
        }
        assert_eq!(server_name("host").len(), "apiserver-".len() + 26);
        assert_ne!(server_name("host"), server_name("other"));
    }

    #[test]
    fn a_lease_that_was_not_renewed_for_its_duration_is_expired() {
        let now = Timestamp::from_unix(1_000_000, 0);
        let check = |spec: &str, expected: bool| {
            let lease = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            assert_eq!(is_expired(&lease, now), expected, "{spec}");
        };

        let at = |seconds: i64| MicroTime(now.plus_seconds(-seconds)).to_string();
        check(
            &format!(
                r#"{{"renewTime":"{}","leaseDurationSeconds":3600}}"#,
                at(3599)
            ),
            false,
        );
        check(
            &format!(
                r#"{{"renewTime":"{}","leaseDurationSeconds":3600}}"#,
                at(3601)
            ),
            true,
        );
        check("{}", true);
    }
}
