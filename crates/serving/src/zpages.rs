//! `/statusz` and `/flagz`: texts for people, or objects of `config.k8s.io` for clients that name
//! the kind in `Accept`.

use std::fmt::Write as _;

use coracle_api::codec::media_type::{MediaType, PageForm, negotiate_page};
use coracle_api::codec::{cbor, json, yaml};
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use http::StatusCode;

use crate::pages::Flag;

/// What `/statusz` says of a component.
#[derive(Clone, Debug)]
pub struct Status<'a> {
    pub name: &'a str,
    /// `v1.36.4+…`.
    pub version: &'a str,
    pub started: Timestamp,
    pub now: Timestamp,
    /// The paths that it serves, in any order.
    pub paths: Vec<String>,
}

/// A page to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub status: StatusCode,
    pub content_type: &'static str,
    /// The `Warning` header.
    pub warning: Option<String>,
    pub content: Vec<u8>,
}

const NOTICE: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n";

const EMULATED: &str = "1.36";

/// Folders of API documents, which are no pages for debugging.
const DOCUMENTS: [&str; 5] = ["/apis", "/api", "/openid", "/openapi", "/.well-known"];

pub fn statusz(status: &Status<'_>, accept: &str) -> Page {
    let up = (status.now.unix_seconds() - status.started.unix_seconds()).max(0);
    let version = status.version.trim_start_matches('v');
    let folders = folders(&status.paths);

    let text = || {
        let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
        format!(
            "\n{name} statusz\n{NOTICE}\nStarted: {started}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\n\
             Go version: \nBinary version: {version}\nEmulation version: {EMULATED}\nPaths: {paths}\n",
            name = status.name,
            started = unix_date(status.started),
            paths = folders.join(" "),
        )
    };
    let fields = || {
        let paths = folders.iter().map(Value::string).collect();
        [
            ("startTime", Value::from(Time(status.started).text())),
            ("uptimeSeconds", Value::Int(up)),
            ("goVersion", Value::from("")),
            ("binaryVersion", Value::from(version)),
            ("emulationVersion", Value::from(EMULATED)),
            ("paths", Value::Array(paths)),
        ]
    };

    page("Statusz", status.name, accept, text, fields)
}

pub fn flagz(name: &str, flags: &[Flag], accept: &str) -> Page {
    let text = || {
        let mut text = format!("\n{name} flagz\n{NOTICE}");
        let mut flags: Vec<&Flag> = flags.iter().collect();
        flags.sort();
        for (name, value) in flags {
            writeln!(text, "{name}={value}").expect("strings take everything");
        }
        text
    };
    let fields = || {
        let mut map = Map::new();
        for (name, value) in flags {
            map.insert(name.as_str(), value.as_str());
        }
        [("flags", Value::Object(map))]
    };

    page("Flagz", name, accept, text, fields)
}

