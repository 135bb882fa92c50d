//! A whole document, written part by part: only one path or type at a time is a tree in memory.

use std::collections::BTreeMap;
use std::io::{self, Write};

use coracle_api::codec::json;
use coracle_api::{Map, Value};

use super::contents::Contents;
use super::library::Sources;
use super::named::Version;
use super::others::{Merged, Others};
use super::protobuf::{self, encode, put_bytes, put_named};
use super::section::Section;
use super::{texts, v2, v3};

/// Which document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Document {
    V2,
    V3(Section),
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Json,
    Protobuf,
}

impl Document {
    pub(super) fn write(
        &self,
        sources: &Sources,
        form: Form,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let catalog = &sources.catalog;
        match (self, form) {
            (Document::V2, form) => {
                let contents = Contents::of_all(catalog);
                let others = merged(&contents, &sources.others);
                match form {
                    Form::Json => json_v2(&contents, others, out),
                    Form::Protobuf => out.write_all(&protobuf_v2(&contents, others)?),
                }
            }
            (Document::V3(section), Form::Json) => {
                json_v3(&Contents::of_section(catalog, section), out)
            }
            (Document::V3(section), Form::Protobuf) => {
                out.write_all(&protobuf_v3(&Contents::of_section(catalog, section)))
            }
        }
    }
}

/// What other servers describe, as far as it is not described here.
fn merged(contents: &Contents<'_>, others: &Others) -> Merged {
    if others.is_empty() {
        return Merged::default();
    }
    let own = contents.definitions(Version::V2);
    let own = own.map(|(name, schema)| (name.to_owned(), schema));
    others.merge(|path| contents.paths.contains_key(path), &own.collect())
}

/// Writes what this server has and what others have in order of the names, of which none is in both.
fn in_order<'a>(
    own: impl Iterator<Item = (&'a str, Value)>,
    others: &BTreeMap<String, Value>,
    mut put: impl FnMut(&str, &Value) -> io::Result<()>,
) -> io::Result<()> {
    let mut others = others.iter().peekable();
    for (name, value) in own {
        while let Some((other, value)) = others.next_if(|(other, _)| other.as_str() < name) {
            put(other, value)?;
        }
        put(name, &value)?;
    }
    others.try_for_each(|(name, value)| put(name, value))
}

fn json_v2(contents: &Contents<'_>, mut others: Merged, out: &mut impl Write) -> io::Result<()> {
    let mut shared = v2::Shared::new();
    let mut document = Members::open(out)?;
    document.put("swagger", &Value::string("2.0"))?;
    document.put("info", &info())?;
    document.below("paths", |paths| {
        let own = contents.paths.iter();
        let own =
            own.map(|(path, operations)| (path.as_str(), v2::path_item(operations, &mut shared)));
        in_order(own, &others.paths, |path, item| paths.put(path, item))
    })?;

    document.below("definitions", |definitions| {
        let own = contents.definitions(Version::V2);
        in_order(own, &others.definitions, |name, schema| {
            definitions.put(name, schema)
        })
    })?;

    document.below("parameters", |parameters| {
        // Their names are made of what they say.
        others.parameters.extend(shared);
        let mut all = others.parameters.iter();
        all.try_for_each(|(name, parameter)| parameters.put(name, parameter))
    })?;

    document.put("securityDefinitions", &bearer_token())?;
    document.put("security", &Value::Array(vec![security()]))?;

    document.close()
}

fn json_v3(contents: &Contents<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut document = Members::open(out)?;
    document.put("openapi", &Value::string("3.0.0"))?;
    document.put("info", &info())?;
    document.below("paths", |paths| {
        contents
            .paths
            .iter()
            .try_for_each(|(path, operations)| paths.put(path, &v3::path_item(operations)))
    })?;

    document.below("components", |components| {
        if contents.has_definitions() {
            components.below("schemas", |schemas| {
                contents
                    .definitions(Version::V3)
                    .try_for_each(|(name, schema)| schemas.put(name, &schema))
            })?;
        }
        components.put("securitySchemes", &bearer_token())
    })?;

    document.close()
}

