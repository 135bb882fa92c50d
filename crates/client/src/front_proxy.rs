//! The headers in which a front proxy names the user of a request that it forwards.
//!
//! They count only beside a client certificate of a front proxy; of all other requests they are
//! removed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The names of the headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyHeaders {
    /// The first that is not empty counts.
    pub user: Vec<HeaderName>,
    /// The first that is not empty counts.
    pub uid: Vec<HeaderName>,
    /// All of them count.
    pub group: Vec<HeaderName>,
    /// In lower case.
    pub extra_prefixes: Vec<String>,
}

/// A user as headers name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxiedUser {
    /// Its name.
    pub name: String,
    /// Its UID; empty: none.
    pub uid: String,
    /// Its groups.
    pub groups: Vec<String>,
    /// Its extra fields.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl ProxyHeaders {
    /// The usual names.
    pub fn standard() -> ProxyHeaders {
        ProxyHeaders {
            user: vec![HeaderName::from_static("x-remote-user")],
            uid: vec![HeaderName::from_static("x-remote-uid")],
            group: vec![HeaderName::from_static("x-remote-group")],
            extra_prefixes: vec!["x-remote-extra-".to_string()],
        }
    }

    /// The headers of these names; what cannot be a name of one is none.
    pub fn named(
        user: &[String],
        uid: &[String],
        group: &[String],
        extra_prefixes: &[String],
    ) -> ProxyHeaders {
        let names = |texts: &[String]| {
            let parsed = texts.iter().map(|text| text.trim().parse());
            parsed.filter_map(Result::ok).collect()
        };
        let prefixes = extra_prefixes.iter();
        ProxyHeaders {
            user: names(user),
            uid: names(uid),
            group: names(group),
            extra_prefixes: prefixes
                .map(|prefix| prefix.trim().to_lowercase())
                .filter(|prefix| !prefix.is_empty())
                .collect(),
        }
    }

    /// The user that the headers name.
    pub fn user(&self, headers: &HeaderMap) -> Option<ProxiedUser> {
        let first = |names: &[HeaderName]| {
            let mut texts = names.iter().filter_map(|name| text(headers.get(name)?));
            texts.find(|text| !text.is_empty()).map(str::to_string)
        };

        let groups = self.group.iter().flat_map(|name| headers.get_all(name));
        let groups = groups.filter_map(text).filter(|group| !group.is_empty());

        Some(ProxiedUser {
            name: first(&self.user)?,
            uid: first(&self.uid).unwrap_or_default(),
            groups: groups.map(str::to_string).collect(),
            extra: self.extra(headers),
        })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (name, value) in headers {
                if let (Some(key), Some(value)) =
                    (name.as_str().strip_prefix(prefix.as_str()), text(value))
                {
                    extra
                        .entry(unescaped(key).into_owned())
                        .or_default()
                        .push(value.to_string());
                }
            }
        }

        extra
    }

    /// These and others.
    pub fn and(mut self, others: &ProxyHeaders) -> ProxyHeaders {
        self.user.extend_from_slice(&others.user);
        self.uid.extend_from_slice(&others.uid);
        self.group.extend_from_slice(&others.group);
        self.extra_prefixes
            .extend_from_slice(&others.extra_prefixes);
        self
    }

    /// Removes the headers, whichever client sent them.
    pub fn remove_from(&self, headers: &mut HeaderMap) {
        for name in self.user.iter().chain(&self.uid).chain(&self.group) {
            headers.remove(name);
        }

        let is_extra = |name: &HeaderName| {
            self.extra_prefixes
                .iter()
                .any(|prefix| name.as_str().starts_with(prefix))
        };

        let extra: Vec<HeaderName> = headers
            .keys()
            .filter(|name| is_extra(name))
            .cloned()
            .collect();

        for name in extra {
            headers.remove(name);
        }
    }
}

/// Names may have letters of all alphabets.
fn text(value: &HeaderValue) -> Option<&str> {
    str::from_utf8(value.as_bytes()).ok()
}

/// A key that was written as a part of a header's name; unchanged if its escapes are invalid.
fn unescaped(key: &str) -> Cow<'_, str> {
    if !key.contains('%') {
        return Cow::Borrowed(key);
    }

    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|pair| str::from_utf8(pair).ok());
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            return Cow::Borrowed(key);
        };
        bytes.push(byte);
        rest = &after[2..];
    }

    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> ProxyHeaders {
        ProxyHeaders {
            user: vec![
                HeaderName::from_static("x-remote-user"),
                HeaderName::from_static("x-other-user"),
            ],
            uid: vec![HeaderName::from_static("x-remote-uid")],
            group: vec![HeaderName::from_static("x-remote-group")],
            extra_prefixes: vec!["x-remote-extra-".to_string()],
        }
    }

    #[test]
    fn the_headers_name_a_user_and_are_taken_away() {
        let mut sent = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", ""),
            ("x-other-user", "jane"),
            ("x-remote-group", "a"),
            ("x-remote-group", ""),
            ("x-remote-group", "b"),
            ("x-remote-extra-acme.com%2fproject", "one"),
            ("accept", "*/*"),
        ] {
            sent.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }

        let user = headers().user(&sent).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups.join(",")),
            ("jane", "a,b".to_string())
        );

        assert_eq!(user.extra["acme.com/project"], ["one"]);

        headers().remove_from(&mut sent);
        assert_eq!(
            sent.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
            ["accept"]
        );

        assert_eq!(headers().user(&sent), None);
    }
}