/// The page in the form that the client accepts.
fn page<const N: usize>(
    kind: &str,
    name: &str,
    accept: &str,
    text: impl FnOnce() -> String,
    fields: impl FnOnce() -> [(&'static str, Value); N],
) -> Page {
    let (media_type, version) = match negotiate_page(accept, kind) {
        Some(PageForm::Text) => return Page::text(text()),
        Some(PageForm::Object {
            media_type,
            version,
        }) => (media_type, version),
        None => return Page::not_acceptable(),
    };

    let mut object = Map::new();
    object.insert("kind", kind);
    object.insert("apiVersion", format!("config.k8s.io/{version}"));
    object.object_mut("metadata").insert("name", name);
    for (name, value) in fields() {
        object.insert(name, value);
    }

    let object = Value::Object(object);
    let content = match media_type {
        MediaType::Yaml => yaml::print(&object).into_bytes(),
        MediaType::Cbor => cbor::encode(&object, None),
        MediaType::Json | MediaType::Protobuf => [json::to_vec(&object).as_slice(), b"\n"].concat(),
    };
    let warning = (version == "v1alpha1").then(|| {
        let page = kind.to_lowercase();
        format!(
            "299 - \"This version of the {page} endpoint is deprecated. Please use a newer version.\""
        )
    });
    Page {
        status: StatusCode::OK,
        content_type: media_type.as_str(),
        warning,
        content,
    }
}

impl Page {
    fn text(text: String) -> Page {
        Page {
            status: StatusCode::OK,
            content_type: "text/plain; charset=utf-8",
            warning: None,
            content: text.into_bytes(),
        }
    }

    fn not_acceptable() -> Page {
        let text = r#"{
  "kind": "Status",
  "apiVersion": "v1",
  "metadata": {},
  "status": "Failure",
  "message": "only the following media types are accepted: application/json, application/yaml, text/plain",
  "reason": "NotAcceptable",
  "code": 406
}"#;
        Page {
            status: StatusCode::NOT_ACCEPTABLE,
            content_type: "application/json",
            warning: None,
            content: text.as_bytes().to_vec(),
        }
    }
}

/// The first folders of paths, without those of API documents.
fn folders(paths: &[String]) -> Vec<String> {
    let first = |path: &String| {
        let folder = path.strip_prefix('/')?.split('/').next()?;
        (!folder.is_empty()).then(|| format!("/{folder}"))
    };
    let mut folders: Vec<String> = paths.iter().filter_map(first).collect();
    folders.retain(|folder| !DOCUMENTS.contains(&folder.as_str()));
    folders.sort();
    folders.dedup();
    folders
}

/// `Mon Jan  2 15:04:05 UTC 2006`.
fn unix_date(time: Timestamp) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];

    let text = Time(time).text();
    let number = |from: usize| text.get(from..from + 2).and_then(|part| part.parse().ok());
    let (month, day): (usize, usize) = (number(5).unwrap_or(1), number(8).unwrap_or(1));
    let weekday = usize::try_from(time.unix_seconds().div_euclid(86_400).rem_euclid(7));
    format!(
        "{} {} {day:2} {} UTC {}",
        DAYS[weekday.unwrap_or_default()],
        MONTHS[(month - 1) % 12],
        &text[11..19],
        &text[..4],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status<'static> {
        let paths = [
            "/healthz",
            "/healthz/ping",
            "/metrics",
            "/metrics/slis",
            "/apis/apps",
            "/",
        ];
        Status {
            name: "kube-scheduler",
            version: "v1.36.4+x",
            started: Timestamp::from_unix(1_767_322_984, 0),
            now: Timestamp::from_unix(1_767_322_984 + 3_725, 0),
            paths: paths.map(str::to_owned).to_vec(),
        }
    }

    fn content(page: &Page) -> &str {
        std::str::from_utf8(&page.content).unwrap()
    }

    #[test]
    fn people_get_a_text() {
        for accept in ["", " ", "*/*", "text/plain", "text/html, */*;q=0.8"] {
            let page = statusz(&status(), accept);
            assert_eq!(page.content_type, "text/plain; charset=utf-8", "{accept}");
            let (_, text) = content(&page).split_once("only.\n").unwrap();
            assert_eq!(
                text,
                "\nStarted: Fri Jan  2 03:03:04 UTC 2026\nUp: 1 hr 02 min 05 sec\nGo version: \n\
                 Binary version: 1.36.4+x\nEmulation version: 1.36\nPaths: /healthz /metrics\n"
            );
        }

        let flags =
            [("b", "2"), ("a", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let page = flagz("kubelet", &flags, "");
        assert!(content(&page).starts_with("\nkubelet flagz\nWarning: "));
        assert!(content(&page).ends_with("only.\na=\nb=2\n"));
    }

    #[test]
    fn programs_get_the_object_that_they_name() {
        let named = |version: &str, media_type: &str| {
            format!("{media_type};as=Flagz;g=config.k8s.io;v={version}")
        };
        let flags = [("a".to_owned(), "1".to_owned())];

        let page = flagz("kubelet", &flags, &named("v1beta1", "application/json"));
        assert_eq!(
            (page.content_type, &page.warning),
            ("application/json", &None)
        );
        assert_eq!(
            json::parse(content(&page).trim_end().as_bytes()),
            json::parse(
                br#"{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kubelet"},"flags":{"a":"1"}}"#
            )
        );

        let page = flagz("kubelet", &flags, &named("v1alpha1", "application/yaml"));
        assert_eq!(page.content_type, "application/yaml");
        assert_eq!(
            page.warning.as_deref(),
            Some(
                "299 - \"This version of the flagz endpoint is deprecated. Please use a newer version.\""
            )
        );
        assert!(content(&page).contains("\nkind: Flagz\n"));
    }

    #[test]
    fn other_forms_are_refused() {
        for accept in [
            "application/json",
            "application/yaml, application/json;q=0.5",
            "application/json;as=Flagz;g=config.k8s.io;v=v1beta1",
            "application/json;as=Statusz;g=config.k8s.io;v=v1",
            "application/vnd.kubernetes.protobuf;as=Statusz;g=config.k8s.io;v=v1beta1",
            "text/plain;as=Statusz;g=config.k8s.io;v=v1beta1",
        ] {
            let page = statusz(&status(), accept);
            assert_eq!(page.status, StatusCode::NOT_ACCEPTABLE, "{accept}");
        }
    }
}
