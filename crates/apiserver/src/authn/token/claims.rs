//! The claims of a service account token, and whether the objects that they name still exist.

use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};

/// Clocks differ: times are taken with this many seconds of leeway.
const LEEWAY: i64 = 60;

/// An object that a token names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    pub name: String,
    pub uid: String,
}

/// The claims of a bound token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) subject: String,
    pub(super) audiences: Vec<String>,
    pub(super) id: String,
    pub(super) expires: Option<i64>,
    pub(super) not_before: Option<i64>,
    pub(super) issued: Option<i64>,
    pub(super) namespace: String,
    pub(super) account: Bound,
    pub(super) pod: Option<Bound>,
    pub(super) node: Option<Bound>,
    pub(super) secret: Option<Bound>,
    pub(super) warn_after: Option<i64>,
}

const KUBERNETES: &str = "kubernetes.io";

impl Claims {
    /// Reads them; the error is a claim that is there and cannot be understood.
    pub(super) fn read(map: &Map) -> Result<Claims, &'static str> {
        let own = map.get(KUBERNETES).and_then(Value::as_object);
        let bound = |name: &str| {
            own.and_then(|own| own.get(name)?.as_object())
                .map(Bound::read)
        };

        Ok(Claims {
            subject: map.str("sub").unwrap_or_default().to_string(),
            audiences: audiences(map),
            id: map.str("jti").unwrap_or_default().to_string(),
            expires: time(map, "exp")?,
            not_before: time(map, "nbf")?,
            issued: time(map, "iat")?,
            namespace: own
                .and_then(|own| own.str("namespace"))
                .unwrap_or_default()
                .to_string(),
            account: bound("serviceaccount").unwrap_or_default(),
            pod: bound("pod"),
            node: bound("node"),
            secret: bound("secret"),
            warn_after: None,
        })
    }

    pub(super) fn to_map(&self, issuer: &str) -> Map {
        let mut own = Map::new();
        own.insert("namespace", self.namespace.as_str());
        own.insert("serviceaccount", self.account.to_map());

        for (name, bound) in [
            ("pod", &self.pod),
            ("node", &self.node),
            ("secret", &self.secret),
        ] {
            if let Some(bound) = bound {
                own.insert(name, bound.to_map());
            }
        }

        if let Some(at) = self.warn_after {
            own.insert("warnafter", at);
        }

        let mut map = Map::new();
        map.insert("iss", issuer);
        map.insert("sub", self.subject.as_str());
        map.insert(
            "aud",
            self.audiences.iter().map(Value::string).collect::<Vec<_>>(),
        );

        map.insert("jti", self.id.as_str());

        for (name, at) in [
            ("exp", self.expires),
            ("nbf", self.not_before),
            ("iat", self.issued),
        ] {
            if let Some(at) = at {
                map.insert(name, at);
            }
        }

        map.insert(KUBERNETES, own);

        map
    }

    /// Whether they are valid at this time; the error has upstream's text.
    pub(super) fn check_time(&self, now: Timestamp) -> Result<(), String> {
        let now = now.unix_seconds();
        if self.not_before.is_some_and(|at| now + LEEWAY < at) {
            return Err("service account token is not valid yet".to_string());
        }
        if self.expires.is_some_and(|at| now - LEEWAY > at) {
            return Err("service account token has expired".to_string());
        }
        if self.issued.is_some_and(|at| now + LEEWAY < at) {
            return Err("service account token is issued in the future".to_string());
        }
        Ok(())
    }
}

/// Whether an object's deletion is so long ago that it counts as deleted.
pub(super) fn is_gone(object: &Value, now: Timestamp) -> bool {
    let deleted = object
        .at(&["metadata", "deletionTimestamp"])
        .and_then(Value::as_str);
    let deleted = deleted.map(coracle_api::time::Time::parse);
    deleted.is_some_and(|at| at.is_ok_and(|at| at.0.unix_seconds() < now.unix_seconds() - LEEWAY))
}

pub(super) fn audiences(map: &Map) -> Vec<String> {
    match map.get("aud") {
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_string)
            .collect(),
        Some(one) => one.as_str().map(str::to_string).into_iter().collect(),
        None => Vec::new(),
    }
}

fn time(map: &Map, name: &'static str) -> Result<Option<i64>, &'static str> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(found) => found.as_int().map(Some).ok_or(name),
    }
}

impl Bound {
    /// The object itself.
    pub fn of(object: &Value) -> Bound {
        Bound {
            name: object.meta().name().to_string(),
            uid: object.meta().uid().to_string(),
        }
    }

    fn read(map: &Map) -> Bound {
        let text = |name| map.str(name).unwrap_or_default().to_string();
        Bound {
            name: text("name"),
            uid: text("uid"),
        }
    }

    fn to_map(&self) -> Map {
        let mut map = Map::new();
        map.insert("name", self.name.as_str());
        if !self.uid.is_empty() {
            map.insert("uid", self.uid.as_str());
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_survive_and_have_their_time() {
        let claims = Claims {
            subject: "system:serviceaccount:a:b".to_string(),
            audiences: vec!["x".to_string()],
            expires: Some(1000),
            not_before: Some(500),
            issued: Some(500),
            pod: Some(Bound {
                name: "p".to_string(),
                uid: "u".to_string(),
            }),
            // A node that does not exist has no UID.
            node: Some(Bound {
                name: "n".to_string(),
                uid: String::new(),
            }),
            ..Claims::default()
        };
        assert_eq!(Claims::read(&claims.to_map("us")), Ok(claims.clone()));

        for (now, expected) in [
            (439, Some("service account token is not valid yet")),
            (440, None),
            (1060, None),
            (1061, Some("service account token has expired")),
        ] {
            let found = claims.check_time(Timestamp::from_unix(now, 0));
            assert_eq!(found.err().as_deref(), expected, "{now}");
        }
    }

    #[test]
    fn a_time_that_is_no_time_is_not_no_time() {
        let mut map = Map::new();
        map.insert("exp", "never");
        assert_eq!(Claims::read(&map), Err("exp"));
    }
}
