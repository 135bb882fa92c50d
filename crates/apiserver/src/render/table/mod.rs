//! Tables for people: what `kubectl get` prints.
//!
//! The columns of a resource are data of the catalogue. What stands in them is decided here, by a
//! pure function per kind over its typed view: `<group>/<kind>.rs` makes the [`Row`] of one object,
//! [`printers`] knows which function belongs to which kind. A kind without one has the two columns
//! that every object can fill: name and creation time.

mod custom;

use coracle_api::Value;
use coracle_api::catalog::{Column, Struct};
use coracle_api::codec::json;
use coracle_api::codec::media_type::MetaVersion;
use coracle_api::time::{Time, Timestamp};
use coracle_kinds::print::{Completed, Printer, Row, printer};

use super::whole::write_list_metadata;
use super::{Objects, Shown, meta_api_version, partial};
use crate::ApiError;
use crate::cache::Entry;
use crate::registry::List;

/// Which part of the object a row includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Include {
    None,
    Metadata,
    Object,
}

impl Include {
    /// The value of `includeObject`.
    pub(super) fn parse(text: &str) -> Result<Include, ApiError> {
        match text {
            "None" => Ok(Include::None),
            "" | "Metadata" => Ok(Include::Metadata),
            "Object" => Ok(Include::Object),
            other => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                 'Object', 'None', or empty",
                coracle_api::go_text::Quoted(other)
            ))),
        }
    }
}

/// Tables of one resource, as one request wants them.
pub(super) struct Table<'a> {
    objects: &'a Objects<'a>,
    version: MetaVersion,
    include: Include,
    now: Timestamp,
    /// Of the resource's own kind.
    printer: Option<Printer>,
    columns: &'a [Column],
}

impl<'a> Table<'a> {
    pub(super) fn new(
        objects: &'a Objects<'a>,
        version: MetaVersion,
        include: &str,
        now: Timestamp,
    ) -> Result<Table<'a>, ApiError> {
        let (printer, columns) = printer(objects.resource, objects.kind);
        Ok(Table {
            objects,
            version,
            include: Include::parse(include)?,
            now,
            printer,
            columns,
        })
    }

    /// Appends a table of one object.
    pub(super) fn write_one(
        &self,
        shown: Shown<'_>,
        with_columns: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        let kind = shown.kind(self.objects);
        self.write_head(out);

        let version = shown.resource_version();
        match version.as_ref() {
            "" => out.extend_from_slice(b",\"metadata\":{}"),
            version => {
                out.extend_from_slice(
                    format!(",\"metadata\":{{\"resourceVersion\":\"{version}\"}}").as_bytes(),
                );
            }
        }

        // The response of a subresource may be of another kind.
        let (printer, columns) = printer(self.objects.resource, kind);
        write_columns(with_columns.then_some(columns), shown.of(self.objects), out);
        out.extend_from_slice(b",\"rows\":[");
        self.write_row(printer, shown, out)?;
        out.extend_from_slice(b"]}");

        Ok(())
    }

    /// Appends a table of a list.
    pub(super) fn write_list(&self, list: &List, out: &mut Vec<u8>) -> Result<(), ApiError> {
        if list.entries.is_empty() && self.printer.is_none() && self.objects.custom.is_none() {
            self.write_list_columns(list, out);
            out.extend_from_slice(b",\"rows\":null}");
            return Ok(());
        }

        self.write_list_head(list, out);

        for (place, entry) in list.entries.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            self.write_row(self.printer, Shown::Entry(entry), out)?;
        }

        out.extend_from_slice(b"]}");

        Ok(())
    }

    /// Appends the beginning of a table of a list, up to its rows.
    pub(super) fn write_list_head(&self, list: &List, out: &mut Vec<u8>) {
        self.write_list_columns(list, out);
        out.extend_from_slice(b",\"rows\":[");
    }

    /// Appends the row of one object of a list.
    pub(super) fn write_item(&self, entry: &Entry, out: &mut Vec<u8>) -> Result<(), ApiError> {
        self.write_row(self.printer, Shown::Entry(entry), out)
    }

    fn write_list_columns(&self, list: &List, out: &mut Vec<u8>) {
        self.write_head(out);
        write_list_metadata(list, out);
        write_columns(Some(self.columns), self.objects.of, out);
    }

    fn write_head(&self, out: &mut Vec<u8>) {
        let api_version = meta_api_version(self.version);
        out.extend_from_slice(
            format!("{{\"kind\":\"Table\",\"apiVersion\":\"{api_version}\"").as_bytes(),
        );
    }

    fn write_row(
        &self,
        printer: Option<Printer>,
        shown: Shown<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        let mut tree = shown.kept(self.objects).into_owned();
        let row = match printer {
            Some(printer) => {
                strip(&mut tree);
                printer(&tree, self.now).map_err(|error| {
                    ApiError::internal(format!(
                        "{}: no row of a table: {error}",
                        tree.meta().name()
                    ))
                })?
            }
            None => {
                match self
                    .objects
                    .custom
                    .filter(|_| shown.kind(self.objects).name == self.objects.kind.name)
                {
                    Some((_, version)) => custom::row(&shown.tree(self.objects), version, self.now),
                    None => plain_row(&tree),
                }
            }
        };

        out.extend_from_slice(b"{\"cells\":");
        json::write(&Value::Array(row.cells), out);

        if let Some(completed) = row.completed {
            let Completed { reason, message } = completed;
            out.extend_from_slice(
                format!(
                    ",\"conditions\":[{{\"type\":\"Completed\",\"status\":\"True\",\"reason\":\"{reason}\",\
                     \"message\":\"{message}\"}}]"
                )
                .as_bytes(),
            );
        }

        out.extend_from_slice(b",\"object\":");

        // An annotation marks the end of the initial events, and must not be lost.
        let ends = tree.meta().annotation("k8s.io/initial-events-end") == Some("true");
        match self.include {
            Include::Object => shown.write(self.objects, out),
            Include::None if !ends => out.extend_from_slice(b"null"),
            Include::None | Include::Metadata => {
                partial::write(shown, self.objects, self.version, out)
            }
        }

        out.push(b'}');

        Ok(())
    }
}

/// Removes what no cell shows: the version, which a typed view would require, and `managedFields`,
/// which are most of many an object.
fn strip(object: &mut Value) {
    object.meta_mut().members().remove("managedFields");
    if let Some(map) = object.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
}

/// The row of a kind without columns of its own.
fn plain_row(object: &Value) -> Row {
    let created = object
        .meta()
        .creation_timestamp()
        .unwrap_or(Timestamp::ZERO);
    Row {
        cells: vec![
            object.meta().name().into(),
            Time(created).to_string().into(),
        ],
        completed: None,
    }
}

/// Appends the member `columnDefinitions`.
fn write_columns(columns: Option<&[Column]>, of: Struct<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"columnDefinitions\":");
    let Some(columns) = columns else {
        return out.extend_from_slice(b"null");
    };
    for (place, column) in columns.iter().enumerate() {
        out.push(if place == 0 { b'[' } else { b',' });

        for (name, text) in [
            ("{\"name\":", column.name.as_str()),
            (",\"type\":", &column.data_type),
            (",\"format\":", &column.format),
            (",\"description\":", column.description(of)),
        ] {
            out.extend_from_slice(name.as_bytes());
            json::write_string(text, out);
        }

        out.extend_from_slice(format!(",\"priority\":{}}}", u8::from(column.wide)).as_bytes());
    }

    out.push(b']');
}
