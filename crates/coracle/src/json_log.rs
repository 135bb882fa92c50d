//! Log lines as JSON, with the keys that upstream's components write: `ts` in milliseconds since
//! 1970, `caller`, `msg`, `v` for what is no warning or error, `err`, and the fields of the line.

use std::fmt::{self, Debug};

use coracle_api::codec::json;
use coracle_api::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::world::WORLD;

/// Formats lines as JSON.
pub(crate) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let metadata = event.metadata();
        let caller = metadata.file().zip(metadata.line());
        let now = WORLD.now();
        let millis = now.unix_seconds() * 1000 + i64::from(now.subsec_nanos() / 1_000_000);
        let line = line(fields.0, *metadata.level(), caller, millis);
        writeln!(writer, "{line}")
    }
}

fn line(mut fields: Map, level: Level, caller: Option<(&str, u32)>, millis: i64) -> String {
    fields.insert("ts", millis);
    if let Some((file, line)) = caller {
        // The folder and the file, as upstream's.
        let start = file.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
        fields.insert("caller", format!("{}:{line}", &file[start..]));
    }
    let verbosity = match level {
        Level::ERROR | Level::WARN => None,
        Level::INFO => Some(0),
        Level::DEBUG => Some(4),
        _ => Some(6),
    };
    if let Some(verbosity) = verbosity {
        fields.insert("v", verbosity);
    }
    json::to_string(&Value::Object(fields))
}

/// The fields of a line, under the keys that they get.
struct Fields(Map);

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        let key = match field.name() {
            "message" => "msg",
            "error" => "err",
            name => name,
        };
        self.0.insert(key, value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Value::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(number) => self.add(field, Value::Int(number)),
            Err(_) => self.add(field, value.to_string()),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, Value::Float(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Value::Bool(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_upstreams_keys() {
        let fields = || {
            let mut fields = Map::new();
            fields.insert("msg", "pod \"web\" bound");
            fields.insert("pod", "default/web");
            fields
        };
        let check = |level: Level, caller: Option<(&str, u32)>, expected: &str| {
            assert_eq!(line(fields(), level, caller, 1_700_000_000_123), expected);
        };

        check(
            Level::INFO,
            Some(("crates/scheduler/src/cycle/mod.rs", 7)),
            r#"{"caller":"cycle/mod.rs:7","msg":"pod \"web\" bound","pod":"default/web","ts":1700000000123,"v":0}"#,
        );
        check(
            Level::WARN,
            None,
            r#"{"msg":"pod \"web\" bound","pod":"default/web","ts":1700000000123}"#,
        );
    }
}
