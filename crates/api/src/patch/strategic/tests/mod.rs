//! Every directive, accepted and refused. Results and texts are upstream's.

mod applied;
mod computed;
mod cost;
mod ordered;
mod restored;

use crate::catalog::{BUILTIN, Struct};
use crate::codec::json;
use crate::{Map, Value};

fn kind(name: &str) -> Struct<'static> {
    let kind = BUILTIN
        .kinds()
        .iter()
        .find(|kind| kind.name == name && kind.version == "v1");
    BUILTIN.root(kind.expect("a built-in kind"))
}

fn object(text: &str) -> Map {
    json::parse(text.as_bytes())
        .unwrap()
        .as_object()
        .unwrap()
        .clone()
}

fn shown(result: Result<Map, super::Error>) -> Result<String, String> {
    result
        .map(|map| json::to_string(&Value::Object(map)))
        .map_err(|error| error.to_string())
}
