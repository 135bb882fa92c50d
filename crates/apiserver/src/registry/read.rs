//! Get and list: from the cache, at a revision.

use std::sync::Arc;

use coracle_api::codec::json;
use coracle_api::selector::FieldSelector;
use coracle_api::{Map, Text, Value};
use coracle_store::Revision;

use super::{Registry, Scope};
use crate::ApiError;
use crate::cache::Entry;
use crate::request::ListOptions;

/// A page of a list.
pub struct List {
    pub revision: Revision,
    pub entries: Vec<Arc<Entry>>,
    pub continue_token: String,
    pub remaining: Option<usize>,
}

impl Registry {
    pub fn get(&self, scope: &Scope<'_>, name: &str) -> Result<Arc<Entry>, ApiError> {
        self.cache(scope)?.get(&scope.key(name)).ok_or_else(|| ApiError::not_found(scope.resource, name))
    }

    pub fn list(&self, scope: &Scope<'_>, options: &ListOptions) -> Result<List, ApiError> {
        let cache = self.cache(scope)?;
        let fields = field_selector(scope, &options.fields)?;
        let start = match options.continue_token.as_str() {
            "" => None,
            _ if options.version_given && options.version.0 != 0 => {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            token => Some(Continue::decode(token)?),
        };
        let snapshot = match &start {
            None => cache.snapshot(),
            Some(token) => cache.snapshot_at(token.revision).ok_or_else(expired)?,
        };
        let prefix = if scope.namespace.is_empty() { String::new() } else { format!("{}/", scope.namespace) };
        let from = start.as_ref().map_or_else(|| Text::new(&prefix), |token| Text::new(&token.start));
        let mut entries = Vec::new();
        let mut left = snapshot.entries.range(from..).take_while(|(key, _)| key.starts_with(&prefix));
        let mut more = None;
        for (key, entry) in left.by_ref() {
            if !entry.matches(&options.labels, &fields, scope.resource) {
                continue;
            }
            if options.limit > 0 && entries.len() == options.limit {
                more = Some(key.clone());
                break;
            }
            entries.push(entry.clone());
        }
        let everything = options.labels.is_everything() && fields.is_everything();
        let remaining = (more.is_some() && everything).then(|| 1 + left.count());
        let revision = start.map_or_else(|| self.caches.applied(), |token| token.revision);
        let continue_token = match more {
            None => String::new(),
            Some(key) => {
                cache.keep(revision, snapshot.clone());
                Continue { revision, start: key.to_string() }.encode()
            }
        };
        Ok(List { revision, entries, continue_token, remaining })
    }
}

/// A field selector over the fields that the resource has.
pub(super) fn field_selector(scope: &Scope<'_>, text: &str) -> Result<FieldSelector, ApiError> {
    let selector = text.parse::<FieldSelector>().map_err(|error| ApiError::bad_request(error.to_string()))?;
    let selectable = &scope.resource.selectable;
    selector
        .transform(|field, value| {
            if selectable.iter().any(|known| known.name == field) {
                return Ok((Text::new(field), Text::new(value)));
            }
            let names = ["metadata.name", "metadata.namespace"];
            let common = selectable.iter().all(|known| names.contains(&known.name.as_str()));
            Err(if common {
                format!("\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            } else {
                format!("field label not supported: {field}")
            })
        })
        .map_err(ApiError::bad_request)
}

/// Where the next page begins: upstream's token.
struct Continue {
    revision: Revision,
    start: String,
}

impl Continue {
    fn encode(&self) -> String {
        let mut token = Map::new();
        token.insert("v", "meta.k8s.io/v1");
        token.insert("rv", self.revision.to_wire());
        token.insert("start", self.start.as_str());
        base64_url(&json::to_vec(&Value::Object(token)))
    }

    fn decode(token: &str) -> Result<Continue, ApiError> {
        let bad = |why: String| {
            ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let text =
            from_base64_url(token).map_err(|at| bad(format!("illegal base64 data at input byte {at}")))?;
        let value = json::parse(&text).map_err(|error| bad(error.to_string()))?;
        let version = value.get("v").and_then(Value::as_str).unwrap_or_default();
        if version != "meta.k8s.io/v1" {
            return Err(bad(format!("server does not recognize this encoded version {version}")));
        }
        let revision = value.get("rv").and_then(Value::as_int).unwrap_or_default();
        let start = value.get("start").and_then(Value::as_str).unwrap_or_default();
        if revision <= 0 || start.is_empty() {
            return Err(bad("incorrect encoded start resourceVersion or key".to_string()));
        }
        let revision = Revision::from_wire(revision).unwrap_or(Revision::ZERO);
        Ok(Continue { revision, start: start.to_string() })
    }
}

fn expired() -> ApiError {
    ApiError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter.",
    )
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn base64_url(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let whole = chunk
            .iter()
            .enumerate()
            .fold(0u32, |whole, (at, byte)| whole | u32::from(*byte) << (16 - 8 * at));
        for place in 0..=chunk.len() {
            let index = usize::try_from(whole >> (18 - 6 * place) & 63).expect("six bits");
            out.push(char::from(ALPHABET[index]));
        }
    }
    out
}

fn from_base64_url(text: &str) -> Result<Vec<u8>, usize> {
    let (mut bytes, mut whole, mut bits) = (Vec::new(), 0u32, 0);
    for (at, byte) in text.trim_end_matches('=').bytes().enumerate() {
        let value = ALPHABET.iter().position(|letter| *letter == byte).ok_or(at)?;
        whole = whole << 6 | u32::try_from(value).expect("six bits");
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(whole >> bits & 0xff).expect("eight bits"));
        }
    }
    Ok(bytes)
}
