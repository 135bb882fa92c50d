//! The query options of a connecting subresource, and the query that the kubelet gets.

use coracle_api::field_error::{FieldError, FieldErrors};
use coracle_api::time::Time;
use coracle_api::{Map, Path, Value};

use super::Subresource;
use crate::ApiError;
use crate::request::Query;

/// Of `exec` and `attach`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandOptions {
    pub(super) container: String,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
    command: Vec<String>,
}

impl CommandOptions {
    pub(super) fn parse(query: &Query) -> CommandOptions {
        CommandOptions {
            container: query.get("container").unwrap_or_default().to_owned(),
            stdin: truth(query, "stdin"),
            stdout: truth(query, "stdout"),
            stderr: truth(query, "stderr"),
            tty: truth(query, "tty"),
            command: query.all("command").map(str::to_owned).collect(),
        }
    }

    /// From the fields of PodExecOptions, or of PodAttachOptions.
    pub(super) fn of(fields: &Map) -> CommandOptions {
        let command = fields.items("command").iter();
        CommandOptions {
            container: fields.text("container").to_owned(),
            stdin: fields.flag("stdin"),
            stdout: fields.flag("stdout"),
            stderr: fields.flag("stderr"),
            tty: fields.flag("tty"),
            command: command
                .filter_map(|part| part.as_str().map(str::to_owned))
                .collect(),
        }
    }

    /// As fields of PodExecOptions, or of PodAttachOptions.
    pub(super) fn fields(&self, of: Subresource) -> Map {
        let mut fields = Map::new();
        let flags = [
            ("stdin", self.stdin),
            ("stdout", self.stdout),
            ("stderr", self.stderr),
            ("tty", self.tty),
        ];
        for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            fields.insert(name, true);
        }
        if !self.container.is_empty() {
            fields.insert("container", self.container.as_str());
        }

        if of == Subresource::Exec {
            let command = self.command.iter();
            let command: Vec<Value> = command.map(|part| Value::from(part.as_str())).collect();
            let command = match command.is_empty() {
                true => Value::Null,
                false => Value::from(command),
            };
            fields.insert("command", command);
        }

        fields
    }

    /// The query that a kubelet understands.
    pub(super) fn for_kubelet(&self) -> String {
        let mut pairs: Vec<(&str, &str)> = self
            .command
            .iter()
            .map(|part| ("command", part.as_str()))
            .collect();

        let flags = [
            ("error", self.stderr),
            ("input", self.stdin),
            ("output", self.stdout),
            ("tty", self.tty),
        ];

        pairs.extend(
            flags
                .into_iter()
                .filter(|(_, is_set)| *is_set)
                .map(|(name, _)| (name, "1")),
        );

        encode(&pairs)
    }
}

/// The fields of PodPortForwardOptions.
pub(super) fn ports(query: &Query) -> Result<Map, ApiError> {
    let mut fields = Map::new();
    let ports = port_numbers(query)?;
    if !ports.is_empty() {
        let ports: Vec<Value> = ports.into_iter().map(Value::from).collect();
        fields.insert("ports", ports);
    }
    Ok(fields)
}

/// The fields of PodProxyOptions and its like. `rest` is what follows the proxy's path.
pub(super) fn path(path: &str, rest: &str) -> Map {
    let mut below = rest.trim_matches('/').to_owned();
    if !below.is_empty() {
        below.insert(0, '/');
    }
    if path.ends_with('/') {
        below.push('/');
    }

    let mut fields = Map::new();
    if !below.is_empty() {
        fields.insert("path", below);
    }
    fields
}

fn port_numbers(query: &Query) -> Result<Vec<i32>, ApiError> {
    let texts = query.all("ports");
    texts
        .map(|text| text.parse::<i32>().map_err(|_| not_a_number(text)))
        .collect()
}

/// Of `portforward`.
pub(super) fn ports_for_kubelet(fields: &Map) -> String {
    let ports = fields.items("ports").iter().filter_map(Value::as_int);
    let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
    match ports.is_empty() {
        true => String::new(),
        false => encode(&[("port", &ports.join(","))]),
    }
}

/// Of `log`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogOptions {
    pub(super) container: String,
    pub(super) insecure: bool,
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<Time>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    stream: Option<String>,
}

const STREAMS: [&str; 3] = ["All", "Stderr", "Stdout"];

impl LogOptions {
    /// `name`: of the pod, for refusals.
    pub(super) fn parse(query: &Query, name: &str) -> Result<LogOptions, ApiError> {
        let since_time = query.get("sinceTime").filter(|text| !text.is_empty());
        let since_time = since_time.map(|text| {
            Time::parse(text).map_err(|error| ApiError::bad_request(error.to_string()))
        });
        let options = LogOptions {
            container: query.get("container").unwrap_or_default().to_owned(),
            insecure: truth(query, "insecureSkipTLSVerifyBackend"),
            follow: truth(query, "follow"),
            previous: truth(query, "previous"),
            timestamps: truth(query, "timestamps"),
            since_seconds: number(query, "sinceSeconds")?,
            since_time: since_time.transpose()?,
            tail_lines: number(query, "tailLines")?,
            limit_bytes: number(query, "limitBytes")?,
            stream: query.get("stream").map(str::to_owned),
        };

        let errors = options.errors();
        if errors.is_empty() {
            return Ok(options);
        }

        Err(ApiError::invalid_kind("", "PodLogOptions", name, &errors))
    }

