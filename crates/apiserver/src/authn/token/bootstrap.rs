//! Bootstrap tokens, with which a new node requests its certificate. They are secrets in
//! `kube-system`.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_api::time::{Time, Timestamp};

use super::service_account::same;
use super::{Finding, Recognised, TokenAuthenticator, for_the_api};
use crate::authn::User;
use crate::cache::Caches;

const GROUP: &str = "system:bootstrappers";

pub struct BootstrapTokens {
    pub caches: Arc<Caches>,
    /// The API's own.
    pub audiences: Vec<String>,
}

impl TokenAuthenticator for BootstrapTokens {
    fn find(&self, token: &str, audiences: &[String], now: Timestamp) -> Finding {
        let Some(audiences) = for_the_api(&self.audiences, audiences) else {
            return Finding::Unknown;
        };
        match self.user(token, now) {
            Some(user) => Finding::Known(Recognised {
                user: Arc::new(user),
                audiences,
            }),
            None => Finding::Unknown,
        }
    }
}

impl BootstrapTokens {
    fn user(&self, token: &str, now: Timestamp) -> Option<User> {
        let (id, secret) = parts(token)?;
        let cache = self.caches.get("secrets")?;
        let kept = cache
            .get(&format!("kube-system/bootstrap-token-{id}"))?
            .value(cache.storage_version().of);
        user(&kept, id, secret, now)
    }
}

/// `[a-z0-9]{6}.[a-z0-9]{16}`.
fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    (id.len() == 6 && secret.len() == 16 && plain(id) && plain(secret)).then_some((id, secret))
}

fn user(kept: &Value, id: &str, secret: &str, now: Timestamp) -> Option<User> {
    let is_one = kept.get("type").and_then(Value::as_str) == Some("bootstrap.kubernetes.io/token");
    if kept.meta().is_being_deleted() || !is_one {
        return None;
    }

    let data = |name: &str| {
        let text = kept
            .at(&["data", name])
            .and_then(Value::as_str)
            .unwrap_or_default();
        String::from_utf8(STANDARD.decode(text).unwrap_or_default()).unwrap_or_default()
    };

    if !same(data("token-secret").as_bytes(), secret.as_bytes()) || data("token-id") != id {
        return None;
    }

    let expires = data("expiration");

    // What cannot be read has passed.
    let is_over = !expires.is_empty() && Time::parse(&expires).ok().is_none_or(|at| at.0 <= now);
    if is_over || data("usage-bootstrap-authentication") != "true" {
        return None;
    }

    let mut groups = BTreeSet::from([GROUP.to_string()]);
    for group in data("auth-extra-groups")
        .split(',')
        .filter(|group| !group.is_empty())
    {
        if !is_group(group) {
            return None;
        }
        groups.insert(group.to_string());
    }

    let groups = groups.into_iter().collect();
    Some(User {
        name: format!("system:bootstrap:{id}"),
        groups,
        ..User::default()
    })
}

/// `system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]`.
fn is_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix("system:bootstrappers:") else {
        return false;
    };
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let (Some(last), Some(before)) = (rest.as_bytes().last(), rest.len().checked_sub(1)) else {
        return false;
    };

    before <= 255
        && plain(last)
        && rest
            .bytes()
            .all(|byte| plain(&byte) || byte == b':' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn check(changes: &[(&str, Option<&str>)], expected: Option<&str>) {
        let mut data = std::collections::BTreeMap::from([
            ("token-id", "abcdef"),
            ("token-secret", "0123456789abcdef"),
            ("usage-bootstrap-authentication", "true"),
            ("expiration", "2100-01-01T00:00:00Z"),
            (
                "auth-extra-groups",
                "system:bootstrappers:b,system:bootstrappers:a",
            ),
        ]);

        for (name, value) in changes {
            match value {
                Some(value) => data.insert(name, value),
                None => data.remove(name),
            };
        }

        let lines: String = data
            .iter()
            .map(|(name, value)| format!("  {name}: {:?}\n", STANDARD.encode(value)))
            .collect();

        let text =
            format!("type: bootstrap.kubernetes.io/token\nmetadata: {{name: x}}\ndata:\n{lines}");
        let kept = yaml::decode(text.as_bytes()).unwrap();
        let found = user(
            &kept,
            "abcdef",
            "0123456789abcdef",
            Timestamp::from_unix(1_700_000_000, 0),
        );

        assert_eq!(
            found.map(|user| user.groups.join(" ")).as_deref(),
            expected,
            "{changes:?}"
        );
    }

    #[test]
    fn a_token_is_good_when_everything_about_it_is() {
        let good = "system:bootstrappers system:bootstrappers:a system:bootstrappers:b";
        check(&[], Some(good));
        check(&[("expiration", None)], Some(good));
        check(&[("expiration", Some("2001-01-01T00:00:00Z"))], None);
        check(&[("expiration", Some("soon"))], None);
        check(&[("token-secret", Some("0123456789abcdee"))], None);
        check(&[("token-id", Some("abcdeg"))], None);
        check(&[("usage-bootstrap-authentication", Some("True"))], None);
        check(&[("auth-extra-groups", Some("system:masters"))], None);
        check(&[("auth-extra-groups", None)], Some("system:bootstrappers"));
    }

    #[test]
    fn a_token_has_its_form() {
        assert_eq!(
            parts("abcdef.0123456789abcdef"),
            Some(("abcdef", "0123456789abcdef"))
        );

        for wrong in [
            "abcdef",
            "abcde.0123456789abcdef",
            "Abcdef.0123456789abcdef",
            "abcdef.0123456789abcdef0",
        ] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }
}
