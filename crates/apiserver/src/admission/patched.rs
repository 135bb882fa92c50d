//! Objects that a plugin has patched as text.

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Kind, Struct};
use coracle_api::codec::json::{self, Decoded};
use coracle_api::go_text::Quoted;

use super::Attributes;

/// A patched object, decoded by its type, which must be the same.
pub(super) fn decode(
    patched: &Value,
    attributes: &Attributes<'_>,
    kind: &Kind,
) -> Result<Decoded, String> {
    let text = |name: &str| {
        patched
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (api_version, name) = (text("apiVersion"), text("kind"));
    if api_version != kind.api_version() || name != kind.name {
        return Err(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:110\"",
            Quoted(name),
            Quoted(api_version)
        ));
    }

    let text = json::to_vec(patched);
    let decoded = json::decode(&text, Some(of(attributes, kind).node()));
    decoded.map_err(|error| error.to_string())
}

fn of<'a>(attributes: &Attributes<'a>, kind: &'a Kind) -> Struct<'a> {
    let custom = attributes.definition.and_then(|definition| {
        let place = definition.place(&kind.version)?;
        let is_own = kind.group == definition.kind(place).group;
        is_own.then(|| definition.of(place))
    });
    custom.unwrap_or_else(|| BUILTIN.root(kind))
}