    fn errors(&self) -> FieldErrors {
        let mut errors = FieldErrors::default();
        let invalid = |field: &str, value: i64, why: &str| {
            FieldError::invalid(&Path::Root.field(field), value.to_string(), why)
        };
        let forbidden = |why: &str| FieldError::forbidden(&Path::Root.field(""), why);

        if let Some(lines) = self.tail_lines.filter(|lines| *lines < 0) {
            errors.push(invalid(
                "tailLines",
                lines,
                "must be greater than or equal to 0",
            ));
        }

        if let Some(bytes) = self.limit_bytes.filter(|bytes| *bytes < 1) {
            errors.push(invalid("limitBytes", bytes, "must be greater than 0"));
        }

        match (self.since_seconds, self.since_time) {
            (Some(_), Some(_)) => {
                errors.push(forbidden(
                    "at most one of `sinceTime` or `sinceSeconds` may be specified",
                ));
            }
            (Some(seconds), None) if seconds < 1 => {
                errors.push(invalid("sinceSeconds", seconds, "must be greater than 0"));
            }
            _ => {}
        }

        if let Some(stream) = &self.stream {
            if !STREAMS.contains(&stream.as_str()) {
                errors.push(FieldError::not_supported(
                    &Path::Root.field("stream"),
                    stream,
                    &STREAMS,
                ));
            } else if stream != "All" && self.tail_lines.is_some() {
                errors.push(forbidden(
                    "`tailLines` and specific `stream` are mutually exclusive for now",
                ));
            }
        }

        errors
    }

    /// The query that a kubelet understands.
    pub(super) fn for_kubelet(&self) -> String {
        let numbers = [
            ("limitBytes", self.limit_bytes),
            ("sinceSeconds", self.since_seconds),
            ("tailLines", self.tail_lines),
        ];

        let flags = [
            ("follow", self.follow),
            ("previous", self.previous),
            ("timestamps", self.timestamps),
        ];

        let mut pairs: Vec<(&str, String)> = flags
            .into_iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(name, _)| (name, "true".to_owned()))
            .collect();

        pairs.extend(
            numbers
                .into_iter()
                .filter_map(|(name, number)| Some((name, number?.to_string()))),
        );

        pairs.extend(
            self.since_time
                .map(|time| ("sinceTime", time.text().to_string())),
        );

        pairs.push((
            "stream",
            self.stream.clone().unwrap_or_else(|| "All".to_owned()),
        ));

        pairs.sort();

        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();

        encode(&pairs)
    }
}

/// Set, and not to one of the values for false.
fn truth(query: &Query, name: &str) -> bool {
    query
        .get(name)
        .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
}

fn number(query: &Query, name: &str) -> Result<Option<i64>, ApiError> {
    let text = query.get(name).filter(|text| !text.is_empty());
    text.map(|text| text.parse().map_err(|_| not_a_number(text)))
        .transpose()
}

fn not_a_number(text: &str) -> ApiError {
    ApiError::bad_request(format!(
        "strconv.ParseInt: parsing {text:?}: invalid syntax"
    ))
}

fn encode(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    pairs.join("&")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte))
            }
            b' ' => escaped.push('+'),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exec_options_are_passed_to_the_kubelet() {
        let check = |query, expected: &str| {
            let options = CommandOptions::parse(&Query::parse(query));
            assert_eq!(options.for_kubelet(), expected, "{query}");
            // Admission sees fields, and what it leaves of them is passed on.
            let left = CommandOptions::of(&options.fields(Subresource::Exec));
            assert_eq!(left, options, "{query}");
        };

        check("", "");
        check(
            "command=sh&command=-c&command=echo+%22a%26b%22&stdin=true&stdout=1&tty=True&stderr=false",
            "command=sh&command=-c&command=echo+%22a%26b%22&input=1&output=1&tty=1",
        );

        check("container=c&stderr=true", "error=1");
    }

    #[test]
    fn log_options_are_passed_on_or_refused() {
        let check = |query, expected: Result<&str, &str>| {
            let found = LogOptions::parse(&Query::parse(query), "web");
            let found = found
                .map(|options| options.for_kubelet())
                .map_err(|error| error.message);
            assert_eq!(
                found,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{query}"
            );
        };

        check("", Ok("stream=All"));
        check(
            "follow=true&tailLines=5&container=c",
            Ok("follow=true&stream=All&tailLines=5"),
        );

        check(
            "sinceTime=2026-01-01T00:00:00Z&timestamps=1",
            Ok("sinceTime=2026-01-01T00%3A00%3A00Z&stream=All&timestamps=true"),
        );

        check(
            "tailLines=x",
            Err("strconv.ParseInt: parsing \"x\": invalid syntax"),
        );

        check(
            "tailLines=-1",
            Err(
                "PodLogOptions \"web\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
            ),
        );

        check(
            "limitBytes=0",
            Err(
                "PodLogOptions \"web\" is invalid: limitBytes: Invalid value: 0: must be greater than 0",
            ),
        );
    }

    #[test]
    fn port_forward_options_are_passed_to_the_kubelet() {
        let for_kubelet =
            |query| ports(&Query::parse(query)).map(|ports| ports_for_kubelet(&ports));
        assert_eq!(for_kubelet("ports=80&ports=443").unwrap(), "port=80%2C443");
        assert_eq!(for_kubelet("").unwrap(), "");
        assert!(for_kubelet("ports=x").is_err());
    }
}
