//! Continue tokens of paged lists, in upstream's format.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_store::Revision;

use crate::ApiError;

const VERSION: &str = "meta.k8s.io/v1";

/// A place in a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Continuation {
    /// `None`: the newest. So continues a list whose own revision is compacted.
    pub(super) revision: Option<Revision>,
    /// The first key of the page, below the prefix of the list.
    pub(super) start: String,
}

/// A token is refused, or read again as it was printed.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn check_continue_token(token: &str) {
    if let Ok(found) = Continuation::decode(token) {
        assert_eq!(
            Continuation::decode(&found.encode()).as_ref().ok(),
            Some(&found)
        );
    }
}

impl Continuation {
    pub(super) fn encode(&self) -> String {
        let mut token = Map::new();
        token.insert("v", VERSION);
        token.insert("rv", self.revision.map_or(-1, Revision::to_wire));
        token.insert("start", self.start.as_str());
        URL_SAFE_NO_PAD.encode(json::to_vec(&Value::Object(token)))
    }

    pub(super) fn decode(token: &str) -> Result<Continuation, ApiError> {
        let bad = |why: String| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid{why}"
            ))
        };

        let text = URL_SAFE_NO_PAD.decode(token).map_err(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _)
                | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                    token.len()
                }
            };
            bad(format!(": illegal base64 data at input byte {at}"))
        })?;
        let value = json::parse(&text).map_err(|error| bad(format!(": {error}")))?;

        let version = value.get("v").and_then(Value::as_str).unwrap_or_default();
        if version != VERSION {
            return Err(bad(format!(
                ": server does not recognize this encoded version {version}"
            )));
        }

        let revision = match value.get("rv").and_then(Value::as_int).unwrap_or_default() {
            0 => {
                return Err(bad(format!(
                    ": incorrect encoded start resourceVersion (version {VERSION})"
                )));
            }
            revision if revision < 0 => None,
            revision => Some(Revision::from_wire(revision).unwrap_or(Revision::ZERO)),
        };

        let start = value
            .get("start")
            .and_then(Value::as_str)
            .unwrap_or_default();

        if start.is_empty() {
            return Err(bad(format!(
                ": encoded start key empty (version {VERSION})"
            )));
        }

        if start
            .trim_start_matches('/')
            .split('/')
            .any(|part| matches!(part, "" | "." | ".."))
        {
            return Err(bad(format!(": {start}")));
        }

        Ok(Continuation {
            revision,
            start: start.trim_start_matches('/').to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_its_place() {
        for revision in [None, Some(Revision::new(7))] {
            let place = Continuation {
                revision,
                start: "a\0".to_string(),
            };
            assert_eq!(Continuation::decode(&place.encode()), Ok(place));
        }
    }

    #[test]
    fn forged_tokens_are_refused_in_upstreams_words() {
        let check = |token: &str, expected: &str| {
            let refused = Continuation::decode(token).expect_err(token);
            assert_eq!(
                refused.message,
                format!("invalid continue token: continue key is not valid{expected}")
            );
        };

        let token = |text: &str| URL_SAFE_NO_PAD.encode(text);
        check("a!", ": illegal base64 data at input byte 1");
        check(
            &token(r#"{"v":"x","rv":1,"start":"a"}"#),
            ": server does not recognize this encoded version x",
        );

        check(
            &token(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        );

        check(
            &token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#),
            ": encoded start key empty (version meta.k8s.io/v1)",
        );

        check(
            &token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../secrets/a"}"#),
            ": ../secrets/a",
        );
    }
}
