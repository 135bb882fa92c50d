//! The headers in which a front proxy tells another server who sent a request.
//!
//! A header cannot carry every name: line breaks end it, and spaces at its ends are dropped by the
//! receiver, which would see another user. Such requests are refused, not changed.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::authn::{ProxyHeaders, User};

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";

/// Sets the headers that name `user`, in place of all there are.
///
/// # Errors
/// A name cannot be sent, with a text for users.
pub(super) fn set(headers: &mut HeaderMap, user: &User) -> Result<(), String> {
    ProxyHeaders::standard().remove_from(headers);
    headers.insert(USER, value(USER.as_str(), &user.name)?);
    if !user.uid.is_empty() {
        headers.insert(UID, value(UID.as_str(), &user.uid)?);
    }

    for group in &user.groups {
        headers.append(GROUP, value(GROUP.as_str(), group)?);
    }

    for (key, values) in &user.extra {
        let name = format!("{EXTRA}{}", escaped(key));
        let header = HeaderName::try_from(&name)
            .map_err(|_| format!("net/http: invalid header field name {name:?}"))?;
        for text in values {
            headers.append(header.clone(), value(&name, text)?);
        }
    }

    Ok(())
}

fn value(name: &str, text: &str) -> Result<HeaderValue, String> {
    let is_kept = text.trim_matches([' ', '\t']).len() == text.len();
    let made = HeaderValue::from_bytes(text.as_bytes()).ok();
    made.filter(|_| is_kept)
        .ok_or_else(|| format!("net/http: invalid header field value for {name:?}"))
}

/// A key as a part of a header's name: what may not be there is written in hexadecimal.
fn escaped(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for byte in key.bytes() {
        let is_legal = byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
        match is_legal {
            true => name.push(char::from(byte)),
            false => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> User {
        User {
            name: name.to_owned(),
            uid: "7".to_owned(),
            groups: vec!["a".to_owned(), "b c".to_owned()],
            extra: [("acme.com/Project".to_owned(), vec!["one".to_owned()])].into(),
        }
    }

    #[test]
    fn headers_name_the_user_and_nobody_else() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", "root"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-scopes", "all"),
            ("accept", "*/*"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        set(&mut headers, &user("jane")).unwrap();

        let mut found: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        found.sort();
        assert_eq!(
            found,
            [
                "accept: */*",
                "x-remote-extra-acme.com%2fproject: one",
                "x-remote-group: a",
                "x-remote-group: b c",
                "x-remote-uid: 7",
                "x-remote-user: jane",
            ]
        );
    }

    #[test]
    fn a_name_that_another_server_would_read_as_another_is_refused() {
        for name in [
            " system:admin",
            "system:admin\t",
            "jane\r\nX-Remote-Group: root",
        ] {
            assert_eq!(
                set(&mut HeaderMap::new(), &user(name)),
                Err("net/http: invalid header field value for \"x-remote-user\"".to_owned())
            );
        }
    }
}