fn protobuf_v2(contents: &Contents<'_>, mut others: Merged) -> io::Result<Vec<u8>> {
    use protobuf::v2::{
        INFO, PARAMETER, PATH_ITEM, SCHEMA, SECURITY_DEFINITION, SECURITY_REQUIREMENT,
    };

    let mut shared = v2::Shared::new();
    let (mut paths, mut definitions, mut parameters) = (Vec::new(), Vec::new(), Vec::new());
    let own = contents.paths.iter();
    let own = own.map(|(path, operations)| (path.as_str(), v2::path_item(operations, &mut shared)));
    in_order(own, &others.paths, |path, item| {
        put_named(&mut paths, 2, path, &PATH_ITEM, item);
        Ok(())
    })?;

    let own = contents.definitions(Version::V2);
    in_order(own, &others.definitions, |name, schema| {
        put_named(&mut definitions, 1, name, &SCHEMA, schema);
        Ok(())
    })?;

    others.parameters.extend(shared);
    for (name, parameter) in &others.parameters {
        put_named(&mut parameters, 1, name, &PARAMETER, parameter);
    }

    let mut out = Vec::new();
    put_bytes(&mut out, 1, b"2.0");
    put_bytes(&mut out, 2, &encode(&INFO, &info()));
    put_bytes(&mut out, 8, &paths);

    put_bytes(&mut out, 9, &definitions);
    put_bytes(&mut out, 10, &parameters);

    put_bytes(&mut out, 12, &encode(&SECURITY_REQUIREMENT, &security()));
    put_bytes(
        &mut out,
        13,
        &encode(
            &protobuf::Message::Named(1, &SECURITY_DEFINITION),
            &bearer_token(),
        ),
    );

    Ok(out)
}

fn protobuf_v3(contents: &Contents<'_>) -> Vec<u8> {
    use protobuf::v3::{INFO, PATH_ITEM, SCHEMA_OR_REFERENCE, SECURITY_SCHEME};

    let (mut paths, mut schemas, mut components) = (Vec::new(), Vec::new(), Vec::new());
    for (path, operations) in &contents.paths {
        put_named(&mut paths, 1, path, &PATH_ITEM, &v3::path_item(operations));
    }

    for (name, schema) in contents.definitions(Version::V3) {
        put_named(&mut schemas, 1, name, &SCHEMA_OR_REFERENCE, &schema);
    }

    if contents.has_definitions() {
        put_bytes(&mut components, 1, &schemas);
    }

    let schemes = encode(
        &protobuf::Message::Named(1, &SECURITY_SCHEME),
        &bearer_token(),
    );
    put_bytes(&mut components, 7, &schemes);

    let mut out = Vec::new();
    put_bytes(&mut out, 1, b"3.0.0");
    put_bytes(&mut out, 2, &encode(&INFO, &info()));
    put_bytes(&mut out, 4, &paths);
    put_bytes(&mut out, 5, &components);

    out
}

fn info() -> Value {
    let mut info = Map::new();
    info.insert("title", "Kubernetes");
    info.insert("version", crate::VERSION);
    Value::Object(info)
}

/// The security definitions, by name.
fn bearer_token() -> Value {
    let mut token = Map::new();
    token.insert("description", "Bearer Token authentication");
    token.insert("in", "header");
    token.insert("name", "authorization");
    token.insert("type", "apiKey");
    let mut all = Map::new();
    all.insert("BearerToken", token);
    Value::Object(all)
}

fn security() -> Value {
    let mut needed = Map::new();
    needed.insert("BearerToken", texts(&[]));
    Value::Object(needed)
}

/// An object of JSON that is written member by member.
struct Members<'w, W> {
    out: &'w mut W,
    first: bool,
}

impl<'w, W: Write> Members<'w, W> {
    fn open(out: &'w mut W) -> io::Result<Members<'w, W>> {
        out.write_all(b"{")?;
        Ok(Members { out, first: true })
    }

    fn put(&mut self, name: &str, value: &Value) -> io::Result<()> {
        self.name(name)?;
        self.out.write_all(&json::to_vec(value))
    }

    /// A member that is written in the same way.
    fn below(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Members<'_, W>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.name(name)?;
        let mut below = Members::open(self.out)?;
        write(&mut below)?;
        below.close()
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        let mut text = Vec::with_capacity(name.len() + 4);
        if !std::mem::take(&mut self.first) {
            text.push(b',');
        }
        json::write_string(name, &mut text);
        text.push(b':');
        self.out.write_all(&text)
    }

    fn close(self) -> io::Result<()> {
        self.out.write_all(b"}")
    }
}
